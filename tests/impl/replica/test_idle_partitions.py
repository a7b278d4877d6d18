"""Partitions without writes cost nothing: a request and a tick look at the partitions that have news, and at no other.

And nothing is lost by it: who was silent is in sync, who has stopped drops out, and followers learn the high watermark.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from kspec.impl.server.housekeeping import Housekeeping
from kspec.spec.topics import TopicPartition
from tests.impl.replica.quiet_cluster import BROKERS, BUSY, IDLE, LAG_MS, Looks, QuietCluster
from tests.limits.marks import marked

pytestmark = pytest.mark.slow

SETTLED_MS = 5 * LAG_MS
FETCH_MS = 350
"""A follower's last fetch was not longer ago: it waits 300 ms for records."""

SIZES = (300, 3_000)
"""The number of partitions that nobody writes to."""


@pytest.fixture(params=marked(SIZES, slow=[3_000], nightly=[3_000]))
def quiet(request: pytest.FixtureRequest) -> QuietCluster:
    """A cluster in which nothing has happened for some time."""
    found = QuietCluster(request.param)
    found.run(SETTLED_MS)
    return found


@pytest.fixture
def looks(quiet: QuietCluster, monkeypatch: pytest.MonkeyPatch) -> Looks:
    """A counter of looks at partitions from now on."""
    return Looks(monkeypatch)


@pytest.mark.parametrize("quiet", marked(SIZES, slow=[3_000], nightly=[3_000]), indirect=True)
def test_nobody_looks_at_partitions_while_nothing_happens(quiet: QuietCluster, looks: Looks) -> None:
    """For a minute: fetches of followers, heartbeats, metadata, looks for followers that lag."""
    before = {node_id: node.shell.counts.requests["Fetch"] for node_id, node in quiet.brokers.items()}
    no_houses(quiet)
    looks.found.clear()
    quiet.run(60_000)
    fetched = [node.shell.counts.requests["Fetch"] - before[one] for one, node in quiet.brokers.items()]
    assert min(fetched) > 200
    assert looks.found == {}


def test_a_record_is_looked_at_where_it_is_written(quiet: QuietCluster, looks: Looks) -> None:
    no_houses(quiet)
    looks.found.clear()
    quiet.produce(BUSY, batches=20)
    quiet.run(SETTLED_MS)
    assert set(looks.found) == {TopicPartition(BUSY, 0)}


def test_what_a_record_costs_does_not_depend_on_idle_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    costs = []
    for idle in (1, 150):
        cluster = QuietCluster(idle)
        cluster.run(SETTLED_MS)
        no_houses(cluster)
        looks.found.clear()
        cluster.produce(BUSY, batches=100)
        assert set(looks.found) == {TopicPartition(BUSY, 0)}
        costs.append(looks.found[TopicPartition(BUSY, 0)])
    one, many = costs
    assert many < 1.5 * one


def no_houses(cluster: QuietCluster) -> None:
    """The simulation's own housekeeping looks at all partitions of its few; that of a process is tried below."""
    for node in cluster.brokers.values():
        node._keep_house = lambda: None  # type: ignore[method-assign]
    cluster.run(2_000)


# ---- nothing is lost by it


def test_followers_of_a_silent_partition_stay_in_sync_when_it_is_written_to(quiet: QuietCluster) -> None:
    """Nobody has noted their fetches one by one for so long; the time of the last counts."""
    quiet.run(20 * LAG_MS)
    before = quiet.registration(IDLE, 7)
    quiet.produce(IDLE, 7)
    quiet.run(3 * LAG_MS)
    after = quiet.registration(IDLE, 7)
    assert set(after.isr) == set(BROKERS)
    assert after.partition_epoch == before.partition_epoch


def test_followers_learn_the_high_watermark(quiet: QuietCluster) -> None:
    for index in (0, 1, 2):
        quiet.produce(IDLE, index)
        quiet.run(2_000)
        ends = {replica.partition.local.log.end_offset for replica in quiet.replicas(IDLE, index)}
        marks = {replica.partition.local.high_watermark for replica in quiet.replicas(IDLE, index)}
        assert ends == marks
        assert min(ends) > 0


def test_a_follower_that_stands_still_drops_out_of_what_is_written_to(quiet: QuietCluster) -> None:
    quiet.run(10 * LAG_MS)
    quiet.brokers[3].pause()
    producer = quiet.producer(IDLE, 0)  # led by broker 1
    paused = quiet.clock.now_ms
    quiet.until(lambda: 3 not in quiet.registration(IDLE, 0).isr, 5 * LAG_MS)
    assert LAG_MS - FETCH_MS <= quiet.clock.now_ms - paused <= 2 * LAG_MS + 200
    assert set(quiet.registration(IDLE, 3).isr) == set(BROKERS), "nothing was written there, so nobody lags"
    producer.stopped = True
    quiet.brokers[3].go_on()
    quiet.until(quiet.is_in_sync)


def test_a_follower_that_has_stopped_before_a_record_drops_out_as_soon(quiet: QuietCluster) -> None:
    """It is late already when the record comes: it has fetched last a long time ago."""
    quiet.brokers[3].pause()
    quiet.run(5 * LAG_MS)
    producer = quiet.producer(IDLE, 0)
    written = quiet.clock.now_ms
    quiet.until(lambda: 3 not in quiet.registration(IDLE, 0).isr, 5 * LAG_MS)
    assert quiet.clock.now_ms - written <= LAG_MS
    producer.stopped = True
    quiet.brokers[3].go_on()
    quiet.until(quiet.is_in_sync)


def test_after_a_broker_was_gone_all_is_in_sync_and_silent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = QuietCluster(300, session_ms=6_000)
    cluster.run(SETTLED_MS)
    cluster.brokers[2].kill()
    cluster.until(lambda: all(one.registration.leader != 2 for one in cluster.controller.core.image.spec.partitions))
    cluster.produce(IDLE, 1)
    cluster.brokers[2].start()
    cluster.until(cluster.is_in_sync)
    cluster.run(SETTLED_MS)
    looks = Looks(monkeypatch)
    no_houses(cluster)
    looks.found.clear()
    cluster.run(30_000)
    assert looks.found == {}
    cluster.produce(IDLE, 1)
    assert set(looks.found) == {TopicPartition(IDLE, 1)}


# ---- housekeeping


class StoppedLoop:
    """Time does not go by here: timers are called by hand."""

    def call_later(self, delay: float, callback: Any, *given: Any) -> "StoppedLoop":
        return self

    def cancel(self) -> None:
        """No timer runs."""

    def run_in_executor(self, executor: Any, job: Any) -> Any:
        raise AssertionError("nothing is to be flushed")


TASKS = (
    "_checkpoint_high_watermarks",
    "_checkpoint_logs",
    "_retain",
    "_expire_producers",
    "_clean_up",
    "_compact",
)


@pytest.fixture
def house(quiet: QuietCluster) -> Iterator[Housekeeping]:
    """The housekeeping of broker 1, which has looked at everything once."""
    node = quiet.brokers[1]
    found = Housekeeping(node.broker, node.directory, StoppedLoop())  # type: ignore[arg-type]
    tick(found)
    yield found
    found.stop()


def tick(house: Housekeeping) -> None:
    for task in TASKS:
        getattr(house, task)()
    house._checkpoints.submit(lambda: None).result(10)


def test_housekeeping_looks_at_what_has_changed(
    quiet: QuietCluster, house: Housekeeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(monkeypatch)
    node = quiet.brokers[1]
    changes = node.disk.unsynced_names
    tick(house)
    assert looks.found == {}
    assert node.disk.unsynced_names == changes, "nothing is written"
    quiet.produce(IDLE, 4)
    no_houses(quiet)
    looks.found.clear()
    tick(house)
    assert set(looks.found) == {TopicPartition(IDLE, 4)}
    looks.found.clear()
    tick(house)
    assert set(looks.found) <= {TopicPartition(IDLE, 4)}, "retention looks again at a log that has records, and at no other"


def test_the_checkpoint_has_what_moved_and_what_did_not(quiet: QuietCluster, house: Housekeeping) -> None:
    quiet.produce(IDLE, 4)
    quiet.produce(IDLE, 5)
    tick(house)
    name = f"{quiet.brokers[1].directory.path}/replication-offset-checkpoint"
    lines = quiet.brokers[1].disk.read_file(name).decode().splitlines()
    node = quiet.brokers[1]
    assert dict(line.rsplit(" ", 1) for line in lines[2:]) == {
        f"{place.topic} {place.partition}": str(replica.partition.local.high_watermark)
        for place, replica in node.core.replicas.items()
    }


def test_a_checkpoint_that_could_not_be_written_is_written_later(
    quiet: QuietCluster, house: Housekeeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = quiet.brokers[1].directory
    quiet.produce(IDLE, 4)

    def full(*given: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(directory, "_write", full)
        tick(house)
    written: list[str] = []
    before = directory._write

    def noted(name: str, offsets: Any) -> None:
        written.append(name)
        before(name, offsets)

    monkeypatch.setattr(directory, "_write", noted)
    tick(house)
    assert "replication-offset-checkpoint" in written
