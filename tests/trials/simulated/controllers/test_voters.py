"""Voters that change in simulated clusters (KIP-853), amid all else: `next` keeps all promises, and weaker rules do not."""

import json
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from kspec.cli.broker.serve import rules_of
from kspec.cli.broker.simulate_cluster import setups_of
from kspec.cli.main import cli
from kspec.spec.controller.protocol import Controller
from kspec.spec.log.batch import Batch
from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.log.local_log import LocalLog
from kspec.spec.messages.quorum.voters import VoterSetEntry
from kspec.spec.mutation import weaken, with_field_of
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.replica import ElectionState, QuorumReplica, QuorumServer, QuorumSettings
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.releases.mutants.quorum import QUORUM_MUTANTS
from kspec.spec.releases.names import kraft_of
from kspec.spec.releases.quorum import QUORUM_4_2, QUORUM_NEXT
from kspec.spec.step import Step
from kspec.spec.values import BrokerId, Epoch, Offset, ReplicaKey
from kspec.trials.simulated.checks.quorum import QuorumChecks
from kspec.trials.simulated.cluster import SimulatedCluster
from kspec.trials.simulated.controllers.several import SeveralControllers
from kspec.trials.simulated.disk import Survives
from kspec.trials.simulated.history import BrokenPromiseError
from kspec.trials.simulated.kinds.catalogue import KINDS, VOTER_KINDS
from kspec.trials.simulated.kinds.quorum import LostVoterDisk, VoterFault, VoterRemoval
from kspec.trials.simulated.kinds.site import Fault, FaultSite
from kspec.trials.simulated.nodes import ControllerNode
from kspec.trials.simulated.plan import RunConditions, conditions_of
from kspec.trials.simulated.runs import run
from kspec.trials.simulated.setup import RunSetup
from tests.limits.turns import Turns

BROKERS, FIRST = (1, 2, 3), (100, 101, 102)


def setup(seed: int = 1, quorum: QuorumProtocol | None = None, conditions: RunConditions | None = None) -> RunSetup:
    protocols = dict.fromkeys(BROKERS, BROKER_NEXT)
    return RunSetup(seed, protocols, Controller(KRAFT_NEXT), conditions=conditions, controllers=3, quorum=quorum)


def of_kinds(*kinds: type[VoterFault]) -> RunConditions:
    weights = tuple((kind, 1.0) for kind in kinds)
    return RunConditions(weights=weights, partitions=1, pauses=(200, 900), longest=1_500, snapshot_bytes=3_000)


@pytest.mark.parametrize("kind", VOTER_KINDS, ids=lambda kind: kind.__name__)
def test_one_kind_of_fault_alone(kind: type[VoterFault]) -> None:
    outcome = run(setup(conditions=of_kinds(kind)), 700)
    assert outcome.broken is None
    assert {fault.kind for fault in outcome.faults} == {kind}
    assert outcome.acknowledged > 20


def test_seeds_with_one_controller_have_none_of_these_faults_and_others_do() -> None:
    assert not set(VOTER_KINDS) & {kind for kind, _ in conditions_of(1).weights}
    assert {kind for kind, weight in setup(1).conditions_now.weights if weight} >= set(VOTER_KINDS)
    assert setup(1).conditions_now.weights[: len(KINDS)] == conditions_of(1).weights
    assert replace(setup(1), controllers=1).conditions_now == conditions_of(1)


def begun(quorum: QuorumProtocol | None = None) -> SimulatedCluster:
    """Controllers of which one decides, without brokers and clients."""
    cluster = SimulatedCluster(setup(quorum=quorum, conditions=RunConditions(weights=(), partitions=1)))
    cluster.controller.start()
    go_on(cluster, 5_000)
    assert cluster.controller.up
    return cluster


def go_on(cluster: SimulatedCluster, ms: int) -> None:
    """Let time pass."""
    end, turns = cluster.clock.now_ms + ms, Turns()
    while cluster.clock.now_ms < end:
        turns.go()
        cluster.next_event()


def active_of(cluster: SimulatedCluster) -> ControllerNode:
    return next(node for node in cluster.controllers if node.node_id == cluster.active_controller())


def test_an_operator_does_one_thing_at_a_time() -> None:
    cluster = begun()
    operator = cluster.voters
    assert operator is not None
    first, second, third = cluster.controllers
    assert operator.is_whole
    assert operator.may_lose_disk()
    assert operator.remove(first)
    assert not operator.remove(second), "a request is under way"
    assert not operator.may_lose_disk()
    go_on(cluster, 1_500)
    assert operator.changes == 1
    assert operator.is_done, "the first is away, as it should be"
    assert not operator.is_whole
    assert not operator.remove(first), "it is no voter"
    assert operator.remove(second)
    go_on(cluster, 3_000)
    assert not operator.remove(third), "the last one"
    operator.away.clear()
    for _ in range(4):
        operator.mend()
        go_on(cluster, 1_000)
    assert operator.is_whole
    assert operator.changes == 4


def test_nobody_is_removed_while_the_disk_of_a_voter_is_lost() -> None:
    cluster = begun()
    operator = cluster.voters
    assert operator is not None
    lost = active_of(cluster)
    lost.kill()
    lost.lose_disk()
    go_on(cluster, 5_000)
    others = [node for node in cluster.controllers if node is not lost]
    assert not any(operator.remove(node) for node in others)
    assert not operator.may_lose_disk()
    lost.start()
    go_on(cluster, 1_000)
    before = lost.key
    assert lost.core.voter.state.role == VoterRole.FOLLOWER
    for _ in range(3):
        operator.mend()
        go_on(cluster, 1_000)
    assert operator.is_whole
    assert lost.key == before
    assert operator.changes == 2


def test_a_request_without_an_answer_may_still_arrive() -> None:
    cluster = begun()
    operator, active = cluster.voters, active_of(cluster)
    assert operator is not None
    standby = next(node for node in cluster.controllers if node is not active)
    active.pause()
    assert operator.remove(standby)
    go_on(cluster, 5_000)
    assert not operator.may_lose_disk()
    active.go_on()
    go_on(cluster, 20_000)
    operator.away.clear()
    operator.mend()
    go_on(cluster, 1_000)
    assert operator.may_lose_disk()


def test_a_release_without_voters_in_the_log_keeps_those_of_its_settings() -> None:
    older = replace(setup(conditions=of_kinds(*VOTER_KINDS)), controller=Controller(kraft_of("3.2")))
    assert not older.has_voters_in_log
    assert SimulatedCluster(older).voters is None
    outcome = run(older, 300)
    assert outcome.broken is None
    assert not {VoterRemoval, LostVoterDisk} & {fault.kind for fault in outcome.faults}


# ---- what weaker rules of the quorum lead to


def with_rule(name: str) -> QuorumProtocol:
    """`next`, with one rule as 4.4 has it."""
    return with_field_of(QUORUM_NEXT, name, QUORUM_4_2)


def test_who_has_led_and_lost_its_disk_waits_until_others_have_elected() -> None:
    """Up to 4.4 it is told that it leads, and ends."""
    site = FaultSite(begun())
    leader = site.cluster.controller.node_id
    found = (Fault(500, LostVoterDisk, 1, 2, 200, Survives.ALL, number) for number in range(100))
    fault = next(one for one in found if LostVoterDisk(site, one).controller.node_id == leader)
    conditions = RunConditions(weights=(), partitions=1)
    assert run(setup(conditions=conditions), 900, [fault]).broken is None
    broken = run(setup(quorum=with_rule("stops_if_said_to_lead"), conditions=conditions), 900, [fault]).broken
    assert broken is not None
    assert broken.name == "NoIllegalState"


def test_a_fetch_that_waits_is_asked_for_anew_once_a_step_is_carried_out() -> None:
    """A controller followed another by an answer with records, and read its log for a fetch before it had written them."""
    assert run(setup(347), 700).broken is None


def removed_late(cluster: SimulatedCluster) -> ControllerNode:
    """The leader, removed from the voters while another voter stands still, so that who has asked is told of a timeout."""
    operator, active = cluster.voters, active_of(cluster)
    assert operator is not None
    standby = next(node for node in cluster.controllers if node is not active)
    standby.pause()
    assert operator.remove(active)
    go_on(cluster, 2_500)
    assert active.core.voter.leads
    standby.go_on()
    go_on(cluster, 2_500)
    return active


def test_a_leader_resigns_whose_removal_is_committed_late() -> None:
    """Up to 4.4 it leads on, if nobody waits for its removal any more."""
    cluster = begun()
    active = removed_late(cluster)
    assert not active.core.voter.leads
    assert active_of(cluster) is not active
    with pytest.raises(BrokenPromiseError, match="RemovedLeaderResigns"):
        removed_late(begun(with_rule("resigns_when_removed")))


def noted(checks: QuorumChecks, node: int = 100, **changes: Any) -> None:
    """Note a step after which a controller has this state."""
    server = QuorumServer(QUORUM_NEXT, QuorumSettings(), BrokerId(node))
    voters = frozenset(ReplicaKey(BrokerId(one)) for one in FIRST)
    state = QuorumReplica(LocalLog(EMPTY_EPOCH_LOG), (VoterSetEntry(Offset(1), voters),), voters_in_log=True)
    checks.note(None, server, None, (), Step(state._replace(**changes)))
    checks.look()


def log_of(epochs: list[int], high_watermark: int) -> LocalLog[EpochLog]:
    """A log with a record of each of these epochs."""
    log = EMPTY_EPOCH_LOG
    for epoch in epochs:
        log = log.append((Batch(1, Epoch(epoch)),))
    return LocalLog(log, Offset(high_watermark))


def leads(epoch: int) -> dict[str, Any]:
    return {"role": VoterRole.LEADER, "election": ElectionState(Epoch(epoch))}


def test_what_quorums_exclude_is_seen_in_steps() -> None:
    checks = QuorumChecks()
    noted(checks, election=ElectionState(Epoch(1), voted=ReplicaKey(BrokerId(101))))
    noted(checks, election=ElectionState(Epoch(2), voted=ReplicaKey(BrokerId(102))))
    noted(checks, local=log_of([1, 1, 2], 2), **leads(3))
    noted(checks, 101, local=log_of([1, 1, 4], 2), **leads(4))
    noted(checks, 102, local=log_of([1], 1))
    with pytest.raises(BrokenPromiseError, match="VotesOnce"):
        noted(deepcopy(checks), election=ElectionState(Epoch(1), voted=ReplicaKey(BrokerId(102))))
    with pytest.raises(BrokenPromiseError, match="ElectionSafety"):
        noted(deepcopy(checks), 101, local=log_of([1, 1], 2), **leads(3))
    with pytest.raises(BrokenPromiseError, match=r"CommittedIsFinal.*epochs 1 from 0, 3 from 1 below 2"):
        noted(deepcopy(checks), 102, local=log_of([1, 3], 2))
    with pytest.raises(BrokenPromiseError, match=r"CommittedIsFinal.*other voters at 1"):
        noted(deepcopy(checks), 102, local=log_of([1, 1], 2), voter_sets=(VoterSetEntry(Offset(1), frozenset()),))
    with pytest.raises(BrokenPromiseError, match="CommittedOnNewestLeader"):
        noted(deepcopy(checks), 102, local=log_of([1], 1), **leads(5))
    with pytest.raises(BrokenPromiseError, match="CommittedOnNewestLeader"):
        noted(deepcopy(checks), 102, local=log_of([1, 3], 1), **leads(5))
    noted(checks, 102, local=log_of([1], 1), **leads(2))
    with suppress(BrokenPromiseError):
        noted(checks, 101, local=log_of([1, 1], 2), **leads(3))
    with pytest.raises(BrokenPromiseError, match="ElectionSafety"):  # the first that was wrong
        noted(checks, 102, local=log_of([1, 3], 2))


def test_a_change_that_is_acknowledged_and_not_committed_is_seen() -> None:
    cluster = begun()
    operator = cluster.voters
    assert operator is not None
    assert isinstance(cluster.controller, SeveralControllers)
    checks = cluster.controller.checks
    operator._acknowledged(cluster.controllers[0].key, is_added=True, before=-1)
    checks.voter_sets.clear()
    with pytest.raises(BrokenPromiseError, match="AcknowledgedIsCommitted"):
        operator._acknowledged(cluster.controllers[0].key, is_added=True, before=-1)


def test_the_command_has_three_controllers_unless_it_is_told_otherwise() -> None:
    def told(*options: str) -> tuple[int, dict[str, Any]]:
        command = ["simulate-cluster", "--steps", "300", "--workers", "1", "--json", *options]
        done = CliRunner().invoke(cli, command, standalone_mode=False)
        return done.return_value, json.loads(done.stdout)

    assert told() == (0, run(setup(), 300).as_json())
    assert told("--controllers", "1") == (0, run(replace(setup(), controllers=1), 300).as_json())


@pytest.mark.parametrize(
    ("mutant", "weakened"),
    [
        ("votes-again", weaken(QUORUM_NEXT, next(one for one in QUORUM_MUTANTS if one.name == "votes-again"))),
        ("repaired:quorum: flushes_first@4.4", with_rule("flushes_first")),
    ],
)
def test_a_mutant_of_the_command_may_be_a_rule_of_the_quorum(mutant: str, weakened: QuorumProtocol) -> None:
    rules = rules_of("next", mutant)
    assert rules.quorum == weakened
    assert (rules.broker, rules.controller) == (BROKER_NEXT, Controller(KRAFT_NEXT))
    (found,) = setups_of(range(1, 2), {"1": rules, "controller": rules}, "all", 3, False, False)
    assert found.quorum == weakened
    nodes = SimulatedCluster(replace(setup(), quorum=weakened)).controllers
    nodes[0].start()
    assert nodes[0].core.voter.server.protocol == weakened
