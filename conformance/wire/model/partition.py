"""The one partition that most subjects are about: its broker, its state, and how its epochs and answers look on the wire."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from kspec.conformance.wire.exchange import Constraint, Exchange, Hole, equals
from kspec.conformance.wire.model.requests import (
    PRODUCED,
    TOPIC,
    create_topic,
    init_producer,
    look_up_topic,
    restarted,
    wait_for_leader,
)
from kspec.conformance.wire.model.subject import Move, MoveResult
from kspec.spec.broker.effects import AnswerProducer, CloseConnection
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.partition import Broker, BrokerSettings, Partition
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.roles import become_leader
from kspec.spec.log.batch import Batch
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.produce import ProduceRequest, ProduceResponse
from kspec.spec.metadata import PartitionRegistration
from kspec.spec.releases.broker import NEWEST
from kspec.spec.step import Reply
from kspec.spec.values import NO_EPOCH, BrokerEpoch, BrokerId, Epoch, MonotonicMs, Offset, PartitionEpoch, PartitionId

ReplyT = TypeVar("ReplyT")

SELF = BrokerId(1)
CURRENT = Epoch(5)
"""The leader epoch in the model. On the wire it is whatever the topic has, and older and newer ones are told by it."""

OLDER, NEWER = Epoch(CURRENT - 1), Epoch(CURRENT + 1)

EPOCHS: tuple[tuple[str, Epoch], ...] = (("", NO_EPOCH), ("current", CURRENT), ("older", OLDER), ("newer", NEWER))
"""The epochs that a client may claim: none, or one that is told by the current one."""

SECOND, THIRD = Epoch(CURRENT + 2), Epoch(CURRENT + 4)
"""The leader epochs after one restart of the broker, and after two."""

HOLES = {OLDER: Hole("older_epoch"), NEWER: Hole("epoch_0", 1), Epoch(SECOND + 1): Hole("epoch_1", 1)}
HOLES |= {epoch: Hole(f"epoch_{number}") for number, epoch in enumerate((CURRENT, SECOND, THIRD))}

Led = Partition[RecordLog]

INTERVAL_MS = 1000
"""Between the timestamps of a partition's records."""


class LogState(NamedTuple):
    """The partition, and whether its topic's settings allow deletion.

    A record's value is its timestamp, in ms after the run's begin.
    """

    partition: Led
    deletes_records: bool = True


def broker(protocol: BrokerProtocol, deletes_records: bool = True) -> Broker:
    """The broker as the handlers know it: alone."""
    return Broker(SELF, protocol, BrokerEpoch(1), settings=BrokerSettings(deletes_records=deletes_records))


def led_partition() -> Led:
    """An empty partition of one replica, just created."""
    empty: Led = Partition(PartitionId(0), LocalLog(EMPTY_LOG))
    registration = PartitionRegistration((SELF,), frozenset({SELF}), SELF, CURRENT, PartitionEpoch(0))
    return become_leader(broker(NEWEST), empty, registration, MonotonicMs(0)).state


def on_wire(epoch: Epoch) -> Hole | int:
    """An epoch of the model as clients say it."""
    return HOLES.get(epoch, int(epoch))


class BatchOutcome(NamedTuple):
    """The outcome of a batch: the partition after it, and the answer; none if there is none, or the connection is closed."""

    partition: Led
    answer: ProduceResponse | None
    closed: bool


def append(protocol: BrokerProtocol, partition: Led, acks: int, batch: Batch) -> BatchOutcome:
    """Give a batch to the leader."""
    step = handle_produce(broker(protocol), partition, ProduceRequest(0, acks, batch), MonotonicMs(0))
    answers = [effect.response for effect in step.effects if isinstance(effect, AnswerProducer)]
    closed = any(isinstance(effect, CloseConnection) for effect in step.effects)
    return BatchOutcome(step.state, answers[0] if answers else None, closed)


def stored_at(answer: ProduceResponse, partition: Led) -> tuple[Constraint, ...]:
    """Constraints on what a producer is told of its batch, whose topic keeps the times of producers."""
    return (
        equals(f"{PRODUCED}.base_offset", answer.base_offset),
        equals(f"{PRODUCED}.log_append_time_ms", -1),
        equals(f"{PRODUCED}.log_start_offset", partition.local.log.start_offset),
    )


def reply_of(effects: tuple[Any, ...], kind: type[ReplyT]) -> ReplyT:
    """The answer among a step's effects."""
    (found,) = [effect.message for effect in effects if isinstance(effect, Reply) and isinstance(effect.message, kind)]
    return found


def next_time(partition: Led) -> int:
    """The timestamp of the next record, in ms after the run's begin."""
    return int(partition.local.log.end_offset) * INTERVAL_MS


def time_of(partition: Led, offset: Offset) -> int:
    """The timestamp of a record."""
    return int(partition.local.log.records[offset - partition.local.log.start_offset].value)


def offsets_of(base: Offset, count: int) -> tuple[int, ...]:
    """The offsets of so many records."""
    return tuple(range(base, base + count))


def topic_ready(configs: tuple[tuple[str, str], ...], holes: frozenset[str]) -> tuple[Exchange, ...]:
    """A new topic that the broker leads, and a producer's id for each hole that is for one.

    Where an older leader epoch is needed, the broker is restarted: the topic then has had one.
    """
    producers = sorted(hole for hole in holes if hole.startswith("producer_id"))
    made = tuple(map(init_producer, producers))
    again = (restarted("epoch_0"),) if "older_epoch" in holes else ()
    return (create_topic(TOPIC, configs), look_up_topic(), wait_for_leader(), *again, *made)


RESTARTED = "what is acknowledged is there after a restart, and what was deleted is not"


def restart_move(log_of: Callable[[Any], LogState], with_log: Callable[[Any, LogState], Any]) -> Move:
    """The broker is restarted, and leads the partition again in a new leader epoch. The functions find it in a state."""

    def take(protocol: BrokerProtocol, state: Any) -> MoveResult | None:
        log = log_of(state)
        partition = log.partition
        if partition.leader_epoch == THIRD:
            return None
        epoch = Epoch(partition.leader_epoch + 2)
        version = PartitionEpoch(partition.isr.partition_epoch + 1)
        registration = PartitionRegistration((SELF,), frozenset({SELF}), SELF, epoch, version)
        step = become_leader(broker(protocol), partition, registration, MonotonicMs(0))
        name = f"epoch_{(epoch - CURRENT) // 2}"
        exchange = restarted(name, partition.local.log.end_offset)
        return MoveResult(with_log(state, log._replace(partition=step.state)), exchange)

    return Move("restart", "the broker is restarted", become_leader, RESTARTED, take)


def keeps_records(state: LogState) -> tuple[tuple[str, str], ...]:
    """The settings of a topic: none of its records goes by itself."""
    return (("cleanup.policy", "delete" if state.deletes_records else "compact"),)
