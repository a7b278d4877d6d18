"""The log of a follower at the edges: a later epoch in an answer, the inside of a batch, a leader's start."""

from kspec.spec.broker.effects import BatchesAppended, Persist
from kspec.spec.broker.follower import handle_fetch_response
from kspec.spec.broker.rules.fetcher import FetchStatus, PendingFetch, Reset, reset_by_leader_start
from kspec.spec.log.local_log import LocalLog, append_fetched
from kspec.spec.log.record_log import EMPTY_LOG
from kspec.spec.messages.fetch import FetchResponse
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.values import Epoch, Error, Offset, Record
from tests.spec.broker_driver import EPOCH, NOW, broker, follower, log_of


def answer_at(offset: int, *records: Record) -> FetchResponse:
    return FetchResponse(Error.NONE, Offset(offset), records, Offset(0), Offset(0), Offset(0))


def test_what_is_stored_ends_before_a_later_epoch() -> None:
    partition = follower(log_of(4))
    own, later = Record(7, EPOCH), Record(8, Epoch(EPOCH + 1))
    asked = PendingFetch(EPOCH, Offset(1))
    step = handle_fetch_response(broker(BROKER_NEXT), partition, asked, answer_at(1, own, later), NOW)
    assert step.effects == (Persist(BatchesAppended(Offset(1), (own,))),)
    assert step.state.local.log.records[1:] == (own,)


def test_a_follower_whose_log_does_not_end_at_its_fetch_offset_fails() -> None:
    partition = follower(log_of(4, 4))
    elsewhere = partition._replace(fetcher=partition.fetcher._replace(fetch_offset=Offset(5)))
    step = handle_fetch_response(
        broker(BROKER_NEXT), elsewhere, PendingFetch(EPOCH, Offset(5)), answer_at(5, Record(7, EPOCH)), NOW
    )
    assert step.state.fetcher.status == FetchStatus.FAILED
    assert (step.state.local, step.effects) == (elsewhere.local, ())


def test_a_log_that_starts_again_with_a_whole_batch_has_its_high_watermark_there() -> None:
    local = LocalLog(EMPTY_LOG.restart_at(Offset(5)), Offset(5))
    appended = append_fetched(local, Offset(4), (Record(1, EPOCH), Record(2, EPOCH)))
    assert appended.restarted
    assert (appended.local.log.start_offset, appended.local.high_watermark) == (4, 4)


def test_a_log_that_ends_where_its_leader_starts_is_kept() -> None:
    assert reset_by_leader_start(log_of(4, 4), Offset(2)) == Reset(Offset(2))
    assert reset_by_leader_start(log_of(4, 4), Offset(3)) == Reset(Offset(3), restarted=True)
