"""Committed records: no log lacks one that may be elected, and no two leaders show different ones."""

from collections.abc import Mapping

from kspec.impl.broker.replica import Replica
from kspec.spec.broker.partition import Partition
from kspec.spec.log.epoch_history import describes_any
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.metadata import PartitionRegistration
from kspec.spec.topics import TopicPartition
from kspec.spec.values import BrokerId, Offset
from kspec.trials.simulated.checks.epochs import CommittedPrefix, Stretches, in_words, stretches, stretches_of_batches
from kspec.trials.simulated.history import BrokenPromiseError, ClientPartitionHistory
from kspec.trials.simulated.nodes import BrokerNode
from kspec.trials.simulated.setup import RunSetup


class CommittedChecks:
    """The committed part of each partition, and which logs were found to hold it."""

    def __init__(
        self,
        setup: RunSetup,
        brokers: Mapping[int, BrokerNode],
        histories: Mapping[int, ClientPartitionHistory],
        places: Mapping[int, TopicPartition],
    ) -> None:
        self._brokers, self._histories, self._places = brokers, histories, places
        self._indexes = {place: index for index, place in places.items()}
        self._loses_epochs = setup.loses_epoch_files
        self._min_isr = setup.conditions_now.min_isr
        self._committed = dict.fromkeys(histories, CommittedPrefix())
        self._held: dict[tuple[int, int], tuple[CommittedPrefix, EpochLog]] = {}
        """By broker and partition: the committed prefix that was found to be held, and the log that holds it."""
        self._same: dict[tuple[int, int], tuple[Stretches, Stretches]] = {}
        """By broker and partition: the epochs of its log, and the committed ones, that were last found equal."""
        self._lost: set[tuple[int, int]] = set()
        """Brokers that have lost power, and partitions of which they are not in sync again."""

    def forget(self) -> None:
        """Look at everything anew from now on."""
        self._held.clear()
        self._same.clear()

    def look_at_epochs(self, node: int, replica: Replica) -> None:
        """Check that a replica that has just been opened knows the epochs of all its batches, and no others."""
        log = replica.files.log
        if replica.config.compacts or log.start_offset == log.end_offset:
            return
        told, are = stretches(log, log.end_offset), stretches_of_batches(replica, log.end_offset)
        if told != are:
            what = f"broker {node} opens partition {replica.place.partition} with {in_words(told)}"
            raise BrokenPromiseError("EpochsOfLog", f"{what}, its batches have {in_words(are)}")

    def is_misled(self, node: int) -> bool:
        """Whether a broker may have other epochs in memory than its batches: by its release it believes its epoch files."""
        return self._loses_epochs and self._brokers[node].protocol.believes_epochs is describes_any

    def _stretches(self, node: int, replica: Replica, log: EpochLog, end_offset: int) -> Stretches:
        """The epochs of a broker's log below an offset."""
        return stretches_of_batches(replica, end_offset) if self.is_misled(node) else stretches(log, end_offset)

    def note(self, node: int, replica: Replica, stored_end: int | None = None) -> None:
        """Check the log below a high watermark against the committed prefix; a leader's may extend it.

        `stored_end`: the end of the files, if the last step could not be written; the log before it is committed.
        """
        partition, index = replica.partition, self._indexes[replica.place]
        (log, mark), known = partition.local, self._committed[index]
        mark = mark if stored_end is None else Offset(min(mark, stored_end))
        end = min(mark, known.end_offset)
        if not self._agree(node, index, self._stretches(node, replica, log, end), known.between(log.start_offset, end)):
            name = "ConsistentRead" if partition.leader == node else "LogMatching"
            what = (
                f"broker {node} has {in_words(self._stretches(node, replica, log, mark))} up to {mark} of partition {index}"
            )
            raise BrokenPromiseError(name, f"{what}, committed was {in_words(known.stretches)} up to {known.end_offset}")
        if mark > known.end_offset:
            if partition.leader != node:
                what = f"broker {node} at {mark} in partition {index}, the leaders at {known.end_offset}"
                raise BrokenPromiseError("HighWatermarkFromLeader", what)
            shown = self._stretches(node, replica, log, mark)
            self._committed[index] = known.grown(log.start_offset, mark, shown)

    def _agree(self, node: int, index: int, has: Stretches, committed: Stretches) -> bool:
        """Whether a log has the committed epochs. Both are immutable, so equal ones are remembered."""
        same = self._same.get((node, index))
        if same is not None and same[0] is has and same[1] is committed:
            return True
        if has != committed:
            return False
        self._same[node, index] = (has, committed)
        return True

    def is_held(self, node: int, index: int, log: EpochLog) -> bool:
        """Whether this log was found to hold all that is committed, and nothing more is."""
        held = self._held.get((node, index))
        return held is not None and held[0] is self._committed[index] and held[1] is log

    def look_at_leader(self, index: int, elected: PartitionRegistration) -> None:
        """Check that a leader that has just been elected holds every acknowledged record."""
        node = self._brokers[elected.leader]
        replica = node.core.replicas.get(self._places[index]) if node.up else None
        if replica is None:
            return
        known, end = self._histories[index].end_of_acknowledged, replica.partition.local.log.end_offset
        if end < known:
            what = f"broker {node.node_id} is elected in epoch {elected.leader_epoch} with a log that ends at {end}"
            raise BrokenPromiseError("AcknowledgedOnNextLeader", f"{what}, acknowledged are {known}")

    def look_at_candidate(self, node: int, index: int, replica: Replica, registration: PartitionRegistration) -> None:
        """Check that a replica that leads, or may be elected, holds all committed records."""
        committed, log = self._committed[index], replica.partition.local.log
        end = committed.end_offset
        holds = log.end_offset >= end
        if holds and self._agree(
            node, index, self._stretches(node, replica, log, end), committed.between(log.start_offset, end)
        ):
            self._held[node, index] = (committed, log)
            return
        if log.end_offset < self._histories[index].end_of_acknowledged:
            name = "AcknowledgedOnNextLeader"
        else:
            name = "LeaderCompleteness" if node == registration.leader else "CommittedOnNextLeader"
        of_log = self._stretches(node, replica, log, log.end_offset)
        has = f"broker {node} has {in_words(of_log)} up to {log.end_offset} of partition {index}"
        committed_is = f"{in_words(committed.stretches)} up to {committed.end_offset}"
        raise BrokenPromiseError(name, f"{has}, committed is {committed_is}; {registration}")

    def look_at_isr(
        self, index: int, leader: Partition[EpochLog], registration: PartitionRegistration, logs: Mapping[BrokerId, EpochLog]
    ) -> None:
        """Check that the members of the controller's ISR that run have the leader's log up to its high watermark."""
        mark = leader.local.high_watermark
        for node_id in registration.isr:
            if node_id in logs and logs[node_id].end_offset < mark:
                end = logs[node_id].end_offset
                what = (
                    f"leader {leader.leader} of partition {index} has high watermark {mark}, broker {node_id} ends at {end}"
                )
                raise BrokenPromiseError("StrongIsr", what)

    def lost_power(self, node: int) -> None:
        """Note that a broker may have lost records of all partitions."""
        self._lost |= {(node, index) for index in self._places}

    def look_at_acknowledged(self, index: int, end_offset: int, registration: PartitionRegistration | None) -> None:
        """Look whether enough brokers have what a producer was just told is safe; of a broker that is down nobody knows.

        Nor of one that has lost power and is not in sync again: the answer may be older, and have been on its way since.

        `registration`: none if the partition has been moved. Raises: `BrokenPromiseError`.
        """
        if end_offset > self._committed[index].end_offset:
            what = f"records up to {end_offset} are acknowledged, committed is up to {self._committed[index].end_offset}"
            raise BrokenPromiseError("AcknowledgedIsCommitted", what)
        if registration is None:
            return
        ends = []
        for node_id, node in self._brokers.items():
            replica = node.core.replicas.get(self._places[index]) if node.up else None
            if replica is None:
                continue
            end = replica.partition.local.log.end_offset
            if node_id in registration.isr and end >= self._committed[index].end_offset:
                self._lost.discard((node_id, index))
            if (node_id, index) not in self._lost:
                ends.append(end)
        down = len(registration.replicas) - len(ends)
        if sum(end >= end_offset for end in ends) + down < self._min_isr:
            what = f"records up to {end_offset} are acknowledged, logs of partition {index} end at {sorted(ends)}"
            raise BrokenPromiseError("AcknowledgedByEnough", what)
