"""Behaviour of a broker of each release where releases differ: the values were read in Kafka's sources of that release.

`docs/rules-by-release.md` says where. A case names the values, and the first release of each.
"""

from collections.abc import Callable
from itertools import groupby

import pytest

from kspec.spec.broker.follower import handle_fetch_response, handle_list_offsets_response
from kspec.spec.broker.leader.deletion import handle_delete_records
from kspec.spec.broker.leader.fetch import handle_fetch, read_partition
from kspec.spec.broker.leader.isr import consider_shrinking, handle_alter_partition_response
from kspec.spec.broker.leader.offsets import handle_list_offsets
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.partition import Partition, with_producers
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.roles import become_follower, become_leader
from kspec.spec.broker.rules.fetcher import FetchState, FetchStatus, PendingFetch
from kspec.spec.broker.rules.followers import Follower, FollowerFetch, follower_of
from kspec.spec.broker.rules.isr.errors import AfterError
from kspec.spec.broker.rules.isr.proposal import LeaderIsr
from kspec.spec.log.batch import Batch
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.producers import ProducerBatch, ProducerEntry
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, IsrMember
from kspec.spec.messages.delete_records import DeleteRecordsRequest
from kspec.spec.messages.fetch import FetchResponse, Isolation
from kspec.spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse, OffsetSpec
from kspec.spec.messages.produce import ACKS_LEADER, ProduceRequest
from kspec.spec.metadata import PartitionRegistration
from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.values import (
    NO_EPOCH,
    NO_LEADER,
    NO_PARTITION_EPOCH,
    UNKNOWN_OFFSET,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    MonotonicMs,
    Offset,
    PartitionEpoch,
    PartitionId,
    ProducerEpoch,
    ProducerId,
    Record,
)
from tests.spec.broker_driver import (
    EPOCH,
    EVERYBODY,
    LATE,
    NOW,
    OTHER,
    SELF,
    THIRD,
    announced,
    broker,
    consumer_fetch,
    fetch_of,
    fetched,
    follower,
    leader,
    log_of,
    registered,
    reply,
)

STRANGER = BrokerId(4)
LAG = 30_000

Value = object
Case = Callable[[BrokerProtocol], Value]


def history(case: Case) -> dict[str, Value]:
    """The first release of each value, up to 4.4, without those of 3.9.1, which came out after 4.0."""
    values = [(protocol.name, case(protocol)) for protocol in BROKER_RELEASES if protocol.name not in ("3.9.1", "next")]
    return {next(group)[0]: value for value, group in groupby(values, key=lambda named: named[1])}


# ---- the fetch of a follower


def fenced_in_21_fetches_in_20(protocol: BrokerProtocol, *, fenced: bool) -> Error:
    """A fetch in broker epoch 20, where the leader's metadata have the broker registered in 21."""
    brokers = tuple(registered(one, broker_epoch=BrokerEpoch(21), fenced=fenced) for one in (SELF, OTHER))
    asked = fetch_of(OTHER, 1, broker_epoch=BrokerEpoch(20))
    answer: FetchResponse = reply(handle_fetch(broker(protocol, brokers=brokers), leader(log_of(5)), asked, NOW))
    return answer.error


def answer_to_stranger(protocol: BrokerProtocol, epoch: Epoch = EPOCH) -> tuple[Error, int]:
    """The answer to a fetch by a broker that is no replica: the error, and how many records."""
    step = handle_fetch(broker(protocol), leader(log_of(5, 5)), fetch_of(STRANGER, 0, epoch=epoch), NOW)
    answer: FetchResponse = reply(step)
    assert step.state == leader(log_of(5, 5))
    return answer.error, len(answer.records)


def end_after_refused_fetch(protocol: BrokerProtocol) -> int:
    """The log end of a follower, as its leader knows it, after a fetch out of range."""
    ends = {OTHER: fetched(2)}
    step = handle_fetch(broker(protocol), leader(log_of(5, 5), follower_ends=ends), fetch_of(OTHER, 9), NOW)
    answer: FetchResponse = reply(step)
    state = follower_of(step.state.followers, OTHER)
    assert answer.error == Error.OFFSET_OUT_OF_RANGE
    assert state is not None
    return state.end_offset


def seen_end_after_earlier_one(protocol: BrokerProtocol) -> int:
    """The end that a leader remembers as its own, after a fetch that saw 8, when an earlier one saw 10."""
    known = fetched(5, leader_end_offset=Offset(10))
    noted = protocol.notes_fetch(known, FollowerFetch(NOW, Offset(5), Offset(0), Offset(8), BrokerEpoch(1)))
    return noted.leader_end_offset


def caught_up_by_second_fetch(protocol: BrokerProtocol) -> int:
    """The time when a follower at 5 was caught up: its last fetch (at 70) saw the leader end at 5, and this one sees 6."""
    known = fetched(3, leader_end_offset=Offset(5), fetch_time=70, caught_up_time=10)
    return protocol.notes_fetch(known, FollowerFetch(NOW, Offset(5), Offset(0), Offset(6), BrokerEpoch(1))).caught_up_time


def high_watermark_after_idle_fetch(protocol: BrokerProtocol) -> int:
    """The high watermark after a fetch from the same offset as before, which nothing holds up any longer."""
    ends = {OTHER: fetched(2), THIRD: fetched(0)}
    partition = leader(log_of(5, 5), isr=(SELF, OTHER), follower_ends=ends)
    return handle_fetch(broker(protocol), partition, fetch_of(OTHER, 2), MonotonicMs(NOW + LATE)).state.local.high_watermark


def high_watermark_in_answer(protocol: BrokerProtocol) -> int:
    """The high watermark in the answer to the fetch that commits two records."""
    partition = leader(log_of(5, 5), isr=(SELF, OTHER), follower_ends={OTHER: fetched(0)})
    own = broker(protocol, min_isr=2)
    step = handle_fetch(own, partition._replace(followers=partition.followers[:1]), fetch_of(OTHER, 2), NOW)
    answer: FetchResponse = reply(step)
    assert step.state.local.high_watermark == 2
    return answer.high_watermark


def consumer_of_follower(protocol: BrokerProtocol) -> Error:
    return read_partition(broker(protocol), follower(log_of(5), 1), consumer_fetch(0, has_client_metadata=True)).error


def read_replicas(protocol: BrokerProtocol) -> frozenset[BrokerId]:
    """The replicas where a consumer may read at 2: both followers have it, and one of them is not in sync."""
    followers = (Follower(OTHER, fetched(4)), Follower(THIRD, fetched(4)))
    return protocol.read_replicas(SELF, frozenset({SELF, OTHER}), followers, Offset(2))


# ---- the ISR


def drops_idle_member(protocol: BrokerProtocol) -> frozenset[BrokerId]:
    """The members that a leader drops of two that have not fetched for long: one has all records, one does not."""
    followers = (Follower(OTHER, fetched(2)), Follower(THIRD, fetched(1)))
    return protocol.drops(frozenset(EVERYBODY), SELF, followers, Offset(2), MonotonicMs(NOW + LATE), LAG)


def drops_beside_stranger(protocol: BrokerProtocol) -> bool:
    """Whether a leader drops a member that is behind while the ISR has one that is not assigned."""
    partition = leader(log_of(5, 5), isr=(*EVERYBODY, STRANGER), follower_ends={OTHER: fetched(2), THIRD: fetched(1)})
    return consider_shrinking(broker(protocol), partition, MonotonicMs(NOW + LATE)).effects != ()


def granted(protocol: BrokerProtocol, partition_epoch: int) -> Partition[RecordLog]:
    """A leader with a pending shrink to two members, which both have two records, after the grant of this epoch."""
    two = frozenset({SELF, OTHER})
    pending = LeaderIsr(frozenset(EVERYBODY), PartitionEpoch(7), two, PartitionEpoch(7))
    ends = {OTHER: fetched(2), THIRD: fetched(0)}
    partition = leader(log_of(5, 5), follower_ends=ends)._replace(isr=pending, request_in_flight=True)
    members = frozenset(IsrMember(one) for one in two)
    asked = AlterPartitionRequest(SELF, BrokerEpoch(10), PartitionId(0), EPOCH, PartitionEpoch(7), members)
    answer = AlterPartitionResponse(Error.NONE, PartitionId(0), SELF, EPOCH, two, PartitionEpoch(partition_epoch))
    return handle_alter_partition_response(broker(protocol), partition, asked, answer, MonotonicMs(NOW + LATE)).state


def after_same_epoch_is_granted(protocol: BrokerProtocol) -> bool:
    """Whether a leader may propose again when the answer has the partition epoch that it knows."""
    return granted(protocol, 7).isr.pending_epoch == NO_PARTITION_EPOCH


def high_watermark_once_granted(protocol: BrokerProtocol) -> int:
    return granted(protocol, 8).local.high_watermark


def after_unexpected_error(protocol: BrokerProtocol) -> AfterError:
    return protocol.on_isr_error(Error.UNKNOWN_SERVER_ERROR)


# ---- announcements


def told_of(leads: BrokerId, leader_epoch: int, partition_epoch: int) -> PartitionRegistration:
    return announced(leads, leader_epoch, (SELF, OTHER), partition_epoch)


def after_change_in_same_epoch(protocol: BrokerProtocol) -> tuple[int, int]:
    """The size of a leader's ISR, and where its epoch starts, after an announcement in its own leader epoch."""
    before = leader(log_of(5, 5), epoch_start=0)
    after = become_leader(broker(protocol), before, told_of(SELF, 5, 8), NOW).state
    return len(after.isr.isr), after.epoch_start


def after_older_announcement(protocol: BrokerProtocol) -> int:
    """The partition epoch of a leader in 7 that reads 6, in the next leader epoch."""
    after = become_leader(broker(protocol), leader(log_of(5)), told_of(SELF, 6, 6), NOW).state
    return after.isr.partition_epoch


def leads_on_without_leader(protocol: BrokerProtocol) -> bool:
    """Whether a leader that is told that nobody leads goes on leading."""
    told = told_of(NO_LEADER, 6, 8)
    return become_follower(broker(protocol), leader(log_of(5)), told).state.leader == SELF


def fetches_while_stopping(protocol: BrokerProtocol) -> bool:
    """Whether a broker in controlled shutdown fetches on that is out of the ISR."""
    own = broker(protocol, self_id=THIRD, shutting_down=True)
    after = become_follower(own, follower(log_of(5)), told_of(OTHER, 6, 8)).state
    return after.fetcher.status not in (FetchStatus.NOT_FETCHING, FetchStatus.FAILED)


def kept_of_outsider(protocol: BrokerProtocol) -> tuple[int, int]:
    """The times of the last fetch and of having been caught up, of a replica out of the ISR, when its leader leads on."""
    kept = protocol.keeps_of_followers(fetched(2, 10, fetch_time=20), NOW, False, Offset(2))
    return kept.fetch_time, kept.caught_up_time


# ---- logs


def high_watermark_of_emptied_log(protocol: BrokerProtocol) -> int:
    """The high watermark, which was 1, of a follower's log that starts anew at 7."""
    finding = FetchState(FetchStatus.FINDING_START, OTHER, EPOCH, Offset(2), NO_EPOCH)
    before = follower(log_of(4, 4), 1)._replace(fetcher=finding)
    answer = ListOffsetsResponse(Error.NONE, Offset(7), EPOCH)
    return handle_list_offsets_response(
        broker(protocol), before, PendingFetch(EPOCH), answer, NOW
    ).state.local.high_watermark


def empty_log_takes_earlier_batch(protocol: BrokerProtocol) -> bool:
    """Whether an empty log that ends at 5 takes a batch of the offsets 4 and 5."""
    empty = LocalLog(EMPTY_LOG.restart_at(Offset(5)), Offset(5))
    fetcher = FetchState(FetchStatus.FETCHING, OTHER, EPOCH, Offset(5), NO_EPOCH)
    before = follower(log_of())._replace(local=empty, fetcher=fetcher)
    answer = FetchResponse(Error.NONE, Offset(4), (Record(1, EPOCH), Record(2, EPOCH)), Offset(5), Offset(4))
    after = handle_fetch_response(broker(protocol), before, PendingFetch(EPOCH, Offset(5)), answer, NOW).state
    return after.local.log.end_offset == 6


def asks_about_no_epoch(protocol: BrokerProtocol) -> bool:
    return not protocol.needs_no_answer(FetchState(FetchStatus.TRUNCATING, OTHER, EPOCH), EMPTY_LOG)


def truncates_by_answer_of_earlier_epoch(protocol: BrokerProtocol) -> bool:
    return protocol.may_truncate_by(FetchState(FetchStatus.TRUNCATING, OTHER, EPOCH), Epoch(4))


def end_of_no_epoch(protocol: BrokerProtocol) -> tuple[int, int]:
    """The answer of a leader without epochs about no epoch: its log is empty, and starts at 3."""
    return protocol.epoch_lookup(EMPTY_LOG.restart_at(Offset(3)), NO_EPOCH)


# ---- producers, deletion


def batch(first_sequence: int, offset: int, producer: int = 1) -> ProducerBatch:
    return ProducerBatch(ProducerId(producer), ProducerEpoch(0), first_sequence, 1, Offset(offset))


def unknown_producer(protocol: BrokerProtocol) -> Error:
    """A batch with sequence number 7 of a producer that the leader does not know."""
    return protocol.check_sequences(ProducerEntry(ProducerId(1)), batch(7, 0))


SEVEN_TO_ELEVEN = ProducerEntry(ProducerId(1), ProducerEpoch(0), tuple(batch(number, number) for number in range(7, 12)))
"""A producer of which the batches with these sequence numbers are remembered."""


def epoch_of_offset(protocol: BrokerProtocol, wanted: OffsetSpec) -> Epoch:
    """The leader epoch in the answer about the first or the next offset of a log."""
    asked = ListOffsetsRequest(wanted, isolation=Isolation.HIGH_WATERMARK)
    partition = leader(log_of(4, 5), 2)
    answer: ListOffsetsResponse = reply(handle_list_offsets(broker(protocol), partition, asked, NOW))
    assert answer.error == Error.NONE
    return answer.leader_epoch


def batch_before_the_last(protocol: BrokerProtocol) -> bool:
    """Whether the last batch but one of a producer is recognised when it comes again."""
    entry = ProducerEntry(ProducerId(1), ProducerEpoch(0), (batch(0, 0), batch(1, 1)))
    return protocol.finds_duplicate(entry, batch(0, 9)) is not None


def producers_of_deleted_records(protocol: BrokerProtocol) -> int:
    """The number of producers that are remembered of two, one of which has no record left."""
    known = (
        ProducerEntry(ProducerId(1), ProducerEpoch(0), (batch(0, 0),)),
        ProducerEntry(ProducerId(2), ProducerEpoch(0), (batch(0, 1, producer=2),)),
    )
    before = with_producers(leader(log_of(5, 5), 2), known)
    return len(handle_delete_records(broker(protocol), before, DeleteRecordsRequest(Offset(1)), NOW).state.producers)


def deletion_against_policy(protocol: BrokerProtocol, offset: int = 1) -> tuple[Error, int]:
    """The answer to a deletion in a topic that is compacted only, and where its log starts then."""
    own = broker(protocol)
    own = own._replace(settings=own.settings._replace(deletes_records=False, compacts_records=True))
    step = handle_delete_records(own, leader(log_of(5, 5), 1), DeleteRecordsRequest(Offset(offset)), NOW)
    return reply(step).error, step.state.local.log.start_offset


def deletion_without_policy(protocol: BrokerProtocol) -> Error:
    """The answer to a deletion in a topic whose `cleanup.policy` is empty."""
    own = broker(protocol)
    own = own._replace(settings=own.settings._replace(deletes_records=False, compacts_records=False))
    answer: Error = reply(handle_delete_records(own, leader(log_of(5, 5), 1), DeleteRecordsRequest(Offset(1)), NOW)).error
    return answer


CASES: list[tuple[str, Case, dict[str, Value]]] = [
    (
        "KAFKA-15221: earlier incarnation",
        lambda protocol: fenced_in_21_fetches_in_20(protocol, fenced=False),
        {"0.10": Error.NONE, "3.7": Error.NOT_LEADER_OR_FOLLOWER},
    ),
    (
        "KAFKA-15221: earlier incarnation of a fenced broker",
        lambda protocol: fenced_in_21_fetches_in_20(protocol, fenced=True),
        {"0.10": Error.NONE},
    ),
    (
        "KAFKA-13837: no replica",
        answer_to_stranger,
        {"0.10": (Error.UNKNOWN_SERVER_ERROR, 0), "1.0": (Error.NONE, 0), "3.3": (Error.UNKNOWN_LEADER_EPOCH, 0)},
    ),
    (
        "KAFKA-13837: no replica, no epoch",
        lambda protocol: answer_to_stranger(protocol, NO_EPOCH),
        {"0.10": (Error.UNKNOWN_SERVER_ERROR, 0), "1.0": (Error.NONE, 0), "3.3": (Error.NOT_LEADER_OR_FOLLOWER, 0)},
    ),
    ("KAFKA-8400: refused fetch", end_after_refused_fetch, {"0.10": UNKNOWN_OFFSET, "2.4": 2}),
    ("the leader's end", seen_end_after_earlier_one, {"0.10": 8, "3.3": 10}),
    ("KAFKA-4485: caught up", caught_up_by_second_fetch, {"0.10": 10, "0.11": 70}),
    ("when the high watermark is looked at", high_watermark_after_idle_fetch, {"0.10": 2, "2.4": 0}),
    ("the high watermark in the answer", high_watermark_in_answer, {"0.10": 0, "1.0": 2, "2.0": 0}),
    ("KIP-392: who answers", consumer_of_follower, {"0.10": Error.NOT_LEADER_OR_FOLLOWER, "2.4": Error.NONE}),
    (
        "KAFKA-14379: to whom a consumer is sent",
        read_replicas,
        {"0.10": {SELF}, "2.4": {SELF, OTHER, THIRD}, "3.4": {SELF, OTHER}},
    ),
    ("KAFKA-7152: idle member", drops_idle_member, {"0.10": {OTHER, THIRD}, "2.1": {THIRD}}),
    ("KAFKA-9672: member without assignment", drops_beside_stranger, {"0.10": True, "2.4": False, "3.0": True}),
    ("KAFKA-12751: grant of nothing", after_same_epoch_is_granted, {"0.10": False, "3.0": True}),
    ("KAFKA-13091: grant", high_watermark_once_granted, {"0.10": 2, "2.7": 0, "3.1": 2}),
    (
        "KAFKA-14010: unexpected error",
        after_unexpected_error,
        {"0.10": AfterError.ROLL_BACK, "2.7": AfterError.RETRY, "3.1": AfterError.ROLL_BACK, "3.3": AfterError.RETRY},
    ),
    ("KAFKA-13790: change in the same epoch", after_change_in_same_epoch, {"0.10": (3, 0), "3.0": (2, 2), "3.3": (2, 0)}),
    ("KAFKA-13790: older announcement", after_older_announcement, {"0.10": 6, "3.3": 7}),
    ("KAFKA-13790: nobody leads", leads_on_without_leader, {"0.10": True, "3.3": False}),
    ("controlled shutdown", fetches_while_stopping, {"0.10": True, "3.3": False}),
    ("times of an outsider", kept_of_outsider, {"0.10": (20, 10), "0.11": (NOW, 0), "3.3": (0, 0)}),
    ("KAFKA-9491: emptied log", high_watermark_of_emptied_log, {"0.10": 1, "2.5": 7}),
    ("KAFKA-6975: batch before the log", empty_log_takes_earlier_batch, {"0.10": False, "2.0": True}),
    ("KAFKA-6859: no epoch to ask about", asks_about_no_epoch, {"0.10": True, "2.1": False}),
    ("KAFKA-6857: the end of no epoch", end_of_no_epoch, {"0.10": (-1, 3), "2.0": (-1, -1)}),
    ("KAFKA-7786: answer of an earlier epoch", truncates_by_answer_of_earlier_epoch, {"0.10": True, "2.2": False}),
    (
        "KIP-360: unknown producer",
        unknown_producer,
        {
            "0.10": Error.NONE,
            "0.11": Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
            "1.0": Error.UNKNOWN_PRODUCER_ID,
            "2.5": Error.NONE,
        },
    ),
    (
        "a batch before all that are remembered",
        lambda protocol: protocol.check_sequences(SEVEN_TO_ELEVEN, batch(3, 99)),
        {
            "0.10": Error.NONE,
            "0.11": Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
            "1.0": Error.DUPLICATE_SEQUENCE_NUMBER,
            "1.1": Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
        },
    ),
    (
        "the first batch of all, and a gap",
        lambda protocol: (
            protocol.check_sequences(SEVEN_TO_ELEVEN, batch(0, 99)),
            protocol.check_sequences(SEVEN_TO_ELEVEN, batch(13, 99)),
        ),
        {"0.10": (Error.NONE,) * 2, "0.11": (Error.OUT_OF_ORDER_SEQUENCE_NUMBER,) * 2},
    ),
    (
        "an older batch of another epoch",
        lambda protocol: protocol.check_sequences(SEVEN_TO_ELEVEN, batch(3, 99)._replace(producer_epoch=ProducerEpoch(1))),
        {"0.10": Error.NONE, "0.11": Error.OUT_OF_ORDER_SEQUENCE_NUMBER},
    ),
    (
        "the leader epoch of an offset",
        lambda protocol: [epoch_of_offset(protocol, wanted) for wanted in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)],
        {"0.10": [NO_EPOCH, NO_EPOCH], "2.2": [4, EPOCH]},
    ),
    ("KAFKA-5494: batches remembered", batch_before_the_last, {"0.10": False, "1.0": True}),
    ("KAFKA-7190: producers whose records are deleted", producers_of_deleted_records, {"0.10": 1, "2.4": 2}),
    (
        "deletion against the policy",
        deletion_against_policy,
        {"0.10": (Error.POLICY_VIOLATION, 1), "1.1": (Error.POLICY_VIOLATION, 0)},
    ),
    (
        "deletion against the policy, out of range",
        lambda protocol: deletion_against_policy(protocol, 9),
        {"0.10": (Error.OFFSET_OUT_OF_RANGE, 0), "1.1": (Error.POLICY_VIOLATION, 0)},
    ),
    ("deletion without a policy", deletion_without_policy, {"0.10": Error.POLICY_VIOLATION, "4.2": Error.NONE}),
]


@pytest.mark.parametrize(("case", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_broker_of_a_release_does_what_kafka_did(case: Case, expected: dict[str, Value]) -> None:
    assert history(case) == expected


def test_a_broker_of_3_9_1_does_what_3_9_did_in_all_these_cases() -> None:
    named = {protocol.name: protocol for protocol in BROKER_RELEASES}
    assert all(case(named["3.9.1"]) == case(named["3.9"]) for _, case, _ in CASES)


def test_a_batch_is_no_duplicate_before_producers_have_ids() -> None:
    produced = ProduceRequest(9, ACKS_LEADER, Batch(1, NO_EPOCH, 7, ProducerId(1), ProducerEpoch(0), 0))
    oldest = BROKER_RELEASES[0]
    first = handle_produce(broker(oldest), leader(log_of()), produced, NOW).state
    assert handle_produce(broker(oldest), first, produced, NOW).state.local.log.end_offset == 2
