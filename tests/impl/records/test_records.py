"""Batches in bytes, beside the decoders and encoders of aiokafka and kafka-python."""

import crc32c
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as TheirBuilder
from aiokafka.record.memory_records import MemoryRecords as TheirRecords
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords as OtherRecords

from kspec.impl.records import compression, pieces
from kspec.impl.records.batch import CRC_START, HEADER_SIZE, InvalidBatchError, header_at, headers, is_intact, placed
from kspec.impl.records.compression import CompressionError, compress
from kspec.impl.records.pieces import decompress
from kspec.impl.records.record import RecordError, new_batch, records_of
from kspec.spec.values import Epoch, Offset

RECORD = st.tuples(st.integers(0, 2**50), st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=200))
RECORDS = st.lists(RECORD, min_size=1, max_size=8)


@given(records=RECORDS, codec=st.integers(0, 4), base=st.integers(0, 2**40), epoch=st.integers(0, 2**30))
def test_our_batches_are_read_by_others(
    records: list[tuple[int, bytes | None, bytes | None]], codec: int, base: int, epoch: int
) -> None:
    batch = new_batch(
        records, codec=codec, base_offset=base, leader_epoch=epoch, producer_id=5, producer_epoch=1, base_sequence=7
    )
    theirs = TheirRecords(batch).next_batch()
    assert theirs.validate_crc()
    expected = [(base + number, *record) for number, record in enumerate(records)]
    assert [(one.offset, one.timestamp, one.key, one.value) for one in theirs] == expected
    assert [(one.offset, one.timestamp, one.key, one.value) for one in records_of(batch)] == expected
    header = header_at(batch)
    assert (header.producer_id, header.leader_epoch, header.next_offset) == (5, epoch, base + len(records))
    if codec == 0:
        other = OtherRecords(batch).next_batch()
        assert [(one.offset, one.timestamp, one.key, one.value) for one in other] == expected


@given(records=RECORDS, codec=st.integers(0, 4))
def test_batches_of_others_are_read(records: list[tuple[int, bytes | None, bytes | None]], codec: int) -> None:
    builder = TheirBuilder(2, codec, False, -1, -1, -1, 1 << 20)
    for number, (timestamp, key, value) in enumerate(records):
        builder.append(number, timestamp, key, value, [("name", b"x"), ("none", None)])
    batch = bytes(builder.build())
    assert is_intact(batch, header_at(batch))
    found = list(records_of(batch))
    assert [one[1:4] for one in found] == records
    assert all(one.headers == (("name", b"x"), ("none", None)) for one in found)


def test_placing_a_batch_changes_two_fields_only() -> None:
    batch = new_batch([(1, b"k", b"v")] * 3)
    original = bytes(batch)
    parts = placed([(Epoch(9), header_at(batch), batch), (Epoch(10), header_at(batch), memoryview(batch))], Offset(100))
    first, second = headers(b"".join(parts))
    assert (first.base_offset, first.leader_epoch, second.base_offset, second.leader_epoch) == (100, 9, 103, 10)
    assert batch == original
    assert b"".join(parts)[16:HEADER_SIZE] == original[16:HEADER_SIZE]


@given(st.data())
def test_a_changed_byte_is_noticed(data: st.DataObject) -> None:
    batch = bytearray(new_batch([(1, b"key", b"value")] * 3))
    place = data.draw(st.integers(CRC_START, len(batch) - 1))
    batch[place] ^= data.draw(st.integers(1, 255))
    assert not is_intact(batch, header_at(batch))


def test_bytes_that_are_no_batches() -> None:
    batch = new_batch([(1, None, b"v")])
    assert list(headers(b"")) == []
    for wrong in (batch[:-1], batch + b"x", batch[:16] + b"\x01" + batch[17:], batch[:8] + bytes(4) + batch[12:]):
        with pytest.raises(InvalidBatchError, match="no valid batch at byte"):
            list(headers(wrong))
    assert not is_intact(batch, header_at(batch)._replace(length=1))


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_damaged_compression(codec: int) -> None:
    with pytest.raises(CompressionError, match=r"damaged|it is no"):
        decompress(codec, b"no compressed data at all")


def test_damaged_records() -> None:
    with pytest.raises(CompressionError, match="no codec 7"):
        decompress(7, b"")
    batch = bytearray(new_batch([(1, b"k", b"v")]))
    for place, value in ((HEADER_SIZE, 0xFF), (HEADER_SIZE, 0x7E), (HEADER_SIZE + 4, 0x7E), (60, 9)):
        damaged = bytearray(batch)
        damaged[place] = value
        with pytest.raises(RecordError):
            list(records_of(damaged))
    assert crc32c.crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_records_that_would_fill_the_memory_are_refused(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    large = bytes(3_000_000)
    assert decompress(codec, compress(codec, large)) == large
    monkeypatch.setattr(compression, "MOST_BYTES", 2_000_000)
    monkeypatch.setattr(pieces, "MOST_BYTES", 2_000_000)
    with pytest.raises(CompressionError):
        decompress(codec, compress(codec, large))
    assert decompress(codec, compress(codec, large[:1_900_000])) == large[:1_900_000]
