"""`leader_partition`: a partition on one broker, with the handlers that a broker calls. Kafka: `Partition`."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kspec.spec.broker.effects import AnswerProducer, CloseConnection
from kspec.spec.broker.leader.fetch import after_noted_fetch, handle_fetch, note_fetch, read_partition
from kspec.spec.broker.leader.isr import consider_shrinking, handle_alter_partition_response
from kspec.spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.partition import (
    Broker,
    BrokerSettings,
    Handled,
    Partition,
    is_under_min_isr,
    last_stable_offset_of,
    leads,
    min_isr_of,
    role_of,
)
from kspec.spec.broker.roles import become_follower, become_leader
from kspec.spec.broker.rules.fencing import accept_any_replica_epoch
from kspec.spec.broker.rules.isr.membership import any_replica_is_eligible, out_of_sync
from kspec.spec.broker.rules.isr.proposal import maximal_isr, nothing_pending
from kspec.spec.broker.rules.isr.request import ask_for_eligible_isr
from kspec.spec.broker.rules.offsets import low_watermark
from kspec.spec.log.batch import Batch
from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.log.local_log import (
    LocalLog,
    append_fetched,
    high_watermark_from_checkpoint,
    move_start,
    restart,
    set_high_watermark,
)
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kspec.spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest, FetchResponse, Isolation
from kspec.spec.messages.list_offsets import NOT_FOUND, ListOffsetsRequest, ListOffsetsResponse, OffsetSpec
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kspec.spec.messages.produce import ProduceRequest, ProduceResponse
from kspec.spec.metadata import BrokerRegistration, PartitionRegistration
from kspec.spec.releases.broker import BROKER_3_9
from kspec.spec.step import Reply, SendToController
from kspec.spec.transactions.log.partition import OpenTransaction
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NO_LEADER,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_VALUE,
    UNKNOWN_OFFSET,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    Incarnation,
    MonotonicMs,
    Offset,
    PartitionEpoch,
    PartitionId,
    ProducerEpoch,
    ProducerId,
)
from tests.conformance.components import BrokerIds, ById, FoundPair, VectorAnswer, refused
from tests.conformance.components.batches import batch_of, batches_of
from tests.conformance.components.epochs import epoch_end_of
from tests.conformance.components.logs import appended_at, entries_of, follower_json, read_from
from tests.conformance.outcomes import UnsupportedError
from tests.conformance.vocabulary import error_name

WITHOUT_METADATA = replace(
    BROKER_3_9,
    name="3.9 without metadata",
    is_eligible=any_replica_is_eligible,
    check_replica_epoch=accept_any_replica_epoch,
    asks_for_isr=ask_for_eligible_isr,
)
"""Kafka's test of `Partition` by default has a metadata cache that knows nothing of brokers: whatever it asks is allowed."""

START_OF_TIME = 1_700_000_000_000
DEFAULT_BROKER_EPOCH = 1000
"""A broker's epoch in its fetches is its id and this, unless the operation says otherwise."""

ISOLATION = {
    None: Isolation.LOG_END,
    "none": Isolation.LOG_END,
    "log_end": Isolation.LOG_END,
    "read_uncommitted": Isolation.HIGH_WATERMARK,
    "high_watermark": Isolation.HIGH_WATERMARK,
    "read_committed": Isolation.COMMITTED_TRANSACTIONS,
    "txn_committed": Isolation.COMMITTED_TRANSACTIONS,
}

WITHOUT_TOPIC_IDS = {
    "UNKNOWN_TOPIC_ID": Error.UNKNOWN_TOPIC_OR_PARTITION,
    "INCONSISTENT_TOPIC_ID": Error.UNKNOWN_TOPIC_OR_PARTITION,
}
"""A leader's reaction to a refused ISR is the same to both. Topics have no ids here."""

OF_OTHER_LAYERS = {
    "UNKNOWN_SERVER_ERROR",
    "NETWORK_EXCEPTION",
    "COORDINATOR_NOT_AVAILABLE",
    "CLUSTER_AUTHORIZATION_FAILED",
    "UNSUPPORTED_VERSION",
    "INVALID_TOPIC_EXCEPTION",
    "BROKER_NOT_AVAILABLE",
    "DISCONNECTED",
}
"""Errors that no rule of replication names; to a leader that asked for an ISR all of them are any other error."""


WANTED: dict[int | str, OffsetSpec] = {
    "latest": OffsetSpec.LATEST,
    -1: OffsetSpec.LATEST,
    "earliest": OffsetSpec.EARLIEST,
    -2: OffsetSpec.EARLIEST,
    "earliest_local": OffsetSpec.EARLIEST,
    -4: OffsetSpec.EARLIEST,
}
"""The offset that a ListOffsets request asks for, by name or by the timestamp that stands for it."""


def ids_of(brokers: list[int]) -> frozenset[BrokerId]:
    return frozenset(map(BrokerId, brokers))


def epoch_or_none(epoch: int | None) -> Epoch:
    return NO_EPOCH if epoch is None else Epoch(epoch)


class LeaderPartition:
    """`leader_partition`: one replica, the requests that its leader would have sent, and a clock."""

    def __init__(self) -> None:
        self.now = START_OF_TIME
        self.broker = Broker(BrokerId(101), WITHOUT_METADATA)
        self.partition: Partition[EpochLog] = Partition(PartitionId(0), LocalLog(EMPTY_EPOCH_LOG))
        self.proposals: list[AlterPartitionRequest] = []
        self.last_proposal: AlterPartitionRequest | None = None
        self.timestamps: dict[int, int] = {}
        self.epoch_race: tuple[BrokerId, BrokerEpoch] | None = None
        self.requests = 0
        self.answers: dict[int, ProduceResponse] = {}
        self.closed: set[int] = set()
        self.sent = 0
        self.isr_changes = Counter[str]()
        self.announced: PartitionRegistration | None = None
        self.checkpointed: Offset | None = None

    # ---- surroundings

    def config(
        self,
        local_broker: int = 101,
        replica_lag_time_max_ms: int = 30_000,
        min_insync_replicas: int = 1,
        kraft_metadata: bool = False,
        delete_enabled: bool = True,
        checkpointed_hw: int | None = None,
    ) -> None:
        settings = BrokerSettings(min_insync_replicas, replica_lag_time_max_ms, deletes_records=delete_enabled)
        protocol = BROKER_3_9 if kraft_metadata else WITHOUT_METADATA
        self.broker = Broker(BrokerId(local_broker), protocol, settings=settings)
        self.checkpointed_hw(checkpointed_hw)

    def checkpointed_hw(self, offset: int | None) -> None:
        """The high watermark in the checkpoint, which counts when the partition opens its log."""
        self.checkpointed = None if offset is None else Offset(offset)

    def broker_epochs(self, epochs: dict[str, int] | list[list[int]]) -> None:
        for broker, epoch in epochs.items() if isinstance(epochs, dict) else epochs:
            self._register(BrokerId(int(broker)), broker_epoch=BrokerEpoch(epoch))

    def broker_state(self, broker: int, fenced: bool | None = None, shutting_down: bool | None = None) -> None:
        changes = {"fenced": fenced, "in_controlled_shutdown": shutting_down}
        self._register(BrokerId(broker), **{name: value for name, value in changes.items() if value is not None})

    def race_broker_epoch_after_fetch_update(self, broker: int, epoch: int) -> None:
        self.epoch_race = BrokerId(broker), BrokerEpoch(epoch)

    def _register(self, broker: BrokerId, **changes: Any) -> None:
        known = {registration.broker: registration for registration in self.broker.brokers}
        new = BrokerRegistration(broker, BrokerEpoch(broker + DEFAULT_BROKER_EPOCH), Incarnation(0), fenced=False)
        known[broker] = known.get(broker, new)._replace(**changes)
        own_epoch = known[self.broker.self_id].broker_epoch if self.broker.self_id in known else NO_BROKER_EPOCH
        self.broker = self.broker._replace(brokers=tuple(known.values()), broker_epoch=own_epoch)

    def sleep(self, ms: int) -> None:
        self.now += ms

    def seed_log(self, records: int, leader_epoch: int = 0, batch_size: int = 1) -> None:
        self._seed([(self._end, records, leader_epoch)])

    def seed_batches(self, batches: Any) -> None:
        """Batches that the log already has, in any of the forms that `batches_of` reads."""
        self._seed(batches_of(batches, self._end))

    def _seed(self, batches: list[tuple[int, int, int]]) -> None:
        for base_offset, count, epoch in batches:
            log = self.partition.local.log.append_at(Offset(base_offset), (batch_of(count, epoch),))
            self.partition = self.partition._replace(local=self.partition.local._replace(log=log))

    @property
    def _end(self) -> Offset:
        return self.partition.local.log.end_offset

    def update_hw(self, offset: int) -> None:
        self.partition = self.partition._replace(local=set_high_watermark(self.partition.local, Offset(offset)))

    def increment_log_start(self, offset: int) -> VectorAnswer:
        moved = move_start(self.partition.local, Offset(offset))
        self.partition = self.partition._replace(local=moved.local)
        return refused(moved.error)

    def truncate_fully(self, offset: int) -> None:
        self.partition = self.partition._replace(local=restart(self.partition.local, Offset(offset)))

    def append_follower(self, base_offset: int | None = None, count: int = 1, leader_epoch: int = 0) -> VectorAnswer:
        """Append at an offset, or at the end; in Kafka's test a batch of no epoch has epoch 0."""
        base = self._end if base_offset is None else Offset(base_offset)
        appended = append_fetched(self.partition.local, base, (batch_of(count, leader_epoch),))
        self.partition = self.partition._replace(local=appended.local)
        return appended_at(base, count, appended.error)

    # ---- roles

    def make_leader(
        self,
        leader_epoch: int,
        isr: list[int],
        replicas: list[int],
        partition_epoch: int = 1,
        is_new: bool = False,
        leader: int | None = None,
        adding: list[int] | None = None,
        removing: list[int] | None = None,
        checkpointed_hw: int | None = None,
    ) -> VectorAnswer:
        if leader not in (None, self.broker.self_id):
            raise UnsupportedError(f"leader {leader} on broker {self.broker.self_id}")
        led = leads(self.broker, self.partition)
        announced = self._announced(self.broker.self_id, leader_epoch, isr, replicas, partition_epoch, adding, removing)
        self._open_log(checkpointed_hw)
        taken = self._take(announced, lambda: become_leader(self.broker, self.partition, announced, MonotonicMs(self.now)))
        return VectorAnswer(value=taken and not led, named={"is_new_leader": taken and not led})

    def make_follower(
        self,
        leader_epoch: int,
        leader: int,
        isr: list[int],
        replicas: list[int],
        partition_epoch: int = 1,
        is_new: bool = False,
        adding: list[int] | None = None,
        removing: list[int] | None = None,
        checkpointed_hw: int | None = None,
    ) -> VectorAnswer:
        epoch_before = self.partition.leader_epoch
        announced = self._announced(BrokerId(leader), leader_epoch, isr, replicas, partition_epoch, adding, removing)
        self._open_log(checkpointed_hw)
        taken = self._take(announced, lambda: become_follower(self.broker, self.partition, announced))
        new_epoch = taken and leader_epoch > epoch_before
        return VectorAnswer(value=new_epoch, named={"new_epoch": new_epoch})

    def _open_log(self, checkpointed_hw: int | None) -> None:
        """The partition opens its log when it first has a role; the high watermark is then the checkpointed one."""
        offset = self.checkpointed if checkpointed_hw is None else Offset(checkpointed_hw)
        if self.announced is None and offset is not None:
            log = self.partition.local.log
            local = LocalLog(log, high_watermark_from_checkpoint(log, offset))
            self.partition = self.partition._replace(local=local)

    def _announced(
        self,
        leader: BrokerId,
        leader_epoch: int,
        isr: list[int],
        replicas: list[int],
        partition_epoch: int,
        adding: list[int] | None,
        removing: list[int] | None,
    ) -> PartitionRegistration:
        epochs = Epoch(leader_epoch), PartitionEpoch(partition_epoch)
        announced = PartitionRegistration(tuple(map(BrokerId, replicas)), ids_of(isr), leader, *epochs)
        return announced._replace(adding=ids_of(adding or []), removing=ids_of(removing or []))

    def _take(self, announced: PartitionRegistration, handle: Callable[[], Handled[EpochLog]]) -> bool:
        before = self.partition
        takes = self.broker.protocol.takes_announcement
        epochs = announced.leader_epoch, announced.partition_epoch
        taken = takes(before.leader_epoch, before.isr, *epochs)
        self._run(handle())
        self.announced = announced if taken else self.announced
        return taken

    def _run(self, step: Handled[EpochLog]) -> Any:
        """Carry out what a handler returned; the answer to the request that it handled, if it answered."""
        self.partition = step.state
        answer = None
        for effect in step.effects:
            match effect:
                case SendToController(message):
                    if self.proposals:
                        raise UnsupportedError("a second ISR proposal while the first is under way")
                    self.proposals.append(message)
                    self.last_proposal, self.sent = message, self.sent + 1
                case Reply(message):
                    answer = message
                case AnswerProducer(number, response):
                    self.answers[number] = response
                case CloseConnection(number):
                    self.closed.add(number)
        return answer

    # ---- requests

    def produce(
        self,
        acks: int = 1,
        count: int | None = None,
        timestamps: list[int] | None = None,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        first_seq: int = NO_SEQUENCE,
        transactional: bool = False,
    ) -> VectorAnswer:
        """Produce a batch; a transactional one opens a transaction, which no operation ends."""
        times = timestamps if timestamps is not None else [-1] * (1 if count is None else count)
        if producer_id != NO_PRODUCER_ID and first_seq == NO_SEQUENCE:
            raise UnsupportedError("a batch of an idempotent producer without its sequence number")
        producer = ProducerId(producer_id), ProducerEpoch(producer_epoch), first_seq
        self.requests += 1
        request = ProduceRequest(self.requests, acks, Batch(len(times), NO_EPOCH, NO_VALUE, *producer))
        base_offset = self.partition.local.log.end_offset
        step = handle_produce(self.broker, self.partition, request, MonotonicMs(self.now))
        self._run(step)
        if self.partition.local.log.end_offset > base_offset:
            self.timestamps |= {base_offset + position: time for position, time in enumerate(times)}
            known = self.partition.transactions
            if transactional and not known.ongoing:
                opened = known._replace(ongoing=(OpenTransaction(base_offset, ProducerId(producer_id)),))
                self.partition = self.partition._replace(transactions=opened)
        return self.produce_answer(pending=base_offset)

    def produce_answer(self, request: int | None = None, pending: int | None = None) -> VectorAnswer:
        """The answer to a produce request, by default the last; `pending` is what a request without one may tell."""
        number = self.requests if request is None else request
        waiting = [asked.appended.base_offset for asked in self.partition.waiting if asked.request == number]
        answer = self.answers.get(number)
        if answer is not None:
            return VectorAnswer(answer.error.name, "answered", {"base_offset": answer.base_offset, "answered": True})
        if number in self.closed:
            return VectorAnswer("CONNECTION_CLOSED", "answered", {"answered": True})
        return VectorAnswer(value="waiting", named={"base_offset": next(iter(waiting), pending), "answered": False})

    def fetch_follower(
        self,
        replica: int,
        fetch_offset: int,
        current_leader_epoch: int | str | None = None,
        last_fetched_epoch: int | None = None,
        log_start: int = 0,
        broker_epoch: int | None = None,
    ) -> VectorAnswer:
        run = BrokerEpoch(replica + DEFAULT_BROKER_EPOCH if broker_epoch is None else broker_epoch)
        fetch = FetchPosition(self._epoch(current_leader_epoch), Offset(fetch_offset), epoch_or_none(last_fetched_epoch))
        request = FetchRequest(BrokerId(replica), fetch, run, Offset(log_start))
        leader_end = self._end
        if self.epoch_race is not None:
            answer = self._fetch_during_race(request, *self.epoch_race)
        else:
            answer = self._run(handle_fetch(self.broker, self.partition, request, MonotonicMs(self.now)))
        return _fetched(answer, fetch_offset, leader_end)

    def _fetch_during_race(self, request: FetchRequest, broker: BrokerId, epoch: BrokerEpoch) -> FetchResponse:
        """The parts of a fetch one by one, with other metadata between what is noted and what follows from it."""
        answer = read_partition(self.broker, self.partition, request)
        noted = note_fetch(self.broker, self.partition, request, MonotonicMs(self.now))
        self._register(broker, broker_epoch=epoch)
        self.epoch_race = None
        self._run(after_noted_fetch(self.broker, self.partition, noted, request.replica, MonotonicMs(self.now)))
        return answer

    def fetch_consumer(
        self,
        fetch_offset: int,
        current_leader_epoch: int | str | None = None,
        client_metadata: bool = False,
        isolation: str = "read_uncommitted",
        last_fetched_epoch: int | None = None,
    ) -> VectorAnswer:
        reads = ISOLATION.get(isolation.lower(), Isolation.LOG_END)
        if reads == Isolation.LOG_END:
            raise UnsupportedError(f"isolation {isolation} of a consumer")
        request = FetchRequest(
            CONSUMER,
            FetchPosition(self._epoch(current_leader_epoch), Offset(fetch_offset), epoch_or_none(last_fetched_epoch)),
            read_committed=reads == Isolation.COMMITTED_TRANSACTIONS,
            has_client_metadata=client_metadata,
        )
        leader_end = self._end
        return _fetched(
            self._run(handle_fetch(self.broker, self.partition, request, MonotonicMs(self.now))), fetch_offset, leader_end
        )

    def list_offsets(
        self,
        timestamp: int | str = 0,
        isolation: str | None = None,
        current_leader_epoch: int | str | None = None,
        only_leader: bool = True,
    ) -> VectorAnswer:
        name = None if isolation is None else isolation.lower()
        if name not in ISOLATION:
            raise UnsupportedError(f"isolation {isolation}")
        wanted = WANTED.get(timestamp.lower() if isinstance(timestamp, str) else timestamp, OffsetSpec.BY_TIMESTAMP)
        request = ListOffsetsRequest(wanted, self._epoch(current_leader_epoch), ISOLATION[name])
        found = self._found(timestamp) if request.wanted == OffsetSpec.BY_TIMESTAMP else NOT_FOUND
        listed = self._run(
            handle_list_offsets(
                self.broker, self.partition, request._replace(leader_only=only_leader), MonotonicMs(self.now), found
            )
        )
        offset = None if listed.offset == UNKNOWN_OFFSET else listed.offset
        named = {
            "offset": offset,
            "leader_epoch": None if listed.leader_epoch == NO_EPOCH else listed.leader_epoch,
            "timestamp": self.timestamps.get(listed.offset, -1) if request.wanted == OffsetSpec.BY_TIMESTAMP else -1,
        }
        return VectorAnswer(listed.error.name, offset, named)

    def _epoch(self, epoch: int | str | None) -> Epoch:
        """The epoch of a request: a number, none, or the partition's own."""
        if isinstance(epoch, str) and epoch not in ("local", "current"):
            raise UnsupportedError(f"epoch {epoch}")
        return self.partition.leader_epoch if isinstance(epoch, str) else epoch_or_none(epoch)

    def _found(self, timestamp: int | str) -> ListOffsetsResponse:
        """The first record with at least this timestamp."""
        if isinstance(timestamp, str) or timestamp < 0:
            raise UnsupportedError(f"timestamp {timestamp}")
        offsets = [offset for offset, time in sorted(self.timestamps.items()) if time >= timestamp]
        if not offsets:
            return NOT_FOUND
        return ListOffsetsResponse(Error.NONE, Offset(offsets[0]), self.partition.local.log.epoch_at(Offset(offsets[0])))

    def offset_for_leader_epoch(
        self, leader_epoch: int = 0, current_leader_epoch: int | str | None = None, only_leader: bool = True
    ) -> VectorAnswer:
        request = OffsetForLeaderEpochRequest(self._epoch(current_leader_epoch), Epoch(leader_epoch))
        response = self._run(
            handle_offset_for_leader_epoch(
                self.broker, self.partition, request._replace(leader_only=only_leader), MonotonicMs(self.now)
            )
        )
        return epoch_end_of(response)

    def offset_snapshot(self, current_leader_epoch: int | str | None = None, only_leader: bool = True) -> VectorAnswer:
        claimed = self._epoch(current_leader_epoch)
        serves = self.broker.protocol.serves
        error = serves(self.broker.self_id, role_of(self.partition), claimed, only_leader)
        local = self.partition.local
        offsets = {"log_start": local.log.start_offset, "leo": local.log.end_offset, "hw": local.high_watermark}
        return VectorAnswer(error.name, named=offsets | {"lso": last_stable_offset_of(self.broker, self.partition)})

    # ---- ISR

    def maybe_shrink_isr(self) -> None:
        self._run(consider_shrinking(self.broker, self.partition, MonotonicMs(self.now)))

    def alter_partition_complete(self, new_partition_epoch: int, isr: list[int] | None = None) -> None:
        request, before = self._next_proposal(), self.partition.isr.isr
        members = ids_of([member.broker for member in request.isr] if isr is None else isr)
        epochs = request.leader_epoch, members, PartitionEpoch(new_partition_epoch)
        self._answer(request, AlterPartitionResponse(Error.NONE, request.partition_id, self.broker.self_id, *epochs))
        self.isr_changes["expands"] += before < self.partition.isr.isr
        self.isr_changes["shrinks"] += before > self.partition.isr.isr

    def alter_partition_fail(self, error: int | str) -> None:
        name = error_name(error)
        known = WITHOUT_TOPIC_IDS.get(name) or Error.__members__.get(name)
        if known is None and name not in OF_OTHER_LAYERS:
            raise UnsupportedError(f"error {name}")
        request = self._next_proposal()
        self._answer(request, AlterPartitionResponse(known or Error.KAFKA_STORAGE_ERROR, request.partition_id))
        self.isr_changes["failures"] += 1

    def _next_proposal(self) -> AlterPartitionRequest:
        if not self.proposals:
            raise UnsupportedError("an answer to an ISR proposal that nobody made")
        return self.proposals.pop(0)

    def _answer(self, request: AlterPartitionRequest, response: AlterPartitionResponse) -> None:
        self._run(handle_alter_partition_response(self.broker, self.partition, request, response, MonotonicMs(self.now)))

    # ---- what can be seen

    def final_state(self) -> dict[str, Any]:
        partition, log = self.partition, self.partition.local.log
        return {
            "hw": partition.local.high_watermark,
            "leo": log.end_offset,
            "log_start": log.start_offset,
            "lso": last_stable_offset_of(self.broker, partition),
            "leader": None if partition.leader == NO_LEADER else partition.leader,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.isr.partition_epoch,
            "leader_epoch_start": None if partition.epoch_start == UNKNOWN_OFFSET else partition.epoch_start,
            "is_leader": leads(self.broker, partition),
            "low_watermark": low_watermark(log.start_offset, partition.followers, self.broker.brokers),
            **entries_of(log.epoch_history),
            **self._isr_state(),
            **self._assignment(),
            **self._replica_state(),
        }

    def _assignment(self) -> dict[str, Any]:
        announced = self.announced
        if announced is None:
            return {"assigned_replicas": [], "adding": BrokerIds(), "removing": BrokerIds(), "assignment": None}
        ongoing = bool(announced.adding or announced.removing)
        return {
            "assigned_replicas": BrokerIds(announced.replicas),
            "adding": BrokerIds(announced.adding),
            "removing": BrokerIds(announced.removing),
            "assignment": "OngoingReassignmentState" if ongoing else "SimpleAssignmentState",
        }

    def _isr_state(self) -> dict[str, Any]:
        isr = self.partition.isr
        sent = self.last_proposal
        kind = "PendingShrinkIsr" if isr.pending_isr < isr.isr else "PendingExpandIsr"
        leading, size = leads(self.broker, self.partition), len(isr.isr)
        return {
            "isr": BrokerIds(sorted(isr.isr)),
            "maximal_isr": BrokerIds(sorted(maximal_isr(isr))),
            "inflight": not nothing_pending(isr),
            "pending": "CommittedPartitionState" if nothing_pending(isr) else kind,
            "pending_alter": len(self.proposals),
            "sent_requests": self.sent,
            "expands": self.isr_changes["expands"],
            "shrinks": self.isr_changes["shrinks"],
            "failures": self.isr_changes["failures"],
            "sent_isr": None if sent is None else BrokerIds(sorted(member.broker for member in sent.isr)),
            "sent_broker_epochs": None
            if sent is None
            else {str(member.broker): member.broker_epoch for member in sorted(sent.isr)},
            "at_min_isr": leading and size == min_isr_of(self.broker, self.partition),
            "under_min_isr": is_under_min_isr(self.broker, self.partition),
            "under_replicated": leading and len(self.partition.followers) + 1 > size,
        }

    def _replica_state(self) -> dict[str, Any]:
        followers, isr = self.partition.followers, self.partition.isr
        lag = self.broker.settings.max_lag
        end = self.partition.local.log.end_offset
        fallen_behind = out_of_sync(isr.isr, self.broker.self_id, followers, end, MonotonicMs(self.now), lag)
        states = {str(follower.broker): follower_json(follower.state) for follower in followers}
        for state in states.values():
            state["last_caught_up_rel"] = state["last_caught_up"] - START_OF_TIME
            state["last_fetch_time_rel"] = state["last_fetch_time"] - START_OF_TIME
        return {
            "replicas": ById(states),
            "remote_replicas": BrokerIds(sorted(follower.broker for follower in followers)),
            "out_of_sync": BrokerIds(sorted(fallen_behind)) if nothing_pending(isr) else [],
        }


def _fetched(answer: FetchResponse, fetch_offset: int, leader_end: Offset) -> VectorAnswer:
    """The answer to a fetch, by name; `leo` is the leader's log end when it read."""
    named = {
        "diverging_epoch": FoundPair([] if answer.diverging.leader_epoch == NO_EPOCH else answer.diverging),
        "hw": answer.high_watermark,
        "leo": leader_end if answer.error == Error.NONE else UNKNOWN_OFFSET,
        "log_start": answer.log_start_offset,
        "lso": answer.last_stable_offset,
        **read_from(fetch_offset, answer.records),
    }
    return VectorAnswer(answer.error.name, "nonempty" if answer.records else "empty", named)
