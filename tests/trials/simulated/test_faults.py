"""Each kind of fault, alone: it happens, and `next` keeps all promises."""

from itertools import islice

import pytest

from kspec.spec.controller.protocol import Controller
from kspec.spec.releases.broker import BROKER_NEXT, BROKER_RELEASES
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.releases.names import kraft_of
from kspec.spec.topics import TopicPartition
from kspec.spec.values import Instant, TimestampMs
from kspec.trials.simulated.clients.client import ClientEnvironment
from kspec.trials.simulated.clients.partitions import ProducerClient
from kspec.trials.simulated.cluster import SimulatedCluster
from kspec.trials.simulated.disk import Survives
from kspec.trials.simulated.ids import FIRST_CLIENT_ID, TOPIC
from kspec.trials.simulated.kinds.catalogue import KINDS
from kspec.trials.simulated.kinds.connections import Interruption
from kspec.trials.simulated.kinds.machines import FullDisk, SlowSyncs
from kspec.trials.simulated.kinds.operators import LeaderMove, PreferredElection
from kspec.trials.simulated.kinds.site import Fault, SimulatedFault
from kspec.trials.simulated.kinds.stops import BrokerPause, PowerLoss
from kspec.trials.simulated.network import Frame, SimulatedConnection
from kspec.trials.simulated.plan import RunConditions, conditions_of, plan
from kspec.trials.simulated.runs import run
from kspec.trials.simulated.setup import RunSetup
from tests.limits.marks import marked
from tests.limits.turns import Turns
from tests.times import YEAR_MS
from tests.trials.simulated.hunting import setup_of_next

BROKERS = (1, 2, 3)


def setup(seed: int, conditions: RunConditions) -> RunSetup:
    return RunSetup(seed, dict.fromkeys(BROKERS, BROKER_NEXT), Controller(KRAFT_NEXT), conditions=conditions)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_one_kind_of_fault_alone(kind: type[SimulatedFault]) -> None:
    outcome = run(setup(1, RunConditions(weights=((kind, 1.0),), partitions=1, pauses=(200, 900), longest=1_500)), 700)
    assert outcome.broken is None
    assert {fault.kind for fault in outcome.faults} == {kind}
    assert outcome.acknowledged > 20


def test_a_plan_has_all_kinds_of_faults_and_no_fault_of_a_broker_with_itself() -> None:
    planned = list(islice(plan(1, BROKERS, RunConditions()), 2_000))
    assert {fault.kind for fault in planned} == set(KINDS)
    assert all(fault.node != fault.other for fault in planned)
    assert [fault.at_ms for fault in planned] == sorted(fault.at_ms for fault in planned)
    assert list(islice(plan(2, BROKERS, RunConditions()), 2_000)) != planned


def test_the_conditions_of_seeds_differ() -> None:
    found = [conditions_of(seed) for seed in range(40)]
    assert conditions_of(1) == found[1]
    assert {one.min_isr for one in found} == {1, 2, 3}
    assert {one.burst for one in found} == {1, 2, 3, 5}
    assert {bool(one.slow_links) for one in found} == {True, False}
    assert len({frozenset(kind for kind, weight in one.weights if weight) for one in found}) > 20
    assert {one.has_acks_1 for one in found} == {True, False}


def test_a_session_is_longer_than_a_heartbeat_and_its_answer_take() -> None:
    """In a shorter one no broker is ever unfenced."""
    for conditions in map(conditions_of, range(300)):
        longer = sum(ms for purpose, _, ms in conditions.slow_links if purpose == "lifecycle")
        assert conditions.session > 2 * (2 * conditions.delays[1] + longer)


def ready(*faults: Fault) -> SimulatedCluster:
    """A cluster with its clients, a while after these faults."""
    cluster = SimulatedCluster(setup(1, RunConditions(partitions=1)), faults)
    cluster.run(500)
    return cluster


def fault(kind: type[SimulatedFault], lasts_ms: int, number: int = 0, at_ms: int = 100) -> Fault:
    return Fault(at_ms, kind, 2, 1, lasts_ms, Survives.ALL, number)


def still(node: int, lasts_ms: int, at_ms: int = 100) -> Fault:
    return Fault(at_ms, BrokerPause, node, 1, lasts_ms, Survives.ALL)


def test_a_wall_clock_that_jumps_is_another_time_for_one_node_and_its_other_clock_goes_on() -> None:
    cluster = ready()
    node, before = cluster.brokers[1], cluster.brokers[1].now()
    node.set_wall_clock(5_000)
    assert node.now() == Instant(before.monotonic, TimestampMs(cluster.clock.now_ms + 5_000))
    assert cluster.controllers[0].now().timestamp == cluster.clock.now_ms


@pytest.mark.parametrize("ahead_ms", [60_000, -60_000, 3_600_000, -3_600_000, 30 * YEAR_MS, -30 * YEAR_MS])
def test_nobody_is_fenced_or_leaves_an_isr_because_a_wall_clock_jumps(ahead_ms: int) -> None:
    """First the controller's, then each broker's, there and back."""
    cluster = ready()
    before = cluster.controller.core.image.spec
    for node in (*cluster.controllers, *cluster.brokers.values()):
        for jump_ms in (ahead_ms, 0):
            node.set_wall_clock(jump_ms)
            for _ in range(40):
                go_on(cluster, 100)
                now = cluster.controller.core.image.spec
                assert not any(one.fenced for one in now.brokers)
                assert now.partitions == before.partitions


def test_a_broker_whose_disk_is_slow_answers_later() -> None:
    quick = run(setup(1, RunConditions(weights=((PreferredElection, 1.0),), partitions=1)), 600)
    slow = run(setup(1, RunConditions(weights=((SlowSyncs, 1.0),), partitions=1)), 600)
    assert slow.virtual_ms > quick.virtual_ms


def test_a_broker_whose_disk_is_full_comes_back_when_there_is_space() -> None:
    cluster = SimulatedCluster(setup(1, RunConditions(partitions=1)), [fault(FullDisk, 800)])
    cluster.run(700)
    told = [line.split(maxsplit=3)[3] for line in cluster.told]
    assert told == ["the disk of broker 2 is full", "broker 2 starts", "all faults are over"]


def test_the_power_is_not_lost_while_another_loss_is_not_made_good() -> None:
    """The broker that lacks records already may lose more of them."""
    losses = [Fault(at, PowerLoss, node, 3, 100, Survives.NOTHING) for at, node in ((100, 1), (250, 2), (400, 1))]
    cluster = SimulatedCluster(setup(1, RunConditions(partitions=1)), losses)
    cluster.run(700)
    assert [one.node for one in cluster.faults.happened] == [1, 1]


def test_the_power_is_lost_while_another_broker_stands_still() -> None:
    cluster = SimulatedCluster(setup(1, RunConditions(partitions=1)), [still(2, 100), fault(PowerLoss, 100, at_ms=150)])
    cluster.run(700)
    assert [one.kind for one in cluster.faults.happened] == [BrokerPause, PowerLoss]


@pytest.mark.parametrize(("release", "is_lost"), [("next", True), ("4.0", False)])
def test_the_power_is_lost_while_a_follower_is_behind_if_there_are_eligible_leader_replicas(
    release: str, is_lost: bool
) -> None:
    faults = [still(3, 2_000), fault(PowerLoss, 100, at_ms=1_300)]
    named = {one.name: one for one in BROKER_RELEASES}[release]
    conditions = RunConditions(partitions=1, max_lag=300)
    cluster = SimulatedCluster(
        RunSetup(1, dict.fromkeys(BROKERS, named), Controller(kraft_of(release)), conditions=conditions), faults
    )
    cluster.run(900)
    assert (PowerLoss in [one.kind for one in cluster.faults.happened]) == is_lost


def go_on(cluster: SimulatedCluster, for_ms: int) -> None:
    end_ms = cluster.clock.now_ms + for_ms
    turns = Turns()
    while cluster.clock.now_ms < end_ms:
        turns.go()
        cluster.clock.next_event()


def test_a_leader_is_moved_and_comes_back() -> None:
    leaders = set()
    for number in range(6):
        moved = [fault(LeaderMove, 300, number)]
        cluster = SimulatedCluster(setup(1, RunConditions(partitions=1)), moved)
        cluster.run(500)
        (partition,) = cluster.controller.core.image.spec.partitions
        leaders.add((partition.registration.leader, partition.registration.leader_epoch))
    assert leaders == {(1, 0), (1, 2), (2, 1)}, "not moved; moved there and back; moved"


def test_a_proposal_whose_connection_is_lost_arrives_twice() -> None:
    cluster = ready()
    cluster.network.lost_with_next[1, "isr"] = 30
    proposals: list[object] = []
    take = cluster.controllers[0].deliver

    def deliver(connection: SimulatedConnection, frame: Frame) -> None:
        if connection.purpose == "isr":
            assert not isinstance(frame, bytes)
            proposals.append(frame.message)
        take(connection, frame)

    cluster.controllers[0].deliver = deliver  # type: ignore[method-assign]
    cluster.brokers[3].pause()
    new_producer(cluster).start()
    go_on(cluster, 4_000)
    assert len(proposals) >= 2
    assert proposals[0] == proposals[1]


def new_producer(cluster: SimulatedCluster) -> ProducerClient:
    around = ClientEnvironment(cluster.clock, cluster.network, cluster.random, [1, 2], TOPIC, (5, 80), 0.15)
    return ProducerClient(FIRST_CLIENT_ID + 50, around, 0, None)


@pytest.mark.parametrize(("sent_arrives_ms", "arrives"), [(None, False), (20, True)])
def test_what_a_dead_process_has_sent_arrives_late_or_never(sent_arrives_ms: int | None, arrives: bool) -> None:
    cluster = ready()
    used: list[SimulatedConnection] = []
    arrived: list[SimulatedConnection] = []

    def deliver(connection: SimulatedConnection, frame: Frame) -> None:
        if not connection.closed:
            arrived.append(connection)

    def kill(line: SimulatedConnection) -> None:
        used.append(line)
        line.server.deliver = deliver  # type: ignore[method-assign]
        cluster.brokers[3].kill(sent_arrives_ms=sent_arrives_ms)

    cluster.network.on_next_request[3, "fetch"] = kill
    go_on(cluster, 600)
    assert (used[0] in arrived) == arrives


def test_a_broker_stops_while_an_isr_is_proposed() -> None:
    cluster = SimulatedCluster(setup(1, RunConditions(partitions=1, max_lag=300)), interruptions())
    cluster.run(900)
    told = [line.split(maxsplit=3)[3] for line in cluster.told]
    assert any(line.startswith("the next proposal of an ISR") for line in told)
    assert {"broker 2 is killed", "broker 3 is killed", "broker 2 is paused"} & set(told)


def interruptions() -> list[Fault]:
    """Several at once, each with choices of its own, and a follower that stands still and is dropped."""
    armed = [Fault(100 + at, Interruption, 2, 3, 400, Survives.ALL, at) for at in range(4)]
    return [*armed, still(3, 1_200, at_ms=150)]


def test_no_power_is_lost_where_one_replica_in_sync_is_enough() -> None:
    cluster = SimulatedCluster(setup(1, RunConditions(partitions=1, min_isr=1)), [fault(PowerLoss, 100)])
    cluster.run(500)
    assert cluster.faults.happened == []


def test_a_partition_that_was_moved_away_while_its_broker_was_down_is_copied_anew() -> None:
    """The broker loses power, and stops in order after its next start: nobody has looked at what is left of the log."""
    cluster = ready()
    node = cluster.brokers[3]
    node.kill(Survives.NOTHING)
    cluster.operator.reassign(0, [1, 2])
    go_on(cluster, 6_000)
    assert node.serves
    (folder,) = [name for name in node.disk.listdir("/sim/3") if name.startswith(TOPIC)]
    assert folder.endswith("-stray")
    node.stop()
    cluster.operator.reassign(0, [1, 2, 3])
    cluster.heal()
    assert node.core.replicas[TopicPartition(TOPIC, 0)].files.segments[0].base_offset == 0
    assert node.core.replicas[TopicPartition(TOPIC, 0)].partition.local.log.epoch_history.entries[0].start_offset == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", marked([25, 123, 188, 248, 274, 340, 767], nightly=[123, 188, 274, 340, 767]))
def test_what_a_seed_has_found_once_is_mended(seed: int) -> None:
    """The faults are described in docs/simulated-clusters.md."""
    outcome = run(RunSetup(seed, dict.fromkeys(BROKERS, BROKER_NEXT), Controller(KRAFT_NEXT)), 10_000)
    assert outcome.broken is None
    assert set(outcome.reported) <= {"INVALID_TIMESTAMP"}, "only a broker whose clock is far behind refuses a record"


@pytest.mark.slow
def test_an_answer_may_arrive_after_a_broker_has_lost_the_records() -> None:
    """In seed 845 two brokers have a record; one loses power, and is back before the answer of its leader arrives."""
    assert run(setup_of_next(845), 3_900).broken is None
