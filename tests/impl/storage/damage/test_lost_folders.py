"""A partition's folder that is wholly gone after a kill: no replica leads with an empty log while others have records."""

import pytest

from kspec.impl.storage import directory
from kspec.spec.topics import TopicPartition
from kspec.trials.simulated.nodes import BrokerNode
from tests.impl.replica.quiet_cluster import BUSY, QuietCluster

PLACE = TopicPartition(BUSY, 0)
SESSION_MS = 3_000


def without_folder(node: BrokerNode) -> None:
    """Kill a broker, and take the folder of the partition away."""
    folder = node.directory.folder_of(*PLACE)
    node.kill()
    for name in node.disk.listdir(folder):
        node.disk.unlink(f"{folder}/{name}")
    node.disk.remove_folder(folder)
    node.disk.sync_folder(folder.rpartition("/")[0])


def flush(node: BrokerNode) -> None:
    """The recovery point is on the disk: by it a start knows that the folder was there."""
    for files in node.directory.partitions.values():
        files.flush(node.now().monotonic)
    node.directory.checkpoint_logs()


def end_on(cluster: QuietCluster, node: int) -> int:
    """The end of a broker's log."""
    return int(cluster.brokers[node].core.replicas[PLACE].partition.local.log.end_offset)


def alone_in_isr() -> tuple[QuietCluster, int]:
    """A cluster of which one broker alone is in sync, and has lost its folder; the others are down, and what they have."""
    cluster = QuietCluster(1, SESSION_MS)
    cluster.produce(BUSY)
    cluster.run(1_000)
    theirs = end_on(cluster, 2)
    for node in (2, 3):
        cluster.brokers[node].kill()
    cluster.until(lambda: cluster.registration(BUSY).isr == frozenset({1}))
    cluster.produce(BUSY, batches=20)
    flush(cluster.brokers[1])
    without_folder(cluster.brokers[1])
    return cluster, theirs


def start_all(cluster: QuietCluster) -> None:
    """Start what is down, and let everybody find the leader."""
    for node in cluster.brokers.values():
        if not node.up:
            node.start()
    cluster.until(lambda: all(node.serves for node in cluster.brokers.values()))
    cluster.run(3 * SESSION_MS)


def test_the_last_in_sync_does_not_begin_anew_and_the_others_keep_their_records() -> None:
    cluster, theirs = alone_in_isr()
    start_all(cluster)
    assert cluster.brokers[1].core.replicas[PLACE].offline
    found = cluster.registration(BUSY)
    assert found.isr | found.last_known_elr == {1}, "nobody else has all that was committed"
    assert (end_on(cluster, 2), end_on(cluster, 3)) == (theirs, theirs)


def test_by_kafkas_rule_the_others_truncate(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty log leads, and committed records are gone from every replica."""
    monkeypatch.setattr(directory, "may_begin_anew", lambda *given: True)
    cluster, theirs = alone_in_isr()
    start_all(cluster)
    assert theirs > 0
    assert not cluster.brokers[1].core.replicas[PLACE].offline
    assert (end_on(cluster, 1), end_on(cluster, 2), end_on(cluster, 3)) == (0, 0, 0)


def test_one_of_several_in_sync_is_taken_out_and_copies_all() -> None:
    """The controller takes a broker that stopped uncleanly out of each ISR that has another member."""
    cluster = QuietCluster(1, SESSION_MS)
    cluster.produce(BUSY)
    cluster.run(1_000)
    flush(cluster.brokers[1])
    end = end_on(cluster, 2)
    without_folder(cluster.brokers[1])
    start_all(cluster)
    cluster.until(cluster.is_in_sync)
    assert [end_on(cluster, node) for node in cluster.brokers] == [end] * 3


def test_a_folder_that_was_never_flushed_may_be_lost_with_the_power() -> None:
    """It cannot be told from a partition that was never made: as in Kafka it begins anew, and is available."""
    cluster = QuietCluster(1, SESSION_MS)
    without_folder(cluster.brokers[1])
    start_all(cluster)
    cluster.until(cluster.is_in_sync)
    cluster.produce(BUSY)
