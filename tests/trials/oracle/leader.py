"""Expected steps of a leader, or of a replica that answers in its place."""

from typing import Any

from kspec.spec.broker.effects import AnswerProducer, BatchesAppended, CloseConnection, LogStartMoved, Persist
from kspec.spec.broker.partition import WaitingProduce
from kspec.spec.broker.rules.followers import Follower, FollowerState
from kspec.spec.broker.rules.isr.proposal import LeaderIsr
from kspec.spec.broker.rules.produce import AppendedRecords
from kspec.spec.messages.alter_partition import AlterPartitionRequest, IsrMember
from kspec.spec.messages.delete_records import DeleteRecordsResponse
from kspec.spec.messages.fetch import FetchResponse, Isolation
from kspec.spec.messages.list_offsets import NOT_FOUND, ListOffsetsResponse, OffsetSpec
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from kspec.spec.messages.produce import ProduceResponse
from kspec.spec.step import Reply, SendToController
from kspec.spec.values import NO_PARTITION_EPOCH, UNDEFINED_EPOCH_END, BrokerEpoch, Epoch, Error, MonotonicMs, Offset
from tests.trials.oracle.log import end_of, epoch_at, epoch_end, from_start, latest_epoch, read, with_batches
from tests.trials.oracle.party import ObservedNode

Expected = tuple[dict[str, Any], tuple[Any, ...]]
"""The fields of the partition that change, with their new values; and the effects."""

NONE: frozenset[Any] = frozenset()


def registration(node: ObservedNode, broker: int) -> Any:
    """A broker's registration in the metadata that a broker knows."""
    for one in node.brokers:
        if one.broker == broker:
            return one
    return None


class LeadingPartition:
    """The partition of a broker as it is being changed; every method changes it further."""

    def __init__(self, node: ObservedNode) -> None:
        self.node, self.before = node, node.partition
        self.changes: dict[str, Any] = {}
        self.effects: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return self.changes[name] if name in self.changes else getattr(self.before, name)

    @property
    def log(self) -> Any:
        return self.local.log

    @property
    def end(self) -> Offset:
        return end_of(self.local.log)

    @property
    def leads(self) -> bool:
        return bool(self.leader == self.node.id)

    @property
    def fewest(self) -> int:
        return min(self.node.settings.min_isr, 1 + len(self.followers))

    @property
    def counted(self) -> Any:
        return self.isr.isr | self.isr.pending_isr

    def expected(self) -> Expected:
        return self.changes, tuple(self.effects)

    def caught_up(self, state: FollowerState) -> bool:
        lag = self.node.now - state.caught_up_time
        return state.end_offset == self.end or lag <= self.node.settings.max_lag

    def eligible(self, follower: Follower) -> bool:
        known = registration(self.node, follower.broker)
        if known is None or known.fenced or known.in_controlled_shutdown:
            return False
        return follower.state.broker_epoch in (-1, known.broker_epoch)

    def raise_high_watermark(self) -> None:
        """To the least end among the leader, who may be in sync, and who is about to be; not below min ISR."""
        if len(self.isr.isr) < self.fewest:
            return
        ends = [self.end]
        for follower in self.followers:
            if follower.broker in self.counted or (self.caught_up(follower.state) and self.eligible(follower)):
                ends.append(follower.state.end_offset)
        if min(ends) > self.local.high_watermark:
            self.changes["local"] = self.local._replace(high_watermark=min(ends))

    def answer_waiting(self) -> None:
        """Answer requests that wait for a leader that is gone, or for records that are committed now."""
        kept = []
        for one in self.waiting:
            error = None
            if not self.leads:
                error = Error.NOT_LEADER_OR_FOLLOWER
            elif self.local.high_watermark >= one.appended.required_offset:
                enough = len(self.counted) >= self.fewest
                error = Error.NONE if enough else Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            if error is None:
                kept.append(one)
            else:
                self.effects.append(AnswerProducer(one.request, ProduceResponse(error, one.appended.base_offset)))
        if len(kept) < len(self.waiting):
            self.changes["waiting"] = tuple(kept)

    def propose(self, isr: frozenset[Any]) -> None:
        """Ask for another ISR; each member with the broker epoch of its last fetch. One request at a time."""
        if self.node.partition.request_in_flight:
            return
        members = []
        for replica in isr:
            epoch = self.node.epoch if replica == self.node.id else BrokerEpoch(-1)
            for follower in self.followers:
                if follower.broker == replica:
                    epoch = BrokerEpoch(max(-1, follower.state.broker_epoch))
            members.append(IsrMember(replica, epoch))
        now = self.isr
        request = AlterPartitionRequest(
            self.node.id, self.node.epoch, self.partition_id, self.leader_epoch, now.partition_epoch, frozenset(members)
        )
        self.changes["isr"] = LeaderIsr(now.isr, now.partition_epoch, isr, now.partition_epoch)
        self.changes["request_in_flight"] = True
        self.effects.append(SendToController(request))

    def wrong_epoch(self, claimed: Epoch) -> Error:
        if claimed in (-1, self.leader_epoch):
            return Error.NONE
        return Error.FENCED_LEADER_EPOCH if claimed < self.leader_epoch else Error.UNKNOWN_LEADER_EPOCH

    def refuses(self, claimed: Epoch, needs_leader: bool) -> Error:
        error = self.wrong_epoch(claimed)
        if error == Error.NONE and needs_leader and not self.leads:
            return Error.NOT_LEADER_OR_FOLLOWER
        return error

    def visible(self, isolation: Isolation) -> Offset:
        """The offset before which a reader sees records."""
        if isolation == Isolation.LOG_END:
            return self.end
        high_watermark = self.local.high_watermark
        unstable = min((one.first_offset for one in self.transactions.ongoing), default=-1)
        if isolation == Isolation.COMMITTED_TRANSACTIONS and -1 < unstable < high_watermark:
            return Offset(unstable)
        return Offset(high_watermark)


def sequences_of(node: ObservedNode) -> dict[int, tuple[Any, tuple[tuple[int, int, Offset], ...]]]:
    """The batches that a replica knows of each idempotent producer, with the producer's epoch."""
    return {
        entry.producer_id: (
            entry.producer_epoch,
            tuple((one.first_sequence, one.record_count, one.base_offset) for one in entry.batches),
        )
        for entry in node.partition.producers
    }


def produce(node: ObservedNode, request: Any) -> Expected:
    """A batch is appended once, in sequence, by the leader; it is stored before it is acknowledged."""
    after, batch = LeadingPartition(node), request.batch
    epoch, known = sequences_of(node).get(batch.producer_id, (None, ()))
    last = batch.first_sequence + batch.record_count - 1
    first_copy = [one for one in known if epoch == batch.producer_epoch and one[0] == batch.first_sequence]
    first_copy = [one for one in first_copy if one[0] + one[1] - 1 == last]
    error, idempotent = Error.NONE, batch.producer_id >= 0
    if request.acks not in (-1, 0, 1):
        error = Error.INVALID_REQUIRED_ACKS
    elif not after.leads:
        error = Error.NOT_LEADER_OR_FOLLOWER
    elif request.acks == -1 and len(after.isr.isr) < after.fewest:
        error = Error.NOT_ENOUGH_REPLICAS
    elif idempotent and not first_copy and epoch is not None:
        following = known[-1][0] + known[-1][1] if batch.producer_epoch == epoch else 0
        if batch.producer_epoch < epoch:
            error = Error.INVALID_PRODUCER_EPOCH
        elif batch.first_sequence != following:
            error = Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    if error != Error.NONE:
        refusal: Any = AnswerProducer(request.request, ProduceResponse(error))
        return {}, (CloseConnection(request.request) if request.acks == 0 else refusal,)
    base = Offset(first_copy[0][2]) if idempotent and first_copy else after.end
    if not (idempotent and first_copy):
        batches = (batch._replace(leader_epoch=after.leader_epoch),)
        after.effects.append(Persist(BatchesAppended(base, batches)))
        after.changes["local"] = after.local._replace(log=with_batches(after.log, base, batches))
        after.raise_high_watermark()
    if request.acks == 1:
        after.effects.append(AnswerProducer(request.request, ProduceResponse(Error.NONE, base)))
    if request.acks == -1:
        waiting = AppendedRecords(base, Offset(base + batch.record_count), request.deadline)
        after.changes["waiting"] = (*after.waiting, WaitingProduce(request.request, waiting))
    after.answer_waiting()
    return after.expected()


def time_out(node: ObservedNode) -> Expected:
    """Answer each request whose deadline has passed; nothing else changes."""
    late = [one for one in node.partition.waiting if -1 < one.appended.deadline <= node.now]
    kept = tuple([one for one in node.partition.waiting if one not in late])
    answers = [
        AnswerProducer(one.request, ProduceResponse(Error.REQUEST_TIMED_OUT, one.appended.base_offset)) for one in late
    ]
    return {"waiting": kept}, tuple(answers)


def fetch(node: ObservedNode, request: Any) -> Expected:
    """A reader gets the records that it may see; a follower's fetch tells where its log ends, unless its log diverges."""
    after = LeadingPartition(node)
    answer = _read(after, request)
    if request.replica == -1 or answer.error != Error.NONE or answer.diverging != UNDEFINED_EPOCH_END:
        return {}, (Reply(answer),)
    known = registration(node, request.replica)
    is_known = request.broker_epoch > -1 and known is not None and not known.fenced
    if is_known and known.broker_epoch > request.broker_epoch:
        return {}, (Reply(FetchResponse(Error.NOT_LEADER_OR_FOLLOWER)),)
    (follower,) = [one for one in after.followers if one.broker == request.replica]
    state, offset, end = follower.state, request.fetch.fetch_offset, after.end
    caught_up = state.caught_up_time
    if offset >= end:
        caught_up = max(caught_up, node.now)
    elif offset >= state.leader_end_offset:
        caught_up = max(caught_up, state.fetch_time)
    seen = max(end, state.leader_end_offset)
    noted = FollowerState(offset, request.start_offset, seen, MonotonicMs(node.now), caught_up, request.broker_epoch)
    now = Follower(request.replica, noted)
    after.changes["followers"] = tuple([now if one.broker == request.replica else one for one in after.followers])
    complete = offset >= after.local.high_watermark and offset >= after.epoch_start
    waits_for_answer = after.isr.pending_epoch != NO_PARTITION_EPOCH
    enough = len(after.isr.isr) >= after.fewest or not after.leads
    may_join = request.replica not in after.isr.isr and complete and after.eligible(now)
    if may_join and not waits_for_answer and (enough or after.caught_up(noted)):
        after.propose(after.isr.isr | {request.replica})
    if state.end_offset != offset:
        after.raise_high_watermark()
    after.answer_waiting()
    after.effects.append(Reply(answer))
    return after.expected()


def _read(after: LeadingPartition, request: Any) -> FetchResponse:
    position, log = request.fetch, after.log
    from_follower = request.replica != -1
    claimed, offset = position.current_leader_epoch, position.fetch_offset
    error = after.refuses(claimed, from_follower or not request.has_client_metadata)
    if error == Error.NONE and from_follower and request.replica not in [one.broker for one in after.followers]:
        error = Error.UNKNOWN_LEADER_EPOCH if claimed != -1 else Error.NOT_LEADER_OR_FOLLOWER
    if error != Error.NONE:
        return FetchResponse(error)
    parted, asked = UNDEFINED_EPOCH_END, position.last_fetched_epoch
    if asked != -1:
        there = epoch_end(log, asked)
        if there == UNDEFINED_EPOCH_END or offset < log.start_offset:
            return FetchResponse(Error.OFFSET_OUT_OF_RANGE)
        if there.leader_epoch < asked or there.end_offset < offset:
            parted = there
    if parted == UNDEFINED_EPOCH_END and not log.start_offset <= offset <= after.end:
        return FetchResponse(Error.OFFSET_OUT_OF_RANGE)
    isolation = Isolation.LOG_END if from_follower else Isolation.HIGH_WATERMARK
    if not from_follower and request.read_committed:
        isolation = Isolation.COMMITTED_TRANSACTIONS
    end = min(after.visible(isolation), offset + request.max_records)
    records = () if parted != UNDEFINED_EPOCH_END else read(log, offset, end)
    stable = after.visible(Isolation.COMMITTED_TRANSACTIONS)
    return FetchResponse(Error.NONE, offset, records, after.local.high_watermark, log.start_offset, stable, parted)


def find_epoch(node: ObservedNode, request: Any) -> Expected:
    """Answer with the end of an epoch in this log."""
    now = LeadingPartition(node)
    error = now.refuses(request.current_leader_epoch, request.leader_only)
    end = epoch_end(now.log, request.leader_epoch) if error == Error.NONE else UNDEFINED_EPOCH_END
    return {}, (Reply(OffsetForLeaderEpochResponse(error, end)),)


def list_offsets(node: ObservedNode, request: Any, found: Any = NOT_FOUND) -> Expected:
    """Answer with the log start, or the end that the sender sees; clients of a new leader wait for its high watermark.

    `found`: the record of a timestamp, which a client is told of if it sees that.
    """
    now = LeadingPartition(node)
    error = now.refuses(request.current_leader_epoch, request.leader_only)
    if error != Error.NONE:
        return {}, (Reply(ListOffsetsResponse(error)),)
    if request.wanted == OffsetSpec.EARLIEST:
        start = now.log.start_offset
        epoch = epoch_at(now.log, start) if start < now.end else latest_epoch(now.log)
        return {}, (Reply(ListOffsetsResponse(Error.NONE, start, epoch)),)
    if request.isolation != Isolation.LOG_END and now.epoch_start > now.local.high_watermark:
        return {}, (Reply(ListOffsetsResponse(Error.OFFSET_NOT_AVAILABLE)),)
    if request.wanted != OffsetSpec.LATEST:
        seen = found.error == Error.NONE and found.offset < now.visible(request.isolation)
        return {}, (Reply(found if seen else NOT_FOUND),)
    return {}, (Reply(ListOffsetsResponse(Error.NONE, now.visible(request.isolation), now.leader_epoch)),)


def shrink(node: ObservedNode) -> Expected:
    """A leader asks to drop who has not been caught up for too long, unless it waits for the controller."""
    after = LeadingPartition(node)
    if after.leads and after.isr.pending_epoch == NO_PARTITION_EPOCH:
        current = {one.broker for one in after.followers if after.caught_up(one.state)} | {node.id}
        if not after.isr.isr <= current:
            after.propose(after.isr.isr & current)
    return after.expected()


ROLLED_BACK = (Error.INELIGIBLE_REPLICA, Error.OPERATION_NOT_ATTEMPTED)
NEWS_NEEDED = (
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.FENCED_LEADER_EPOCH,
    Error.INVALID_UPDATE_VERSION,
    Error.INVALID_REQUEST,
    Error.NEW_LEADER_ELECTED,
)


def granted(node: ObservedNode, request: Any, answer: Any) -> Expected:
    """The answer to the pending proposal: its ISR is taken; or none is pending; or it is sent again; or news must come."""
    after = LeadingPartition(node)
    now, answered = after.isr, {"request_in_flight": False}
    if now.pending_epoch != request.partition_epoch or now.pending_isr != {one.broker for one in request.isr}:
        return answered, ()
    if answer.error in ROLLED_BACK:
        return {**answered, "isr": LeaderIsr(now.isr, now.partition_epoch, NONE, NO_PARTITION_EPOCH)}, ()
    if answer.error in NEWS_NEEDED:
        return answered, ()
    if answer.error != Error.NONE:
        return {}, (SendToController(request._replace(broker_epoch=node.epoch)),)
    after.changes.update(answered)
    if answer.leader_epoch == after.leader_epoch and answer.partition_epoch >= now.partition_epoch:
        after.changes["isr"] = LeaderIsr(answer.isr, answer.partition_epoch, NONE, NO_PARTITION_EPOCH)
        after.raise_high_watermark()
        after.answer_waiting()
    return after.expected()


def delete(node: ObservedNode, request: Any) -> Expected:
    """A leader deletes committed records, and tells how far live replicas have."""
    after = LeadingPartition(node)
    high_watermark = after.local.high_watermark
    wanted = high_watermark if request.offset == -1 else request.offset
    if not after.leads:
        return {}, (Reply(DeleteRecordsResponse(Error.NOT_LEADER_OR_FOLLOWER)),)
    if not after.node.settings.deletes_records:
        return {}, (Reply(DeleteRecordsResponse(Error.POLICY_VIOLATION)),)
    if not 0 <= wanted <= high_watermark:
        return {}, (Reply(DeleteRecordsResponse(Error.OFFSET_OUT_OF_RANGE)),)
    _move_start(after, wanted)
    low = [after.log.start_offset]
    for follower in after.followers:
        known = registration(node, follower.broker)
        if known is not None and not known.fenced:
            low.append(follower.state.start_offset)
    after.effects.append(Reply(DeleteRecordsResponse(Error.NONE, wanted, min(low))))
    return after.expected()


def retain(node: ObservedNode, wanted: Offset) -> Expected:
    """Old records go, as far as they are committed."""
    after = LeadingPartition(node)
    _move_start(after, Offset(min(wanted, after.local.high_watermark)))
    return after.expected()


def _move_start(after: LeadingPartition, offset: Offset) -> None:
    if offset > after.log.start_offset:
        after.changes["local"] = after.local._replace(log=from_start(after.log, offset))
        after.effects.append(Persist(LogStartMoved(offset)))
