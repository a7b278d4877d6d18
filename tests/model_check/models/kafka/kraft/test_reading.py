"""Model `kafka`: of each image a broker keeps only what it would make of it. That asks of it what the whole image asks."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from kspec.model_check.graphs.edges import state_graph
from kspec.model_check.models import MODELS
from kspec.model_check.models.kafka.kraft.metadata import whole
from kspec.model_check.models.kafka.party import STRANGER, PartyRules, broker
from kspec.model_check.models.kafka.reductions import image_for, is_same_to
from kspec.model_check.models.kafka.values import ModelController, Process
from kspec.model_check.models.parts import LATE, PARTITION
from kspec.spec.broker.partition import Handled, Partition
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.roles import apply_change
from kspec.spec.broker.rules.fetcher import NOT_FETCHING
from kspec.spec.broker.rules.lifecycle import BrokerState
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.metadata import (
    NOBODY,
    UNCHANGED,
    LeaderRecoveryState,
    LocalChange,
    LocalRole,
    PartitionRegistration,
    local_change,
)
from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.values import NO_PARTITION_EPOCH, BrokerId, Epoch, Offset, Record
from tests.limits.turns import Turns

BROKERS = (BrokerId(1), BrokerId(2), BrokerId(3))
TWO_RECORDS = LocalLog(EMPTY_LOG.append((Record(1, Epoch(0)), Record(2, Epoch(0)))), Offset(1))

REASSIGNED = {"min_isr": 1, "elections": 1, "reassignments": 2, "values": 0}
"""Replicas come and go, some of them without a new leader epoch."""

FENCED = {"min_isr": 1, "elections": 1, "fencings": 1, "isr_shrinks": 1, "values": 0}


@cache
def decisions(bounds: tuple[tuple[str, Any], ...]) -> dict[ModelController, set[ModelController]]:
    """States of the controller that can be reached, each with those after its next decision."""
    model = MODELS["kafka"].build({"release": "next", **dict(bounds)})
    graph = state_graph(model)
    held, transitions = graph.values_of(model.slots[0].position), graph.transitions
    after: dict[ModelController, set[ModelController]] = {cluster: set() for cluster in held.known}
    for one, other in zip(held.numbers[transitions.source], held.numbers[transitions.target], strict=True):
        if one != other:
            after[held.known[one]].add(held.known[other])
    return after


def in_a_row(bounds: dict[str, Any]) -> Iterator[tuple[ModelController, ModelController]]:
    """Pairs of a state of the controller and one that it may have any number of decisions later."""
    after = decisions(tuple(bounds.items()))
    for first in after:
        later, waiting = set[ModelController](), [first]
        turns = Turns()
        while waiting:
            turns.go()
            new = after[waiting.pop()] - later
            later |= new
            waiting += new
        yield from ((first, cluster) for cluster in later)


def face(own: BrokerId, cluster: ModelController) -> PartitionRegistration | None:
    return whole(image_for(own, cluster, remembers=False).topic)


def asked(before: PartitionRegistration | None, after: PartitionRegistration | None, own: BrokerId) -> LocalChange:
    """The task of a broker, by what brokers read of it.

    A leader reads all but what only the controller reads. A follower reads who leads since when, and whether it is in sync
    itself; to follow whom it follows already is nothing.
    """
    change = local_change(before, after, own)
    announced = change.registration
    if announced is None:
        return change
    if change.role == LocalRole.LEADER:
        public = announced._replace(recovery=LeaderRecoveryState.RECOVERED, elr=NOBODY, last_known_elr=NOBODY)
        return change._replace(registration=public)
    if before is not None and own in before.replicas and _term(before) == _term(announced):
        return UNCHANGED
    read = PartitionRegistration((own,), announced.isr & {own}, *_term(announced), NO_PARTITION_EPOCH)
    return change._replace(registration=read)


def _term(partition: PartitionRegistration) -> tuple[BrokerId, Epoch]:
    return partition.leader, partition.leader_epoch


BOUNDS = pytest.mark.parametrize("bounds", [REASSIGNED, pytest.param(FENCED, marks=pytest.mark.nightly)], ids=str)


@pytest.mark.slow
@BOUNDS
def test_what_a_broker_makes_of_images_asks_of_it_what_whole_images_ask(bounds: dict[str, Any]) -> None:
    roles = set()
    for before, after in in_a_row(bounds):
        for own in BROKERS:
            expected = asked(whole(before.topic), whole(after.topic), own)
            assert asked(face(own, before), face(own, after), own) == expected, (own, before, after)
            roles.add(expected.role)
    assert roles == {*LocalRole} if bounds == REASSIGNED else roles == {*LocalRole} - {LocalRole.DELETED}


def test_some_replicas_come_without_a_new_leader_epoch() -> None:
    """A broker that only looked at the leader and its epoch would not learn of its replica."""
    assert any(
        (before.topic.leader, before.topic.leader_epoch) == (after.topic.leader, after.topic.leader_epoch)
        and before.topic.replicas < after.topic.replicas
        for before, after in in_a_row(REASSIGNED)
    )


@pytest.mark.slow
@BOUNDS
@pytest.mark.parametrize("protocol", [BROKER_RELEASES[0], BROKER_RELEASES[-1]], ids=lambda protocol: str(protocol.name))
def test_images_that_become_one_ask_for_nothing(protocol: BrokerProtocol, bounds: dict[str, Any]) -> None:
    """So it does not matter when a broker takes the later one. (A follower keeps no partition epoch: see `role_of`.)"""
    done = list(merged(protocol, bounds, STRANGER))
    assert all((step.state._replace(isr=taken.isr), step.effects) == (taken, ()) for taken, step in done)
    assert done


@BOUNDS
def test_who_is_told_to_stop_may_go_on_fetching(bounds: dict[str, Any]) -> None:
    """The one exception: out of the ISR, it stops fetching in Kafka. Here it may go on or not: no fetch has to happen."""
    stopping = STRANGER._replace(life=STRANGER.life._replace(state=BrokerState.PENDING_CONTROLLED_SHUTDOWN))
    done = list(merged(BROKER_RELEASES[-1], bounds, stopping))
    assert all(step.state._replace(isr=taken.isr) in (taken, taken._replace(fetcher=NOT_FETCHING)) for taken, step in done)
    assert not any(step.effects for _, step in done)
    assert done


def merged(
    protocol: BrokerProtocol, bounds: dict[str, Any], process: Process
) -> Iterator[tuple[Partition[RecordLog], Handled[RecordLog]]]:
    """A broker's partition after an image, and what a later one that takes its place would do, were it applied."""
    for before, after in in_a_row(bounds):
        for own in BROKERS:
            if is_same_to(own, *(image_for(own, cluster, remembers=False) for cluster in (before, after))):
                self_ = broker(PartyRules(protocol, min_isr=1), own, process, before.brokers)
                first = local_change(None, whole(before.topic), own)
                taken = apply_change(self_, Partition(PARTITION, TWO_RECORDS), first, LATE).state
                change = local_change(whole(before.topic), whole(after.topic), own)
                yield taken, apply_change(self_, taken, change, LATE)
