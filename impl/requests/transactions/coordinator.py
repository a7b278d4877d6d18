"""The coordinator of this broker's transactional ids: requests and events for handlers of `spec`, and what they ask for."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar, assert_never

from kspec.impl.broker.calls import Effect, Then
from kspec.impl.broker.core import BrokerCore
from kspec.impl.records.batch import header_at
from kspec.impl.requests.coordinator_log import CoordinatorRole, PartitionLoad
from kspec.impl.requests.transactions.markers import MarkerReceiver, MarkerSender, QueuedMarker
from kspec.impl.requests.transactions.transaction_log import (
    LoadedTransactions,
    TransactionLog,
    TransactionShard,
    batch_of,
)
from kspec.impl.wire.values import Message
from kspec.spec.controller.rules.features import TRANSACTION_VERSION
from kspec.spec.controller.topics.names import CONSUMER_OFFSETS
from kspec.spec.controller.topics.producer_ids import check_available, one_taken
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest
from kspec.spec.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from kspec.spec.messages.transactions.describe_transactions import DescribedTransaction
from kspec.spec.messages.transactions.end_txn import EndTxnRequest
from kspec.spec.messages.transactions.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kspec.spec.messages.transactions.write_txn_markers import MarkersWritten
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.adding import handle_add_offsets_to_txn, handle_add_partitions_to_txn
from kspec.spec.transactions.administration import describe_transaction, list_transactions
from kspec.spec.transactions.appending import on_appended
from kspec.spec.transactions.effects import (
    AnswerTransaction,
    AppendTransaction,
    SendMarkers,
    TransactionRequest,
    TransactionResponse,
    TransactionStep,
)
from kspec.spec.transactions.ending import handle_end_txn, on_timeout
from kspec.spec.transactions.loading import (
    check_coordinates,
    is_current_term,
    load_transaction,
    on_expiry,
)
from kspec.spec.transactions.markers import on_markers_answered, on_markers_lost, on_partitions_deleted
from kspec.spec.transactions.metadata import TransactionMetadata, is_expired, is_timed_out
from kspec.spec.transactions.producers import check_init_producer_id, handle_init_producer_id, needs_fresh_id, takes_fresh_id
from kspec.spec.transactions.protocol import TransactionCoordinator, TransactionSettings
from kspec.spec.transactions.refusals import check_transactional_id, refuse
from kspec.spec.values import Error, Instant, ProducerId, RequestNumber, TransactionalId

RETRY_MS = 100
"""The pause before the record that completes a transaction is tried again. Kafka: `retryLogAppends`, with each poll."""

AT_ONCE = 200
"""Transactional ids that are ended or forgotten before others are served."""

ResponseT = TypeVar("ResponseT", bound=TransactionResponse)


class WaitingRequest(NamedTuple):
    """A request whose answer waits for the log."""

    shard: TransactionShard
    request: TransactionRequest
    take: Callable[[TransactionResponse], list[Effect]]


class PendingAppend:
    """The record of a step, on its way into the log. What became of it counts once the effects before are carried out."""

    def __init__(self, core: BrokerCore, then: Callable[[Error, Instant], list[Effect]], now: Instant) -> None:
        self._core = core
        self._then = then
        self._began = now
        self._error = Error.NONE

    def take(self, place: int, answer: Message) -> list[Effect]:
        """It is committed, or refused."""
        if self._error == Error.NONE:
            self._error = Error(answer.error_code)
        return [Then(self._tell)]

    def fail(self, place: int, answer: Message) -> None:
        """It was taken, and then could not be stored."""
        self._error = Error(answer.error_code)

    def _tell(self) -> list[Effect]:
        self._core.timers.at(self._began.monotonic, lambda now: self._then(self._error, now))  # at once, by the present time
        return []


class Transactions(CoordinatorRole[LoadedTransactions, TransactionShard]):
    """The coordinator of this broker's transactional ids. Kafka: `TransactionCoordinator`, `TransactionStateManager`."""

    def __init__(self, core: BrokerCore) -> None:
        self.core = core
        config = core.config
        self.log: TransactionLog = TransactionLog(core)
        self.coordinator = TransactionCoordinator(
            core.protocol.transactions,
            TransactionSettings(
                max_timeout_ms=config.number("transaction.max.timeout.ms"),
                expiration_ms=config.number("transactional.id.expiration.ms"),
                offsets_partitions=config.number("offsets.topic.num.partitions"),
                cluster_level=0,
            ),
        )
        self.markers = MarkerSender(
            core, MarkerReceiver(self._markers_answered, self._markers_lost, self._partitions_deleted, self._is_wanted)
        )
        self._waiting: dict[RequestNumber, WaitingRequest] = {}
        self._knows: tuple[object, object] = (None, None)
        self._is_timed = False
        core.role_changed.append(self.role_changed)

    # ---- requests

    def decide(
        self,
        request: TransactionRequest,
        kind: type[ResponseT],
        answer: Callable[[ResponseT], list[Effect]],
        now: Instant,
        has_asked: bool = False,
    ) -> list[Effect]:
        """Hand a request to its transactional id, or refuse if this broker does not coordinate it. The answer may be later.

        If the producer may need another id, and this broker has none, it asks the controller first.
        """

        def take(response: TransactionResponse) -> list[Effect]:
            assert isinstance(response, kind), f"{request} is answered with {response}"
            return answer(response)

        self._know_metadata()
        error = self._check(request)
        shard = self.log.shard_of(_id_of(request)) if error == Error.NONE else None
        if error == Error.NONE and shard is None:
            error = check_coordinates(self.log.is_loading(_id_of(request)), is_loaded=False)
        metadata = None if shard is None else shard.transaction(_id_of(request)).metadata
        if error == Error.NONE and needs_fresh_id(metadata, request):
            missing = check_available(self.core.producer_ids)
            if missing != Error.NONE and not has_asked:
                return self.core.controller.producer_ids(
                    lambda later: self.decide(request, kind, answer, later, has_asked=True), now
                )
            error = missing
        if shard is None or error != Error.NONE:
            return take(refuse(RequestNumber(0), request, error).response)
        number = self.core.next_number()
        self._waiting[number] = WaitingRequest(shard, request, take)
        return self._take(shard, self._handled(shard, number, request, now), now)

    def _check(self, request: TransactionRequest) -> Error:
        """The error of a request that no coordinator grants."""
        if isinstance(request, InitProducerIdRequest):
            return check_init_producer_id(self.coordinator, request)
        return check_transactional_id(request.transactional_id)

    def _handled(
        self, shard: TransactionShard, number: RequestNumber, request: TransactionRequest, now: Instant
    ) -> TransactionStep:
        state, fresh = shard.transaction(_id_of(request)), self.core.producer_ids.following
        match request:
            case InitProducerIdRequest():
                return self._with_id(
                    self.core.step(handle_init_producer_id, self.coordinator, state, number, request, fresh, now), fresh
                )
            case EndTxnRequest():
                return self._with_id(
                    self.core.step(handle_end_txn, self.coordinator, state, number, request, fresh, now), fresh
                )
            case AddPartitionsToTxnRequest():
                return self.core.step(handle_add_partitions_to_txn, self.coordinator, state, number, request, now)
            case AddOffsetsToTxnRequest():
                return self.core.step(handle_add_offsets_to_txn, self.coordinator, state, number, request, now)

    def _with_id(self, step: TransactionStep, fresh: ProducerId) -> TransactionStep:
        """The step itself; the id that it was offered is not offered again if the step has taken it."""
        if takes_fresh_id(step, fresh):
            self.core.producer_ids = one_taken(self.core.producer_ids)
        return step

    def _know_metadata(self) -> None:
        """The coordinator knows the cluster's transaction version, and how many partitions keep the offsets of groups."""
        image = self.core.image
        if self._knows == (image.spec.features, image.spec.topics):
            return
        self._knows = (image.spec.features, image.spec.topics)
        topic = image.topics.get(CONSUMER_OFFSETS)
        settings = replace(
            self.coordinator.settings,
            cluster_level=image.features.get(TRANSACTION_VERSION, 0),
            offsets_partitions=(
                self.core.config.number("offsets.topic.num.partitions") if topic is None else len(topic.partitions)
            ),
        )
        self.coordinator = replace(self.coordinator, settings=settings)

    # ---- steps

    def _take(
        self,
        shard: TransactionShard,
        step: TransactionStep,
        now: Instant,
        appends_again: bool = False,
        sends_again: bool = False,
    ) -> list[Effect]:
        """Take a step, and do what it asks for; what is tried again is so after a while."""
        shard.keep(step.state)
        transactional_id = step.state.transactional_id
        effects: list[Effect] = []
        for effect in step.effects:
            match effect:
                case AnswerTransaction():
                    waiting = self._waiting.pop(effect.number, None)
                    effects += [] if waiting is None else waiting.take(effect.response)
                case SendMarkers() if sends_again:
                    self.markers.send_later(QueuedMarker(transactional_id, effect.marker), now)
                case SendMarkers():
                    effects += self.markers.send(QueuedMarker(transactional_id, effect.marker), now)
                case AppendTransaction() if appends_again:
                    self.core.timers.at(now.after(RETRY_MS), partial(self._append, shard, effect))
                case AppendTransaction():
                    effects += self._append(shard, effect, now)
                case _:
                    assert_never(effect)
        return effects

    def _append(self, shard: TransactionShard, append: AppendTransaction, now: Instant) -> list[Effect]:
        """Append the record of a step, if its partition is still this broker's."""
        if self.log.shards.get(shard.index) is not shard:
            return []
        batch = batch_of(append, self.coordinator.settings.cluster_level, now)
        pending = PendingAppend(self.core, lambda error, later: self._appended(shard, append, error, later), now)
        deadline = now.after(append.target.timeout_ms)
        effects = self.core.append(shard.replica, pending, 0, header_at(batch), batch, now, ACKS_ALL, deadline)
        return [*effects, Then(lambda: self.resign_if_offline(shard, now))]

    def _appended(self, before: TransactionShard, append: AppendTransaction, error: Error, now: Instant) -> list[Effect]:
        shard = self.log.shards.get(before.index)
        if shard is None:  # whoever has waited was told when the partition went
            return []
        state = shard.transaction(append.target.transactional_id)
        step = self.core.step(on_appended, self.coordinator, state, append, error, now)
        return self._take(shard, step, now, appends_again=error != Error.NONE)

    # ---- markers

    def _is_wanted(self, sent: QueuedMarker) -> bool:
        shard = self.log.shard_of(sent.transactional_id)
        if shard is None:
            return False
        return is_current_term(sent.marker.coordinator_epoch, shard.epoch)

    def _markers_answered(self, sent: QueuedMarker, written: MarkersWritten, now: Instant) -> list[Effect]:
        shard = self.log.shard_of(sent.transactional_id)
        if shard is None:
            return []
        state = shard.transaction(sent.transactional_id)
        step = self.core.step(on_markers_answered, self.coordinator, state, sent.marker, written)
        return self._take(shard, step, now, sends_again=True)

    def _markers_lost(self, sent: QueuedMarker, now: Instant) -> list[Effect]:
        shard = self.log.shard_of(sent.transactional_id)
        if shard is None:
            return []
        state = shard.transaction(sent.transactional_id)
        step = self.core.step(on_markers_lost, self.coordinator, state, sent.marker)
        return self._take(shard, step, now, sends_again=True)

    def _partitions_deleted(
        self, transactional_id: TransactionalId, deleted: frozenset[TopicPartition], now: Instant
    ) -> list[Effect]:
        shard = self.log.shard_of(transactional_id)
        if shard is None:
            return []
        return self._take(
            shard, self.core.step(on_partitions_deleted, None, shard.transaction(transactional_id), deleted), now
        )

    # ---- the log

    def all_read(self, loading: PartitionLoad[LoadedTransactions], now: Instant) -> list[Effect]:
        """All of a log has been read: it counts once all of that is committed."""
        replica = loading.replica
        may_coordinate = self.coordinator.protocol.may_coordinate
        if loading.error is None and not may_coordinate(loading.end, replica.partition.local.high_watermark):
            replica.on_high_watermark = lambda at: self.go_on_loading(loading, at)
            return []
        replica.on_high_watermark = None
        return super().all_read(loading, now)

    def activate(self, shard: TransactionShard, now: Instant) -> list[Effect]:
        """Transactional ids have been loaded; those whose end was decided are ended."""
        self._know_metadata()
        self._time(now)
        records, shard.records = shard.records, {}
        effects: list[Effect] = []
        for transactional_id, record in records.items():
            effects += self._take(
                shard, self.core.step(load_transaction, None, transactional_id, record, shard.epoch, now), now
            )
        return effects

    def unload(self, shard: TransactionShard, now: Instant) -> list[Effect]:
        """Transactional ids are coordinated by another broker: whoever waits is told so."""
        effects: list[Effect] = []
        for number, waiting in list(self._waiting.items()):
            if waiting.shard is shard:
                del self._waiting[number]
                error = check_coordinates(is_loading=False, is_loaded=False)
                effects += waiting.take(refuse(number, waiting.request, error).response)
        return effects

    # ---- time

    def _time(self, now: Instant) -> None:
        """Look from time to time at what has been open, or unused, for too long; as long as there is anything to look at."""
        if self._is_timed:
            return
        self._is_timed = True
        config, core = self.core.config, self.core
        timeouts = config.number("transaction.abort.timed.out.transaction.cleanup.interval.ms")
        expiries = config.number("transaction.remove.expired.transaction.cleanup.interval.ms")
        core.timers.at(now.after(timeouts), lambda later: self._abort_timed_out(timeouts, later))
        core.timers.at(now.after(expiries), lambda later: self._forget_expired(expiries, later))

    def _abort_timed_out(self, interval_ms: int, now: Instant) -> list[Effect]:
        """Abort what has been open for too long. **Kafka:** `TransactionCoordinator.abortTimedOutTransactions`."""
        self.core.timers.at(now.after(interval_ms), lambda later: self._abort_timed_out(interval_ms, later))
        late = [one for one in self._all() if is_timed_out(one, now.timestamp)]
        return self._one_after_the_other(iter(late), self._abort, now)

    def _abort(self, metadata: TransactionMetadata, now: Instant, has_asked: bool = False) -> list[Effect]:
        self._know_metadata()
        shard = self.log.shard_of(metadata.transactional_id)
        if shard is None:
            return []
        state = shard.transaction(metadata.transactional_id)
        if needs_fresh_id(state.metadata, None) and check_available(self.core.producer_ids) != Error.NONE:
            # If there is none to be had now, it is tried again the next time.
            again = partial(self._abort, metadata, has_asked=True)
            return [] if has_asked else self.core.controller.producer_ids(again, now)
        fresh = self.core.producer_ids.following
        step = self._with_id(self.core.step(on_timeout, self.coordinator, state, fresh, now), fresh)
        return self._take(shard, step, now)

    def _forget_expired(self, interval_ms: int, now: Instant) -> list[Effect]:
        """Forget what nobody has used. **Kafka:** `TransactionStateManager.removeExpiredTransactionalIds`."""
        self.core.timers.at(now.after(interval_ms), lambda later: self._forget_expired(interval_ms, later))
        expiration_ms = self.coordinator.settings.expiration_ms
        unused = [one for one in self._all() if is_expired(one, now.timestamp, expiration_ms)]
        return self._one_after_the_other(iter(unused), self._forget, now)

    def _forget(self, metadata: TransactionMetadata, now: Instant) -> list[Effect]:
        shard = self.log.shard_of(metadata.transactional_id)
        if shard is None:
            return []
        state = shard.transaction(metadata.transactional_id)
        return self._take(shard, self.core.step(on_expiry, self.coordinator, state, now), now)

    def _one_after_the_other(
        self,
        those: Iterator[TransactionMetadata],
        act: Callable[[TransactionMetadata, Instant], list[Effect]],
        now: Instant,
    ) -> list[Effect]:
        """Do something for some transactional ids, and for the others after those who are to be served."""
        effects: list[Effect] = []
        for _ in range(AT_ONCE):
            metadata = next(those, None)
            if metadata is None:
                return effects
            effects += act(metadata, now)
        self.core.timers.at(now.after(1), lambda later: self._one_after_the_other(those, act, later))
        return effects

    def _all(self) -> list[TransactionMetadata]:
        states = (state for shard in self.log.led() for state in shard.transactions.values())
        return [state.metadata for state in states if state.metadata is not None]

    # ---- looking at transactional ids

    def described(self, transactional_id: TransactionalId) -> DescribedTransaction:
        """A transactional id as it is now."""
        shard = self.log.shard_of(transactional_id)
        coordinated = check_coordinates(self.log.is_loading(transactional_id), shard is not None)
        metadata = None if shard is None else shard.transaction(transactional_id).metadata
        return describe_transaction(coordinated, transactional_id, metadata)

    def listed(
        self, request: ListTransactionsRequest, matches: Callable[[str], bool], now: Instant
    ) -> ListTransactionsResponse:
        """The transactional ids of this broker that match a pattern, and pass the filters."""
        known = tuple(one for one in self._all() if matches(one.transactional_id))
        return list_transactions(request, self.log.loads_any(), known, now.timestamp)


def _id_of(request: TransactionRequest) -> TransactionalId:
    return TransactionalId(request.transactional_id or "")
