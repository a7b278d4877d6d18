"""Each kind of fault, alone: it happens, and `next` keeps all promises."""

from itertools import islice

import pytest

from impl.broker.replica import Place
from impl.sim.clients import Producer, Surroundings
from impl.sim.cluster import SimulatedCluster
from impl.sim.network import Frame, Line
from impl.sim.plan import Fault, Kind, Weather, plan, weather_of
from impl.sim.runs import run
from impl.sim.setup import FIRST_CLIENT_ID, TOPIC, Setup
from impl.storage.simulated_disk import Survives
from spec.controller.protocol import Controller
from spec.releases.broker import BROKER_NEXT, BROKER_RELEASES
from spec.releases.kraft import KRAFT_NEXT
from spec.releases.names import kraft_of

BROKERS = (1, 2, 3)


def setup(seed: int, weather: Weather) -> Setup:
    return Setup(seed, dict.fromkeys(BROKERS, BROKER_NEXT), Controller(KRAFT_NEXT), weather=weather)


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name)
def test_one_kind_of_fault_alone(kind: Kind) -> None:
    outcome = run(setup(1, Weather(weights=((kind, 1.0),), partitions=1, pauses=(200, 900), longest=1_500)), 700)
    assert outcome.broken is None
    assert {fault.kind for fault in outcome.faults} == {kind}
    assert outcome.acknowledged > 20


def test_a_plan_has_all_kinds_of_faults_and_no_fault_of_a_broker_with_itself() -> None:
    planned = list(islice(plan(1, BROKERS, Weather()), 2_000))
    assert {fault.kind for fault in planned} == set(Kind)
    assert all(fault.node != fault.other for fault in planned)
    assert [fault.at_ms for fault in planned] == sorted(fault.at_ms for fault in planned)
    assert list(islice(plan(2, BROKERS, Weather()), 2_000)) != planned


def test_the_weather_of_seeds_differs() -> None:
    found = [weather_of(seed) for seed in range(40)]
    assert weather_of(1) == found[1]
    assert {one.min_isr for one in found} == {1, 2, 3}
    assert {one.burst for one in found} == {1, 2, 3, 5}
    assert {bool(one.sluggish) for one in found} == {True, False}
    assert len({frozenset(kind for kind, weight in one.weights if weight) for one in found}) > 20
    assert {one.hasty for one in found} == {True, False}


def test_a_session_is_longer_than_a_heartbeat_and_its_answer_take() -> None:
    """In a shorter one no broker is ever unfenced."""
    for weather in map(weather_of, range(300)):
        longer = sum(ms for purpose, _, ms in weather.sluggish if purpose == "lifecycle")
        assert weather.session > 2 * (2 * weather.delays[1] + longer)


def ready(*faults: Fault) -> SimulatedCluster:
    """A cluster with its clients, a while after these faults."""
    cluster = SimulatedCluster(setup(1, Weather(partitions=1)), faults)
    cluster.run(500)
    return cluster


def fault(kind: Kind, lasts_ms: int, number: int = 0, at_ms: int = 100) -> Fault:
    return Fault(at_ms, kind, 2, 1, lasts_ms, Survives.ALL, number)


def still(node: int, lasts_ms: int, at_ms: int = 100) -> Fault:
    return Fault(at_ms, Kind.PAUSE, node, 1, lasts_ms, Survives.ALL)


def test_a_clock_that_jumps_is_another_time_for_one_node() -> None:
    cluster = ready()
    node = cluster.brokers[1]
    node.set_clock(5_000)
    assert node.now() == cluster.clock.now_ms + 5_000
    assert cluster.controller.now() == cluster.clock.now_ms


def test_a_controller_whose_clock_jumps_ahead_fences_those_whom_it_has_not_heard_since() -> None:
    cluster = ready()
    cluster.controller.set_clock(60_000)
    fenced = set()
    for _ in range(40):
        go_on(cluster, 10)
        fenced |= {one.broker for one in cluster.controller.core.image.spec.brokers if one.fenced}
    assert fenced


def test_a_broker_whose_disk_is_slow_answers_later() -> None:
    quick = run(setup(1, Weather(weights=((Kind.PREFER, 1.0),), partitions=1)), 600)
    slow = run(setup(1, Weather(weights=((Kind.SLOW_DISK, 1.0),), partitions=1)), 600)
    assert slow.virtual_ms > quick.virtual_ms


def test_a_broker_whose_disk_is_full_comes_back_when_there_is_space() -> None:
    cluster = SimulatedCluster(setup(1, Weather(partitions=1)), [fault(Kind.FULL_DISK, 800)])
    cluster.run(700)
    told = [line.split(maxsplit=3)[3] for line in cluster.told]
    assert told == ["the disk of broker 2 is full", "broker 2 starts", "all faults are over"]


def test_the_power_is_not_lost_while_another_loss_is_not_made_good() -> None:
    """The broker that lacks records already may lose more of them."""
    losses = [Fault(at, Kind.POWER, node, 3, 100, Survives.NOTHING) for at, node in ((100, 1), (250, 2), (400, 1))]
    cluster = SimulatedCluster(setup(1, Weather(partitions=1)), losses)
    cluster.run(700)
    assert [one.node for one in cluster.faults.happened] == [1, 1]


def test_the_power_is_lost_while_another_broker_stands_still() -> None:
    cluster = SimulatedCluster(setup(1, Weather(partitions=1)), [still(2, 100), fault(Kind.POWER, 100, at_ms=150)])
    cluster.run(700)
    assert [one.kind for one in cluster.faults.happened] == [Kind.PAUSE, Kind.POWER]


@pytest.mark.parametrize(("release", "is_lost"), [("next", True), ("4.0", False)])
def test_the_power_is_lost_while_a_follower_is_behind_if_there_are_eligible_leader_replicas(
    release: str, is_lost: bool
) -> None:
    faults = [still(3, 2_000), fault(Kind.POWER, 100, at_ms=1_300)]
    named = {one.name: one for one in BROKER_RELEASES}[release]
    weather = Weather(partitions=1, max_lag=300)
    cluster = SimulatedCluster(
        Setup(1, dict.fromkeys(BROKERS, named), Controller(kraft_of(release)), weather=weather), faults
    )
    cluster.run(900)
    assert (Kind.POWER in [one.kind for one in cluster.faults.happened]) == is_lost


def go_on(cluster: SimulatedCluster, for_ms: int) -> None:
    end_ms = cluster.clock.now_ms + for_ms
    while cluster.clock.now_ms < end_ms:
        cluster.clock.next_event()


def test_a_leader_is_moved_and_comes_back() -> None:
    leaders = set()
    for number in range(6):
        moved = [fault(Kind.MOVE_LEADER, 300, number)]
        cluster = SimulatedCluster(setup(1, Weather(partitions=1)), moved)
        cluster.run(500)
        (partition,) = cluster.controller.core.image.spec.partitions
        leaders.add((partition.registration.leader, partition.registration.leader_epoch))
    assert leaders == {(1, 0), (1, 2), (2, 1)}, "not moved; moved there and back; moved"


def test_a_proposal_whose_connection_is_lost_arrives_twice() -> None:
    cluster = ready()
    cluster.network.lost_with_next[1, "isr"] = 30
    proposals: list[object] = []
    take = cluster.controller.deliver

    def deliver(connection: Line, frame: Frame) -> None:
        if connection.purpose == "isr":
            assert not isinstance(frame, bytes)
            proposals.append(frame.message)
        take(connection, frame)

    cluster.controller.deliver = deliver  # type: ignore[method-assign]
    cluster.brokers[3].pause()
    new_producer(cluster).start()
    go_on(cluster, 4_000)
    assert len(proposals) >= 2
    assert proposals[0] == proposals[1]


def new_producer(cluster: SimulatedCluster) -> Producer:
    around = Surroundings(cluster.clock, cluster.network, cluster.random, [1, 2], TOPIC, (5, 80), 0.15)
    return Producer(FIRST_CLIENT_ID + 50, around, 0, None)


@pytest.mark.parametrize(("sent_arrives_ms", "arrives"), [(None, False), (20, True)])
def test_what_a_dead_process_has_sent_arrives_late_or_never(sent_arrives_ms: int | None, arrives: bool) -> None:
    cluster = ready()
    used: list[Line] = []
    arrived: list[Line] = []

    def deliver(connection: Line, frame: Frame) -> None:
        if not connection.closed:
            arrived.append(connection)

    def kill(line: Line) -> None:
        used.append(line)
        line.server.deliver = deliver  # type: ignore[method-assign]
        cluster.brokers[3].kill(sent_arrives_ms=sent_arrives_ms)

    cluster.network.told_of_next[3, "fetch"] = kill
    go_on(cluster, 600)
    assert (used[0] in arrived) == arrives


def test_a_broker_stops_while_an_isr_is_proposed() -> None:
    cluster = SimulatedCluster(setup(1, Weather(partitions=1, max_lag=300)), strikes())
    cluster.run(900)
    told = [line.split(maxsplit=3)[3] for line in cluster.told]
    assert any(line.startswith("when the next ISR is proposed") for line in told)
    assert {"broker 2 is killed", "broker 3 is killed", "broker 2 stands still"} & set(told)


def strikes() -> list[Fault]:
    """Several at once, each with choices of its own, and a follower that stands still and is dropped."""
    armed = [Fault(100 + at, Kind.STRIKE, 2, 3, 400, Survives.ALL, at) for at in range(4)]
    return [*armed, still(3, 1_200, at_ms=150)]


def test_no_power_is_lost_where_one_replica_in_sync_is_enough() -> None:
    cluster = SimulatedCluster(setup(1, Weather(partitions=1, min_isr=1)), [fault(Kind.POWER, 100)])
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
    cluster.calm()
    assert node.core.replicas[Place(TOPIC, 0)].files.segments[0].base_offset == 0
    assert node.core.replicas[Place(TOPIC, 0)].partition.local.log.epoch_history.entries[0].start_offset == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [25, 123, 188, 248, 274, 340, 767])
def test_what_a_seed_has_found_once_is_mended(seed: int) -> None:
    """What was wrong is in docs/simulated-clusters-of-brokers.md."""
    outcome = run(Setup(seed, dict.fromkeys(BROKERS, BROKER_NEXT), Controller(KRAFT_NEXT)), 10_000)
    assert outcome.broken is None
    assert not outcome.reported
