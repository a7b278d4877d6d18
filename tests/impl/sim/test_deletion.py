"""DeleteRecords in a cluster: the client is answered once no live follower has the records any more."""

from impl.broker.calls import Ask, Channel
from impl.sim.clients import Asker, nothing
from impl.sim.cluster import SimulatedCluster
from impl.sim.plan import Weather
from impl.sim.setup import TOPIC, Setup
from impl.wire.values import Message
from spec.controller.protocol import Controller
from spec.releases.broker import BROKER_NEXT
from spec.releases.kraft import KRAFT_NEXT
from spec.values import Error

BROKERS = (1, 2, 3)


def ready() -> SimulatedCluster:
    weather = Weather(partitions=1, max_lag=10_000)
    setup = Setup(1, dict.fromkeys(BROKERS, BROKER_NEXT), Controller(KRAFT_NEXT), weather=weather)
    cluster = SimulatedCluster(setup)
    cluster.run(500)
    return cluster


def asked(cluster: SimulatedCluster, offset: int, timeout_ms: int, partition: int = 0) -> list[Message]:
    """The answers to come."""
    found: list[Message] = []
    topic = Message(name=TOPIC, partitions=[Message(partition_index=partition, offset=offset)])
    message = Message(topics=[topic], timeout_ms=timeout_ms)
    channel = Channel(cluster.leader_of(0), "admin")

    def take(answer: Message | None) -> None:
        assert answer is not None
        found.append(answer.topics[0].partitions[0])

    cluster.network.ask(Asker(999), Ask(channel, "DeleteRecords", message, nothing), take)
    return found


def go_on(cluster: SimulatedCluster, for_ms: int) -> None:
    end_ms = cluster.clock.now_ms + for_ms
    while cluster.clock.now_ms < end_ms:
        cluster.clock.next_event()


def followers(cluster: SimulatedCluster) -> list[int]:
    return [node for node in BROKERS if node != cluster.leader_of(0)]


def test_the_answer_comes_when_followers_have_deleted() -> None:
    cluster = ready()
    found = asked(cluster, 3, 5_000)
    go_on(cluster, 20)
    assert not found
    go_on(cluster, 1_500)
    (answer,) = found
    assert (answer.error_code, answer.low_watermark) == (0, 3)
    starts = [
        node.core.replicas[place].partition.local.log.start_offset
        for node in cluster.brokers.values()
        for place in node.core.replicas
    ]
    assert starts == [3, 3, 3]


def test_a_follower_that_stands_still_is_waited_for_as_long_as_the_client_said() -> None:
    cluster = ready()
    cluster.brokers[followers(cluster)[0]].pause()
    found = asked(cluster, 3, 1_000)
    go_on(cluster, 900)
    assert not found
    go_on(cluster, 300)
    (answer,) = found
    assert (Error(answer.error_code), answer.low_watermark) == (Error.REQUEST_TIMED_OUT, 0)


def test_a_dead_follower_is_not_waited_for() -> None:
    """It is fenced, and then only live ones count."""
    cluster = ready()
    gone = cluster.brokers[followers(cluster)[0]]
    gone.pause()
    go_on(cluster, 6_000)
    found = asked(cluster, 3, 5_000)
    go_on(cluster, 1_500)
    (answer,) = found
    assert (answer.error_code, answer.low_watermark) == (0, 3)


def test_what_cannot_be_deleted_is_refused_at_once() -> None:
    cluster = ready()
    (beyond, unknown) = (asked(cluster, 10_000_000, 5_000), asked(cluster, 3, 5_000, partition=7))
    go_on(cluster, 20)
    assert Error(beyond[0].error_code) == Error.OFFSET_OUT_OF_RANGE
    assert Error(unknown[0].error_code) == Error.UNKNOWN_TOPIC_OR_PARTITION
