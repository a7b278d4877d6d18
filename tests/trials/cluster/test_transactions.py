"""The coordinator of transactions on a cluster of three brokers: it moves, and a client is told where."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kspec.spec.values import Error
from tests.impl.broker.process import BrokerClient, wait_until
from tests.impl.requests.transaction_client import TransactionClient
from tests.trials.cluster.running import RunningCluster

TOPIC = "t"
PASSING = (
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
    Error.CONCURRENT_TRANSACTIONS,
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    folder: Path = tmp_path_factory.mktemp("three") / "cluster"
    with RunningCluster(folder, brokers=3, combined=False) as running:
        yield running


def port_of(cluster: RunningCluster, broker: int) -> int:
    """The port of a broker, by its settings."""
    text = (cluster.folder / str(broker) / "server.properties").read_text(encoding="utf-8")
    (line,) = (one for one in text.splitlines() if one.startswith("listeners="))
    return int(line.rpartition(":")[2])


def reach(cluster: RunningCluster, broker: int) -> BrokerClient:
    return BrokerClient(port_of(cluster, broker))


def coordinator_of(cluster: RunningCluster, asked: int, name: str) -> int:
    with reach(cluster, asked) as client:
        return TransactionClient(client, name).find()


def until_done(act: Callable[[], Error]) -> Error:
    """The first error of an action that does not pass."""
    found = [Error.NONE]

    def is_done() -> bool:
        found[0] = act()
        return found[0] not in PASSING

    wait_until(is_done)
    return found[0]


@pytest.mark.slow
def test_the_coordinator_is_killed_and_another_one_goes_on(cluster: RunningCluster) -> None:
    """An open transaction is known to the next coordinator, and its producer goes on; a decided one is ended."""
    with reach(cluster, 1) as client:
        wait_until(lambda: client.call("Metadata", 12, topics=None).brokers[2:] != [])
        client.create(TOPIC, 1, min_insync_replicas="1")
    first = coordinator_of(cluster, 1, "moving")
    others = [one for one in (1, 2, 3) if one != first]
    with reach(cluster, first) as client:
        producer = TransactionClient(client, "moving")
        producer.init_when_possible()
        wait_until(lambda: producer.add((TOPIC, 0)) == [Error.NONE])
        before = producer.described()
    with reach(cluster, others[0]) as client:
        producer.client = client
        assert producer.add((TOPIC, 0)) == [Error.NOT_COORDINATOR]
        assert producer.end(True) == Error.NOT_COORDINATOR
        assert producer.state() == "NOT_COORDINATOR"
    cluster.kill(str(first))
    found: list[int] = []

    def has_moved() -> bool:
        with reach(cluster, others[0]) as client:
            found[:] = [TransactionClient(client, "moving").find()]
        return found[0] != first

    wait_until(has_moved)
    with reach(cluster, found[0]) as client:
        producer.client = client
        wait_until(lambda: producer.state() == "Ongoing")
        assert producer.described() == before
        assert until_done(lambda: producer.add((TOPIC, 0))[0]) == Error.NONE
        assert until_done(lambda: producer.end(True, version=5)) == Error.NONE
        assert producer.epoch == before.producer_epoch + 1


@pytest.mark.slow
def test_producers_of_all_coordinators_get_ids_of_their_own(cluster: RunningCluster) -> None:
    """Several threads, a dozen transactional ids: each gets its epochs in order, and no producer id twice."""
    given: dict[str, list[tuple[int, int]]] = {}

    def ask(name: str) -> None:
        given[name] = []
        for _ in range(3):

            def once() -> Error:
                alive = [one for one in (1, 2, 3) if str(one) in cluster.pids()]
                with reach(cluster, coordinator_of(cluster, alive[0], name)) as client:
                    producer = TransactionClient(client, name)
                    error = producer.init()
                    if error == Error.NONE:
                        given[name].append((producer.producer_id, producer.epoch))
                    return error

            assert until_done(once) == Error.NONE

    threads = [threading.Thread(target=ask, args=(f"id-{number}",)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert all([epoch for _, epoch in pairs] == [0, 1, 2] for pairs in given.values()), given
    assert len({pairs[0][0] for pairs in given.values()}) == 12
