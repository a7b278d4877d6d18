"""Reading of the answer to a follower's fetch: whole batches, in pieces where offsets are missing."""

from kspec.impl.records.record import new_batch
from kspec.impl.replica.fetch_messages import end_of, fetched
from kspec.impl.wire.values import Message
from kspec.spec.log.batch import Batch
from kspec.spec.values import UNDEFINED_EPOCH_END, Epoch, EpochEndOffset, Error, Offset


def batch(base_offset: int, count: int = 1, leader_epoch: int = 3) -> bytes:
    return bytes(new_batch([(0, None, b"value")] * count, base_offset=base_offset, leader_epoch=leader_epoch))


def answer(records: bytes | None, error: int = 0, **fields: object) -> Message:
    known = {"high_watermark": 5, "last_stable_offset": 5, "log_start_offset": 0, "diverging_epoch": None}
    return Message(partition_index=0, error_code=error, records=records, **{**known, **fields})


def test_batches_that_follow_each_other_are_one_piece() -> None:
    first, second = batch(7, 2), batch(9, 1, leader_epoch=4)
    found = fetched(Offset(7), answer(first + second))
    assert found is not None
    (one,) = found
    assert one.response.base_offset == 7
    assert one.response.records == (Batch(2, Epoch(3), payload=0), Batch(1, Epoch(4), payload=0))
    assert [bytes(payload) for payload in one.payloads] == [first, second]
    assert (one.response.high_watermark, one.response.log_start_offset) == (5, 0)


def test_a_gap_between_batches_makes_two_pieces() -> None:
    found = fetched(Offset(7), answer(batch(7) + batch(12)))
    assert found is not None
    assert [one.response.base_offset for one in found] == [7, 12]


def test_a_piece_ends_where_its_batches_do_whatever_the_log_has_taken_of_it() -> None:
    found = fetched(Offset(7), answer(batch(7, 2) + batch(9, 3) + batch(20)))
    assert found is not None
    assert [end_of(one) for one in found] == [12, 21]


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch() -> None:
    found = fetched(Offset(7), answer(batch(7) + batch(8)[:-1]))
    assert found is not None
    assert [len(one.payloads) for one in found] == [1]
    assert fetched(Offset(7), answer(batch(7)[:-1])) == fetched(Offset(7), answer(None))


def test_a_corrupt_batch_spoils_the_answer() -> None:
    damaged = bytearray(batch(7))
    damaged[-1] ^= 1
    assert fetched(Offset(7), answer(bytes(damaged))) is None
    other_format = bytearray(batch(7))
    other_format[16] = 1
    assert fetched(Offset(7), answer(bytes(other_format))) is None


def test_an_answer_without_records_begins_where_it_was_asked() -> None:
    found = fetched(Offset(7), answer(b"", error=Error.NOT_LEADER_OR_FOLLOWER.value))
    assert found is not None
    (one,) = found
    assert (one.response.error, one.response.base_offset, one.response.records) == (Error.NOT_LEADER_OR_FOLLOWER, 7, ())
    assert one.response.diverging == UNDEFINED_EPOCH_END


def test_the_end_of_a_diverging_epoch_is_read() -> None:
    told = answer(None, diverging_epoch=Message(epoch=2, end_offset=4))
    found = fetched(Offset(7), told)
    assert found is not None
    assert found[0].response.diverging == EpochEndOffset(Epoch(2), Offset(4))
    undefined = fetched(Offset(7), answer(None, diverging_epoch=Message(epoch=-1, end_offset=-1)))
    assert undefined is not None
    assert undefined[0].response.diverging == UNDEFINED_EPOCH_END
