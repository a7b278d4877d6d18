"""The graph of everything that may be sent to a controller, and the runs that cover what comes of it.

Two states are the same here if they differ in epochs, offsets and incarnations alone: no rule depends on those but by
comparing them with those of a request, and each comparison is a move of its own. The graph has what the model `controller`
leaves out: the order of replicas, requests that are refused, registrations, shutdowns, elections by request.
"""

from collections import Counter
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import combinations, count
from typing import Any, NamedTuple

from kspec.conformance.mirror.moves import (
    CancelReassignment,
    CreatePartition,
    Elect,
    Heartbeat,
    Move,
    ProposalFault,
    Propose,
    ProposeAgain,
    Reassign,
    Register,
    Unregister,
)
from kspec.conformance.mirror.outcomes import Pair, pair_of
from kspec.conformance.mirror.runs import MirrorRun, run_of
from kspec.conformance.mirror.taking import ControllerKnowledge, ImpossibleMoveError, RequestResult, request_of, taken
from kspec.spec.controller.protocol import Controller, ControllerProtocol
from kspec.spec.controller.rules.brokers import is_shutting_down
from kspec.spec.controller.state import ControllerState
from kspec.spec.messages.alter_partition import AlterPartitionRequest
from kspec.spec.metadata import EMPTY_IMAGE, NOBODY, PartitionRegistration, broker_of
from kspec.spec.values import NO_LEADER, BrokerId, Epoch

STRANGER = BrokerId(9)
"""A broker that is not registered."""

# ---- states


def set_up(run: MirrorRun, controller: Controller) -> ControllerKnowledge:
    """All brokers of a run registered and unfenced."""
    known = ControllerKnowledge(ControllerState(Epoch(1), EMPTY_IMAGE))
    for broker in run.broker_ids:
        for move in (Register(broker), Heartbeat(broker)):
            known = taken(controller, known, request_of(known, move)).known
    return known


def state_of(known: ControllerKnowledge) -> object:
    """A key that tells two states apart: how many brokers play which part. Which broker is which makes no difference."""
    partition, sent = known.partition, known.sent
    sessions = {session.broker: session for session in known.state.sessions}
    shutdowns = [one.controlled_shutdown_offset for one in sessions.values() if is_shutting_down(one)]
    copy = _copy_of(partition, sent)
    parts = []
    for entry in known.state.image.brokers:
        broker, session = entry.broker, sessions[entry.broker]
        replayed = sum(session.metadata_offset >= offset for offset in shutdowns)
        registered = (entry.fenced, entry.in_controlled_shutdown, is_shutting_down(session), replayed)
        parts.append((*registered, *_part_of(partition, broker), broker in copy))
    gone = () if partition is None else tuple(_part_of(partition, broker) for broker in _unregistered(known, partition))
    recovery = None if partition is None else partition.recovery
    return recovery, copy != NOBODY, tuple(sorted(parts)), tuple(sorted(gone))


def _part_of(partition: PartitionRegistration | None, broker: BrokerId) -> tuple[int, ...]:
    """The part that a broker plays in the partition."""
    if partition is None:
        return ()
    place = partition.replicas.index(broker) if broker in partition.replicas else -1
    sets = (partition.isr, partition.elr, partition.last_known_elr, partition.adding, partition.removing)
    return (place, broker == partition.leader, *(broker in one for one in sets))


def _unregistered(known: ControllerKnowledge, partition: PartitionRegistration) -> frozenset[BrokerId]:
    registered = {entry.broker for entry in known.state.image.brokers}
    return (frozenset(partition.replicas) | partition.elr | partition.last_known_elr) - registered


def _copy_of(partition: PartitionRegistration | None, sent: AlterPartitionRequest | None) -> frozenset[BrokerId]:
    """The ISR of the last proposal, if another copy of it has the present epochs; else nobody."""
    if partition is None or sent is None:
        return NOBODY
    present = (sent.leader_epoch, sent.partition_epoch) == (partition.leader_epoch, partition.partition_epoch)
    return frozenset(member.broker for member in sent.isr) if present else NOBODY


# ---- moves


def moves_at(run: MirrorRun, known: ControllerKnowledge) -> Iterator[Move]:
    """Everything that may be sent in a state."""
    partition = known.partition
    for broker in run.broker_ids:
        yield from _of_broker(known, broker)
    if partition is None:
        replicas = run.broker_ids[:3]
        yield from map(CreatePartition, (replicas, (replicas[0], replicas[0]), (replicas[0], STRANGER)))
        return
    yield from map(Propose, _changes(run, partition))
    yield from (Propose((member,), fault) for fault in ProposalFault for member in _odd_one(partition))
    if known.sent is not None:
        yield ProposeAgain()
    yield Elect()
    yield Elect(unclean=True)
    yield CancelReassignment()
    yield from map(Reassign, assignments(run.broker_ids))


def _of_broker(known: ControllerKnowledge, broker: BrokerId) -> Iterator[Move]:
    yield Heartbeat(broker)
    yield Heartbeat(broker, want_fence=True)
    yield Heartbeat(broker, want_shutdown=True)
    yield Heartbeat(broker, behind=True)
    yield Heartbeat(broker, stale=True)
    yield Register(broker)
    yield Register(broker, again=True)
    yield Register(broker, clean=True)
    if broker_of(known.state.image.brokers, broker) is not None:
        yield Unregister(broker)


def _changes(run: MirrorRun, partition: PartitionRegistration) -> Iterator[tuple[BrokerId, ...]]:
    """One broker in or out, two at once, nothing, or one that is no replica."""
    others = [replica for replica in partition.replicas if replica != partition.leader]
    yield ()
    for size in (1, 2):
        yield from combinations(others, size)
    yield from ((broker,) for broker in run.broker_ids if broker not in partition.replicas)


def _odd_one(partition: PartitionRegistration) -> tuple[BrokerId, ...]:
    """The first replica that does not lead."""
    return tuple(replica for replica in partition.replicas if replica != partition.leader)[:1]


def assignments(brokers: tuple[BrokerId, ...]) -> Iterator[tuple[BrokerId, ...]]:
    """Assignments of one to four brokers, each set with two preferred replicas; and two that are not valid."""
    for size in range(1, min(4, len(brokers)) + 1):
        for some in combinations(brokers, size):
            yield some
            if size > 1:
                yield (*some[1:], some[0])
    yield (brokers[0], brokers[0])
    yield (brokers[0], STRANGER)


# ---- the graph


class RequestGraph(NamedTuple):
    """The graph as far as it was explored: its size, and a run to each pair of action and outcome."""

    states: int
    transitions: int
    found: dict[Pair, tuple[Move, ...]]


def explore(run: MirrorRun, rules: ControllerProtocol, most_states: int) -> RequestGraph:
    """Explore the graph of a run's settings up to a number of states, and keep a run to each pair of action and outcome.

    States of a shape that few states before had come first, then those with the shortest runs. What happens rarely counts
    as several steps, so that it does not crowd out the rest.
    """
    controller = run.controller(rules)
    first = set_up(run, controller)
    seen = {state_of(first)}
    order = count()
    shapes: Counter[object] = Counter()
    waiting: list[tuple[int, int, int, ControllerKnowledge, tuple[Move, ...]]] = [(0, 0, next(order), first, ())]
    found: dict[Pair, tuple[Move, ...]] = {}
    transitions = 0
    while waiting:
        _, cost, _, known, path = heappop(waiting)
        for move, done in _transitions(run, controller, known):
            transitions += 1
            found.setdefault(pair_of(known, move, done), (*path, move))
            after = state_of(done.known)
            if after not in seen and len(seen) < most_states:
                seen.add(after)
                shape = _shape_of(done.known)
                shapes[shape] += 1
                heappush(waiting, (shapes[shape], cost + _cost(move), next(order), done.known, (*path, move)))
    return RequestGraph(len(seen), transitions, found)


def _shape_of(known: ControllerKnowledge) -> object:
    """A key that many similar states share: how large each set of brokers is, and whether there is a leader."""
    partition, brokers = known.partition, known.state.image.brokers
    up = sum(not entry.fenced for entry in brokers), sum(entry.in_controlled_shutdown for entry in brokers)
    if partition is None:
        return up
    sets = (partition.replicas, partition.isr, partition.elr, partition.last_known_elr, partition.adding, partition.removing)
    return up, partition.leader == NO_LEADER, partition.recovery, tuple(map(len, sets))


def _cost(move: Move) -> int:
    """The number of steps that a move counts for."""
    match move:
        case CreatePartition():
            return 0
        case Unregister():
            return 6
        case Register() | Heartbeat(want_shutdown=True):
            return 3
        case _:
            return 1


def _transitions(run: MirrorRun, controller: Controller, known: ControllerKnowledge) -> Iterator[tuple[Move, RequestResult]]:
    for move in moves_at(run, known):
        try:
            request = request_of(known, move)
        except ImpossibleMoveError:
            continue
        yield move, taken(controller, known, request)


def pairs_of(run: MirrorRun, rules: ControllerProtocol) -> list[Pair]:
    """The pairs of action and outcome along a run."""
    controller = run.controller(rules)
    known, pairs = set_up(run, controller), []
    for step in run.steps:
        done = taken(controller, known, request_of(known, step.move))
        pairs.append(pair_of(known, step.move, done))
        known = done.known
    return pairs


def covering(found: dict[Pair, tuple[Move, ...]], template: MirrorRun, rules: ControllerProtocol) -> Iterator[MirrorRun]:
    """Runs that together cover all pairs: the longest first, each for a pair that none before has covered."""
    covered: set[Pair] = set()
    settings: dict[str, Any] = {name: value for name, value in template._asdict().items() if name not in ("name", "steps")}
    for pair, moves in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        if pair in covered:
            continue
        run = run_of(f"{template.name}: {pair[0]} -> {pair[1]}", *moves, **settings)
        covered.update(pairs_of(run, rules))
        yield run


def tells_apart(run: MirrorRun, rules: ControllerProtocol, others: ControllerProtocol) -> bool:
    """Whether two sets of rules answer or write differently along a run."""
    one, other = run.controller(rules), run.controller(others)
    known = set_up(run, one)
    if known != set_up(run, other):
        return True
    for step in run.steps:
        request = request_of(known, step.move)
        done, otherwise = taken(one, known, request), taken(other, known, request)
        if (done.answer, done.records) != (otherwise.answer, otherwise.records):
            return True
        known = done.known
    return False
