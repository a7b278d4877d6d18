"""Groups on three brokers: `python -m benchmarks.broker.groups [--kafka 4.4.0] [--commits 1000000] [--kill-every 30]`.

1. Writers commit offsets at the same time, each of a partition of its own, while the coordinator is killed with -9 now and
   then and started again. At the end another client asks for all offsets: each acknowledged commit is there, or a later one.
2. Members join a group together, and come one after the other, on each cluster in turn: how long it takes until each has its
   assignment, as a ratio of ours to Apache Kafka's in the same run.

With `--load N` something else is measured, on one broker: how long it reads a log of N commits at its start
(`benchmarks.broker.coordinator_load`).

All clients are librdkafka, by confluent-kafka. Exit status 1 if an acknowledged commit is gone.
"""

import argparse
import asyncio
import shutil
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from benchmarks.broker.clusters import BROKERS, KAFKAS_FLAGS, OURS, TOPIC, MeasuredCluster, until
from benchmarks.broker.coordinator_load import measure_load
from benchmarks.broker.load import RECONNECT
from kspec.conformance.kafka.cluster import KafkaProgram
from kspec.conformance.kafka.jars import find_jars
from kspec.trials.cluster.asking import NOT_REACHED, ask_once
from kspec.trials.cluster.programs import KspecProgram
from kspec.trials.faults.load import create_topic

GROUP, COMMITTED = "writers", "committed"
SESSION_MS = 45_000
HEARTBEAT_MS = 500
"""A member hears of a rebalance by its heartbeat. By the default of 3 s that would be most of what is measured."""

JOIN_S = 180.0
"""An emergency stop: members that have no assignment after this time get none."""


class Writer(threading.Thread):
    """Commits one offset after the other, each after the one before was acknowledged or has failed."""

    def __init__(self, addresses: str, partition: int, commits: int) -> None:
        super().__init__(daemon=True)
        self.consumer = Consumer({"bootstrap.servers": addresses, "group.id": GROUP, "log_level": 0, **RECONNECT})
        self.partition, self.commits = partition, commits
        self.sent = self.acknowledged = self.failed = 0

    def run(self) -> None:
        """Commit as often as was asked for; what fails counts, and is not sent again."""
        while self.sent < self.commits:
            self.sent += 1
            place = TopicPartition(COMMITTED, self.partition, self.sent)
            try:
                (answer,) = self.consumer.commit(offsets=[place], asynchronous=False)
            except KafkaException:
                self.failed += 1
                continue
            if answer.error is None:
                self.acknowledged = self.sent
            else:
                self.failed += 1
        self.consumer.close()


def coordinator(addresses: str) -> int:
    """The broker that coordinates the writers, -1 if nobody says.

    It is asked for on the wire: librdkafka aborts where the coordinator is killed while it describes a group.
    """
    for address in addresses.split(","):
        host, _, port = address.rpartition(":")
        try:
            answer = asyncio.run(ask_once((host, int(port)), "FindCoordinator", 4, key_type=0, coordinator_keys=[GROUP]))
        except NOT_REACHED:
            continue
        if answer.coordinators[0].error_code == 0:
            return int(answer.coordinators[0].node_id)
    return -1


def commit_under_kills(running: MeasuredCluster, writers: int, commits: int, kill_every_s: float) -> int:
    """Let writers commit while the coordinator is killed; how many partitions have lost what was acknowledged."""
    create_topic(running.addresses, COMMITTED, writers, BROKERS)
    working = [Writer(running.addresses, number, commits // writers) for number in range(writers)]
    begun, kills = time.monotonic(), 0
    for one in working:
        one.start()
    next_kill = begun + kill_every_s
    while any(one.is_alive() for one in working):
        time.sleep(0.2)
        if kill_every_s and time.monotonic() >= next_kill:
            victim = running.cluster.processes.get(str(coordinator(running.addresses)))
            if victim is not None and victim.running:
                victim.kill()
                kills += 1
                time.sleep(2)
                asyncio.run(running.cluster.restart(victim.node.name))
            next_kill = time.monotonic() + kill_every_s
    took = time.monotonic() - begun
    lost = [one for one in working if not one.acknowledged <= stored(running.addresses, one.partition) <= one.sent]
    for one in lost:
        found = stored(running.addresses, one.partition)
        print(f"{running.name}: partition {one.partition}: {one.acknowledged} was acknowledged, {found} is there")
    sent, failed = sum(one.sent for one in working), sum(one.failed for one in working)
    running.measures["commits, without an answer or refused"] = f"{sent}, {failed}"
    running.measures["commits a second"] = f"{sent / took:.0f}"
    running.measures["kills of the coordinator"] = str(kills)
    running.measures["partitions whose acknowledged commit is gone"] = str(len(lost))
    return len(lost)


def stored(addresses: str, partition: int) -> int:
    """The committed offset of a partition, asked for by a client that has committed nothing."""
    admin = AdminClient({"bootstrap.servers": addresses, "log_level": 0})
    asked = ConsumerGroupTopicPartitions(GROUP, [TopicPartition(COMMITTED, partition)])
    end = time.monotonic() + 60
    while True:
        try:
            (found,) = admin.list_consumer_group_offsets([asked])[GROUP].result().topic_partitions
            return int(found.offset)
        except KafkaException:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


class GroupMemberThread(threading.Thread):
    """A member of a group, until it is told to stop: when it had its first assignment."""

    def __init__(self, addresses: str, group: str, after_s: float, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.settings = {
            "bootstrap.servers": addresses,
            "group.id": group,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "log_level": 0,
        }
        self.after_s, self.told_to_stop, self.assigned_after = after_s, stop, 0.0

    def run(self) -> None:
        """Subscribe, and poll."""
        time.sleep(self.after_s)
        consumer = Consumer(self.settings)
        begun = time.monotonic()

        def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            self.assigned_after = self.assigned_after or time.monotonic() - begun

        consumer.subscribe([TOPIC], on_assign=assigned)
        while not self.told_to_stop.is_set():
            consumer.poll(0.1)
        consumer.close()


def join(running: MeasuredCluster, members: int, every_s: float, number: int) -> float:
    """Let members join, one every so many seconds; the longest that one has waited for its first assignment (s)."""
    stop = threading.Event()
    group = f"joiners-{members}-{number}"
    joining = [GroupMemberThread(running.addresses, group, every_s * place, stop) for place in range(members)]
    for one in joining:
        one.start()
    end = time.monotonic() + every_s * members + JOIN_S
    while time.monotonic() < end and not all(one.assigned_after for one in joining):
        time.sleep(0.1)
    stop.set()
    for one in joining:
        one.join(30)
    return max(one.assigned_after if one.assigned_after else JOIN_S for one in joining)


def main() -> None:
    """Start, let commit and join, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka", metavar="RELEASE", help="Such as 4.4.0; without it ours runs alone.")
    parser.add_argument("--commits", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--writers", type=int, default=16, metavar="N")
    parser.add_argument("--kill-every", type=float, default=30, metavar="S", help="0: never.")
    parser.add_argument("--members", type=int, default=50, metavar="N")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="How often members join; 0: never.")
    parser.add_argument("--port", type=int, default=20_300, metavar="N", help="The first port; clients take none near it.")
    parser.add_argument(
        "--load", type=int, metavar="N", help="Measure how long a log of so many commits is read, and no more."
    )
    options = parser.parse_args()
    if options.load:
        measure_load(options.load, options.kafka, options.runs)
        return
    folder = Path(tempfile.mkdtemp(prefix="kspec-benchmark-"))
    clusters: list[MeasuredCluster] = []
    lost = 0
    try:
        clusters.append(MeasuredCluster("kspec", KspecProgram(OURS, {}, {}), folder / "kspec", options.port))
        if options.kafka:
            program = KafkaProgram(find_jars(options.kafka), KAFKAS_FLAGS)
            name = f"Apache Kafka {options.kafka}"
            clusters.append(MeasuredCluster(name, program, folder / "kafka", options.port + BROKERS + 1))
        for one in clusters:
            until(lambda one=one: len(one.leaders(TOPIC)) > 0)  # type: ignore[misc]
        together: list[list[float]] = [[] for _ in clusters]
        apart: list[list[float]] = [[] for _ in clusters]
        for number in range(options.runs):
            for place, one in enumerate(clusters):
                together[place].append(join(one, options.members, 0, number))
                apart[place].append(join(one, 6, 3, number))
        for place, one in enumerate(clusters if options.runs else ()):
            one.measures[f"{options.members} members that join together (s)"] = f"{statistics.median(together[place]):.1f}"
            one.measures["six members that join every 3 s (s)"] = f"{statistics.median(apart[place]):.1f}"
        if options.commits:
            lost = sum(commit_under_kills(one, options.writers, options.commits, options.kill_every) for one in clusters)
        for name in clusters[0].measures:
            print(f"| {name} | {' | '.join(one.measures[name] for one in clusters)} |")
    finally:
        for one in clusters:
            one.cluster.kill()
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
