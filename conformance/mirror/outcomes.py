"""Outcomes of moves, in words that many runs share: the error, and what each record changes."""

from collections.abc import Iterator

from kspec.conformance.mirror.moves import Move, ProposalFault, Propose
from kspec.conformance.mirror.taking import ControllerKnowledge, RequestResult
from kspec.spec.messages.alter_partition import AlterPartitionResponse
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatResponse
from kspec.spec.metadata import (
    NO_LEADER_CHANGE,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRegistration,
)
from kspec.spec.values import NO_LEADER, BrokerId, Error

Pair = tuple[str, str]
"""An action and its outcome, in words."""


def pair_of(known: ControllerKnowledge, move: Move, done: RequestResult) -> Pair:
    """A move and its outcome."""
    return action_of(move), outcome_of(known, done)


def action_of(move: Move) -> str:
    """The kind of a move, without the brokers that it names."""
    words = [name for name, value in move._asdict().items() if value is True]
    if isinstance(move, Propose) and move.fault != ProposalFault.NONE:
        words.append(str(move.fault.value))
    return " ".join((type(move).__name__, *words)).replace("_", " ")


def outcome_of(before: ControllerKnowledge, done: RequestResult) -> str:
    """The outcome of a move: the answer's error, and what each record changes, without the brokers that it names."""
    words = [done.answer.error.name]
    if isinstance(done.answer, BrokerHeartbeatResponse) and done.answer.error == Error.NONE:
        said = ("is_caught_up", "is_fenced", "should_shut_down")
        words += [name.replace("_", " ") for name in said if getattr(done.answer, name)]
    if isinstance(done.answer, AlterPartitionResponse) and done.answer.error == Error.NONE and not done.records:
        words.append("as it is")
    return ", ".join((*words, *(f"[{_record_in_words(before, record)}]" for record in done.records)))


def _record_in_words(before: ControllerKnowledge, record: MetadataRecord) -> str:
    partition = before.partition
    match record:
        case PartitionChangeRecord() if partition is not None:
            return ", ".join(_changes_in_words(partition, record)) or "partition epoch"
        case BrokerRegistrationChangeRecord():
            return ", ".join(f"{name} {value}" for name, value in record._asdict().items() if isinstance(value, bool))
        case _:
            return type(record).__name__


def _changes_in_words(partition: PartitionRegistration, record: PartitionChangeRecord) -> Iterator[str]:
    if record.leader != NO_LEADER_CHANGE:
        yield f"leader {_election_in_words(partition, record)}"
    for name in ("isr", "elr", "last_known_elr", "adding", "removing"):
        now, then = getattr(record, name), getattr(partition, name)
        if now is not None:
            yield f"{name.replace('_', ' ')} {_set_in_words(then, now)}"
    if record.replicas is not None:
        yield f"replicas {_set_in_words(frozenset(partition.replicas), frozenset(record.replicas))}"
    if record.recovery is not None:
        yield record.recovery.name


def _election_in_words(partition: PartitionRegistration, record: PartitionChangeRecord) -> str:
    if record.leader == NO_LEADER:
        return "none"
    if record.leader == partition.leader:
        return "in a new epoch"
    for name in ("isr", "elr", "last_known_elr"):
        if record.leader in getattr(partition, name):
            return f"from {name.replace('_', ' ')}"
    return "from outside"


def _set_in_words(then: frozenset[BrokerId], now: frozenset[BrokerId]) -> str:
    if not now:
        return "empty"
    if now == then:
        return "reordered"
    return "grows" if now > then else "shrinks" if now < then else "changes"
