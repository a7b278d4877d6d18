"""What must hold in every state, by the names of the models `kafka` and `messages`; and that what is stored is known.

A record is committed once it is below the high watermark of a replica that believes to lead. `state.committed` has them all.
"""

from typing import Any

from spec.broker.rules.isr.proposal import maximal_isr
from spec.log.record_log import RecordLog
from spec.metadata import PartitionRegistration, broker_of, has_leader
from spec.values import NO_EPOCH, NO_LEADER
from tests.simulation.parties import Node
from tests.simulation.state import State, Violation

ALWAYS = {
    "ClusterForms": "a broker that starts is registered and unfenced, and a partition can be created",
    "TypeOk": "log start, high watermark and log end are in this order; a log's epochs grow with its offsets",
    "PersistRebuildsLog": "the fold of all `Persist` effects of a replica is its log, values included",
    "PersistBeforeSend": "no change of the log is stored after an answer or request of the same step",
    "ProducersFollowLog": "what a replica knows of idempotent producers is what the batches in its log say",
    "AnswersAreStored": "an acknowledged record is in the stored log at the offset of the answer",
    "AcknowledgedIsCommitted": "a record that is acknowledged with acks=all is committed",
    "WaitingIsAnswered": "a producer waits only for a leader, and for records above the high watermark",
    "LeaderEpochGrows": "a running replica never goes back to an earlier leader epoch, nor a leader to an earlier ISR",
    "HighWatermarkGrows": "the high watermark of a leader never goes back",
    "OfflineIsIdle": "only a leader has followers and waiting producers, and it has no fetcher",
    "HighWatermarkFromLeader": "a follower's high watermark is below some leader's",
    "LogMatching": "two replicas hold the same records below both their high watermarks",
    "ConsistentRead": "no two leaders ever show different records at the same offset to consumers",
    "ReadableIsFinal": "a readable record is committed, and no epoch ever commits another record at its offset",
    "SameEpochSameRecords": "two logs with records of one epoch are equal up to the earlier of these records",
    "OnceAndInOrder": "a log holds each record of an idempotent producer once, and in the order in which it was sent",
    "MetadataLogIsState": "the state of the controller is the fold of the records that it has appended",
    "AnswerAfterAppend": "the controller answers only after its records are in the metadata log",
    "PartitionEpochGrows": "each change of the partition has the next partition epoch, a new leader the next leader epoch",
    "LeaderInIsr": "the controller's leader is in its ISR, or there is none",
    "IsrIsAssigned": "ISR and eligible leader replicas are replicas, and none is both",
    "LeaderIsActive": "a new leader is neither fenced nor shutting down",
    "CommittedOnNextLeader": "a committed record (below any replica's high watermark) is on every possible next leader",
    "AcknowledgedOnNextLeader": "an acknowledged record is on every possible next leader",
    "LeaderCompleteness": "the true leader holds every record that another replica knows to be committed",
    "AcknowledgedOnLeader": "the true leader holds every acknowledged record",
    "CommittedOnLaterLeaders": "a record that an epoch's leader committed is in the log of the leader of every later epoch",
    "WeakIsr": "every record below a presumed leader's high watermark is on every member of this leader's own ISR",
    "StrongIsr": "every record below a presumed leader's high watermark is on every member of the controller's ISR",
    "QuorumSuperset": "the true leader's maximal ISR contains the controller's ISR",
    "UncleanExclusion": "a broker that lost records is neither in the ISR nor eligible until it has fetched",
    "LatestOffset": "the true leader's latest offset is not before a record that consumers can have read",
    "LowWatermark": "no live replica has records below the low watermark of a leader in office",
}
"""The properties by name, with their meaning. Those of the models have the models' names."""


# ---- one replica, after each of its steps


def check_replica(state: State, node: Node, before: Any) -> None:
    """What one step of a replica must leave as it should be; `before` is its partition before the step."""
    partition = node.partition
    log, high_watermark = partition.local
    if not node.disk.holds(log):
        raise Violation("PersistRebuildsLog", f"broker {node.id} stored {node.disk.as_log()} and has {log}")
    leads = partition.leader == node.id
    if before.local is not partition.local:
        _check_log(state, node, log, high_watermark)
        if state.keeps:
            _check_records(state, node, log)
            _note_committed(state, node, leads, log, high_watermark)
    if partition.leader_epoch < before.leader_epoch and partition.leader_epoch != NO_EPOCH:
        raise Violation("LeaderEpochGrows", f"broker {node.id} from {before.leader_epoch} to {partition.leader_epoch}")
    if leads and before.leader == node.id:
        if high_watermark < before.local.high_watermark:
            raise Violation("HighWatermarkGrows", f"broker {node.id} from {before.local.high_watermark}")
        if partition.isr.partition_epoch < before.isr.partition_epoch:
            raise Violation("LeaderEpochGrows", f"broker {node.id} from {before.isr} to {partition.isr}")
    if not leads and (partition.followers or partition.waiting):
        raise Violation("OfflineIsIdle", f"broker {node.id} leads no more: {partition}")
    if leads and partition.fetcher.leader != NO_LEADER:
        raise Violation("OfflineIsIdle", f"broker {node.id} leads and fetches: {partition}")
    for waiting in partition.waiting:
        if waiting.appended.required_offset <= high_watermark:
            raise Violation("WaitingIsAnswered", f"broker {node.id} lets {waiting} wait below {high_watermark}")


def _check_log(state: State, node: Node, log: RecordLog, high_watermark: int) -> None:
    if not 0 <= log.start_offset <= high_watermark <= log.end_offset:
        raise Violation("TypeOk", f"broker {node.id}: {log}, high watermark {high_watermark}")
    records: tuple[Any, ...] = log.records
    epochs = [record.leader_epoch for record in records]
    if epochs != sorted(epochs) or (log.opened_epoch != NO_EPOCH and epochs and epochs[-1] >= log.opened_epoch):
        raise Violation("TypeOk", f"epochs of broker {node.id} do not grow: {log}")


def _check_records(state: State, node: Node, log: RecordLog) -> None:
    records: tuple[Any, ...] = log.records
    latest: dict[int, int] = {}
    for record in records:
        if record.producer_id >= 0:
            if latest.get(record.producer_id, -1) >= record.value:
                raise Violation("OnceAndInOrder", f"broker {node.id} holds {record} after a later one")
            latest[record.producer_id] = record.value
    for other in state.nodes:
        if other is not node and other.partition.local.log is not log:
            _check_same_epoch(node, log, other, other.partition.local.log)


def _check_same_epoch(node: Node, log: RecordLog, other: Node, theirs: RecordLog) -> None:
    start = max(log.start_offset, theirs.start_offset)
    mine: tuple[Any, ...] = log.records[start - log.start_offset :]
    yours: tuple[Any, ...] = theirs.records[start - theirs.start_offset :]
    common = min(len(mine), len(yours))
    if mine[:common] == yours[:common]:
        return
    end = common
    while end and mine[end - 1].leader_epoch != yours[end - 1].leader_epoch:
        end -= 1
    if mine[:end] != yours[:end]:
        raise Violation("SameEpochSameRecords", f"brokers {node.id} and {other.id}: {log} and {theirs}")


def _note_committed(state: State, node: Node, leads: bool, log: RecordLog, high_watermark: int) -> None:
    committed, start = state.committed, log.start_offset
    if leads:
        epoch = node.partition.leader_epoch
        state.commit_ends[epoch] = max(state.commit_ends.get(epoch, 0), high_watermark)
    visible: tuple[Any, ...] = log.records[: high_watermark - start]
    known = committed[start:high_watermark]
    if visible == known:
        return
    if visible[: len(known)] != known:
        name = "ConsistentRead" if leads else "LogMatching"
        raise Violation(name, f"broker {node.id} has {visible} from {start} on, committed were {known}")
    if not leads:
        raise Violation("HighWatermarkFromLeader", f"broker {node.id} at {high_watermark} of {len(committed)}")
    if start > len(committed):
        raise Violation("CommittedOnLaterLeaders", f"broker {node.id} deleted up to {start} of {len(committed)}")
    state.committed = committed + visible[len(committed) - start :]
    state.reached["committed"] += 1


# ---- the whole cluster


def check_cluster(state: State) -> None:
    """What must hold between the parties, after a move that changed something."""
    topic = state.topic
    if topic is None or not state.keeps:
        return
    committed = state.committed
    for node in state.nodes:
        partition = node.partition
        log = partition.local.log
        key = (log, committed)
        if node.agreed_with is None or node.agreed_with[0] is not log or node.agreed_with[1] is not committed:
            start = log.start_offset
            held = start >= len(committed) or log.records[: len(committed) - start] == committed[start:]
            node.agreed_with = (*key, held)
        if not node.up:
            continue
        if state.is_in_office(node):
            if not topic.isr <= maximal_isr(partition.isr):
                raise Violation("QuorumSuperset", f"broker {node.id} counts {partition.isr}, the controller {topic}")
            if not node.agreed_with[2]:
                raise _lost(state, node, topic, "AcknowledgedOnLeader", "LeaderCompleteness")
        listed = node.id in topic.isr or node.id in topic.elr
        if listed and not node.agreed_with[2] and state.is_present(node):
            raise _lost(state, node, topic, "AcknowledgedOnNextLeader", "CommittedOnNextLeader")
    if not state.setup.power_losses:
        _check_isr(state, topic)


def _lost(state: State, node: Node, topic: PartitionRegistration, acknowledged: str, committed: str) -> Violation:
    log = node.partition.local.log
    there = {log.start_offset + place: record for place, record in enumerate(log.records)}
    gone = [
        offset for offset in range(log.start_offset, len(state.committed)) if there.get(offset) != state.committed[offset]
    ]
    name = acknowledged if any(offset in state.acknowledged for offset in gone) else committed
    return Violation(name, f"broker {node.id} lacks {state.committed[gone[0]]} at {gone[0]}: {log}, {topic}")


def _check_isr(state: State, topic: PartitionRegistration) -> None:
    for node in state.nodes:
        if not (node.up and node.partition.leader == node.id):
            continue
        log, high_watermark = node.partition.local
        for other in state.nodes:
            theirs: RecordLog = other.partition.local.log
            if other is node or theirs.end_offset >= high_watermark:
                continue
            if other.id in topic.isr:
                raise Violation("StrongIsr", f"broker {other.id} lacks what {node.id} has committed: {theirs}, {log}")
            if other.id in node.partition.isr.isr and not state.setup.reassigns:
                raise Violation("WeakIsr", f"broker {other.id} lacks what {node.id} has committed: {theirs}, {log}")


# ---- the controller, after each decision


def check_decision(state: State, before: PartitionRegistration | None, after: PartitionRegistration) -> None:
    """What each change of the partition must respect."""
    if has_leader(after) and after.leader not in after.isr:
        raise Violation("LeaderInIsr", str(after))
    replicas = frozenset(after.replicas)
    if not after.isr <= replicas or (after.isr & after.elr) or not after.elr <= replicas:
        raise Violation("IsrIsAssigned", str(after))
    if before is None:
        return
    if after.partition_epoch <= before.partition_epoch or after.leader_epoch < before.leader_epoch:
        raise Violation("PartitionEpochGrows", f"{before}, {after}")
    if after.leader != before.leader and after.leader_epoch == before.leader_epoch:
        raise Violation("PartitionEpochGrows", f"{before}, {after}")
    if after.leader != before.leader and has_leader(after):
        leader = broker_of(state.image.brokers, after.leader)
        if leader is None or leader.fenced or leader.in_controlled_shutdown:
            raise Violation("LeaderIsActive", f"{after}, {leader}")
