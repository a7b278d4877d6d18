"""A broker as a process and a model made of `spec` alone, driven together over the wire: every answer is the model's.

Each example has a topic of its own on one broker, which is stopped and killed on the way.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from kspec.cli.broker.serve import rules_of
from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from kspec.spec.values import Error, Offset
from tests.impl.broker.model import LIST_OFFSETS_VERSION, PartitionModel
from tests.impl.broker.process import BrokerClient, BrokerProcess
from tests.impl.storage.model import stored_in
from tests.limits.marks import is_night

BEGUN = time.time_ns() // 1_000_000 - 3_600_000
"""The first time (ms) that a record has."""

RULES = rules_of("next", None)
PRODUCERS = (1001, 1002)
FEWEST_STEPS_BETWEEN_STARTS = 12

small = st.integers(-1, 3)


class BrokerMachine(RuleBasedStateMachine):
    """Requests of clients about one partition."""

    broker: ClassVar[BrokerProcess]
    examples: ClassVar[int] = 0
    steps: ClassVar[int] = 0

    @initialize()
    def begin(self) -> None:
        type(self).examples += 1
        self.topic = f"topic-{self.examples}"
        self.client = BrokerClient(self.broker.port)
        self.topic_id = self.client.create(self.topic).topic_id
        self.model = PartitionModel(RULES, self._leader_epoch())
        self.time = BEGUN
        self.sent: list[tuple[bytes, int]] = []
        self.since_start = 0

    def teardown(self) -> None:
        if hasattr(self, "client"):
            self.client.close()

    def _leader_epoch(self) -> int:
        answer = self.client.call("Metadata", 12, topics=[Message(name=self.topic)], allow_auto_topic_creation=False)
        return int(answer.topics[0].partitions[0].leader_epoch)

    def _epoch(self, ahead: int) -> int:
        """The epoch before the leader's, its own, the next one, or none."""
        return -1 if ahead > 1 else max(self.model.leader_epoch + ahead, 0)

    # ---- producing

    def _send(self, batch: bytes, acks: int) -> None:
        expected = self.model.produce(batch, acks)
        if acks == 0:
            data = Message(name=self.topic, partition_data=[Message(index=0, records=batch)])
            self.client.send("Produce", 9, Message(acks=0, timeout_ms=10000, topic_data=[data]))
            assert self._is_closed() == expected.closes
            if expected.closes:
                self.client.close()
                self.client = BrokerClient(self.broker.port)
            return
        answer = self.client.produce(self.topic, batch, acks)
        assert expected.response is not None
        found = (Error(answer.error_code), answer.base_offset, answer.log_start_offset)
        assert found == (*expected.response, expected.log_start)

    def _is_closed(self) -> bool:
        """Whether the broker has closed the connection; if not, the next request is answered."""
        try:
            assert self.client.call("ApiVersions", 0).error_code == 0
        except ConnectionError:
            return True
        return False

    def _batch(self, count: int, producer: int, epoch: int, sequence: int) -> bytes:
        self.time += 7
        records = [(self.time + (number * 5) % 3, b"key", b"%d" % (self.time + number)) for number in range(count)]
        if producer < 0:
            return new_batch(records)
        return new_batch(records, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)

    @rule(count=st.integers(1, 4), acks=st.sampled_from([-1, 1, 0]))
    def produce(self, count: int, acks: int) -> None:
        self._send(self._batch(count, -1, -1, -1), acks)

    @rule(
        count=st.integers(1, 3),
        producer=st.sampled_from(PRODUCERS),
        newer=st.sampled_from([0, 0, 0, 0, 1, -1]),
        ahead=st.sampled_from([0, 0, 0, 0, 1, -1]),
        acks=st.sampled_from([-1, -1, 1, 0]),
    )
    def produce_idempotently(self, count: int, producer: int, newer: int, ahead: int, acks: int) -> None:
        """The next batch of a producer, possibly of another epoch, possibly with a gap."""
        known = next((one for one in self.model.partition.producers if one.producer_id == producer), None)
        epoch = max((known.producer_epoch if known else 0) + newer, 0)
        following = known.last_sequence + 1 if known and not newer else 0
        batch = self._batch(count, producer, epoch, max(following + ahead, 0))
        self.sent.append((batch, acks))
        self._send(batch, acks)

    @precondition(lambda self: self.sent)
    @rule(back=st.integers(0, 7))
    def send_again(self, back: int) -> None:
        """A duplicate, if the broker still knows the batch."""
        batch, acks = self.sent[max(len(self.sent) - 1 - back, 0)]
        self._send(batch, acks)

    @rule(count=st.integers(1, 3), place=st.integers(61, 70), acks=st.sampled_from([-1, 1]))
    def produce_something_corrupt(self, count: int, place: int, acks: int) -> None:
        batch = bytearray(self._batch(count, -1, -1, -1))
        batch[place] ^= 0x20
        answer = self.client.produce(self.topic, bytes(batch), acks)
        assert (Error(answer.error_code), answer.base_offset) == (Error.CORRUPT_MESSAGE, -1)

    # ---- reading

    @rule(share=st.floats(0, 1), beside=small, epoch=small, last=small, size=st.sampled_from([1, 200, 1 << 20]))
    def fetch(self, share: float, beside: int, epoch: int, last: int, size: int) -> None:
        """From anywhere in the log, or just beside it."""
        log = self.model.log
        offset = log.start_offset + int(share * (log.end_offset - log.start_offset)) + (beside if beside != 1 else 0)
        asked, last_epoch = self._epoch(epoch), self._epoch(last)
        expected = self.model.fetch(offset, asked, last_epoch)
        wanted = Message(
            partition=0,
            fetch_offset=offset,
            current_leader_epoch=asked,
            last_fetched_epoch=last_epoch,
            partition_max_bytes=size,
        )
        topics = [Message(topic=self.topic, partitions=[wanted])]
        (topic,) = self.client.call("Fetch", 12, max_wait_ms=0, min_bytes=1, max_bytes=1 << 24, topics=topics).responses
        (answer,) = topic.partitions
        assert Error(answer.error_code) == expected.error
        given_back = (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset)
        assert given_back == (expected.high_watermark, expected.last_stable_offset, expected.log_start_offset)
        diverging = (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset)
        assert diverging == tuple(expected.diverging)
        assert stored_in(bytes(answer.records or b"")) == self.model.records(expected, size)

    @rule(ago=st.integers(-20, 400), epoch=small)
    def list_offset_by_time(self, ago: int, epoch: int) -> None:
        self._list_offset(self.time - ago, epoch)

    @rule(asked=st.sampled_from([-1, -2, -3]), epoch=small)
    def list_offset(self, asked: int, epoch: int) -> None:
        starts_within = self.model.segment_base < self.model.log.start_offset
        if asked != -3 or not starts_within:  # the newest record may lie before the start, as in Kafka
            self._list_offset(asked, epoch)

    def _list_offset(self, timestamp: int, epoch: int) -> None:
        asked = self._epoch(epoch)
        expected, found_time = self.model.list_offsets(timestamp, asked)
        answer = self._listed(timestamp, asked)
        found = (Error(answer.error_code), answer.offset, answer.leader_epoch, answer.timestamp)
        assert found == (*expected, found_time)

    def _listed(self, timestamp: int, epoch: int = -1) -> Message:
        wanted = Message(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)
        topics = [Message(name=self.topic, partitions=[wanted])]
        answer = self.client.call("ListOffsets", LIST_OFFSETS_VERSION, replica_id=-1, topics=topics)
        listed: Message = answer.topics[0].partitions[0]
        return listed

    @rule(back=st.integers(-2, 6), current=small)
    def offset_for_leader_epoch(self, back: int, current: int) -> None:
        asked, epoch = self._epoch(current), max(self.model.leader_epoch - back, 0)
        expected = self.model.offset_for_leader_epoch(asked, epoch)
        wanted = Message(partition=0, current_leader_epoch=asked, leader_epoch=epoch)
        topics = [Message(topic=self.topic, partitions=[wanted])]
        answer = self.client.call("OffsetForLeaderEpoch", 4, replica_id=-2, topics=topics).topics[0].partitions[0]
        assert Error(answer.error_code) == expected.error
        if expected.error == Error.NONE:
            assert (answer.leader_epoch, answer.end_offset) == tuple(expected.end)

    # ---- deleting

    @rule(share=st.floats(0, 1), beside=st.sampled_from([0, 0, 0, -1, 1]))
    def delete_records(self, share: float, beside: int) -> None:
        log = self.model.log
        self._delete(log.start_offset + int(share * (log.end_offset - log.start_offset) / 2) + beside)

    @precondition(lambda self: self.model.log.end_offset > self.model.log.start_offset + 12)
    @rule()
    def delete_all_records(self) -> None:
        self._delete(-1)

    def _delete(self, offset: int) -> None:
        expected = self.model.delete_records(offset)
        topics = [Message(name=self.topic, partitions=[Message(partition_index=0, offset=offset)])]
        answer = self.client.call("DeleteRecords", 2, topics=topics, timeout_ms=1000).topics[0].partitions[0]
        assert (Error(answer.error_code), answer.low_watermark) == (expected.error, expected.low_watermark)

    # ---- after each step

    @invariant()
    def count(self) -> None:
        type(self).steps += 1
        if hasattr(self, "since_start"):
            self.since_start += 1


class StoppingMachine(BrokerMachine):
    """The same, and the broker is stopped and killed on the way."""

    @precondition(lambda self: self.since_start >= FEWEST_STEPS_BETWEEN_STARTS)
    @rule(clean=st.booleans())
    def start_again(self, clean: bool) -> None:
        if clean:
            self.model.stop()
            assert self.broker.stop() == 0
        else:
            self.broker.kill()
        self.client.close()
        self.broker.start()
        self.client = BrokerClient(self.broker.port)
        self.since_start = 0
        before = self.model.leader_epoch
        epoch, start = self._leader_epoch(), self._listed(-2).offset
        assert epoch > before
        self.model.start(Offset(start), epoch, clean)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("machine") / "logs") as running:
        yield running


def drive(machine: type[BrokerMachine], broker: BrokerProcess, examples: int, steps: int, shrinks: bool = True) -> None:
    machine.broker, machine.steps = broker, 0
    checks = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=list(Phase) if shrinks else [Phase.generate],
    )
    run_state_machine_as_test(machine, settings=checks)
    assert machine.steps > examples * steps // 4, "hardly a step was taken"


def test_every_answer_is_the_specifications(served: BrokerProcess) -> None:
    drive(BrokerMachine, served, examples=8, steps=40)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant",
    ["no-sequence-check", "unfenced-requests", "no-divergence-check", "epoch-lookup-by-end", "epoch-lookup-as-designed"],
)
def test_a_broker_with_a_weakened_rule_is_noticed(tmp_path: Path, mutant: str) -> None:
    with (
        BrokerProcess(tmp_path / "logs", "--mutant", mutant) as broker,
        pytest.raises((AssertionError, ExceptionGroup)) as noticed,
    ):
        drive(BrokerMachine, broker, examples=150, steps=40, shrinks=False)
    assert "hardly a step" not in str(noticed.value)


STOPPING_EXAMPLES = int(os.environ.get("KSPEC_STOPS", "20" if is_night() else "4"))
"""Runs in which the broker is stopped and killed, again and again."""


@pytest.mark.slow
def test_every_answer_is_the_specifications_over_stops_and_kills(served: BrokerProcess) -> None:
    drive(StoppingMachine, served, examples=STOPPING_EXAMPLES, steps=80)
