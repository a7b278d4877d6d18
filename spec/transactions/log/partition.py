"""Transactions in the log of one partition: what its leader checks, and what leader and followers remember.

What is remembered follows from the log, but for verifications: those are the leader's, and begin anew with each.
"""

from functools import partial, reduce
from typing import NamedTuple, TypeAlias

from kspec.spec.log.batch import AnyBatch, Batches
from kspec.spec.log.producers import (
    ProducerBatch,
    ProducerEntry,
    Producers,
    check_batch,
    check_producer_epoch,
    duplicate_of,
    entry_of,
    producer_batch,
    remember,
    with_entry,
)
from kspec.spec.messages.transactions.write_txn_markers import TransactionMarker
from kspec.spec.transactions.metadata import bumps_epoch
from kspec.spec.transactions.protocol import TransactionProtocol
from kspec.spec.values import NO_PRODUCER_ID, UNKNOWN_OFFSET, Epoch, Error, Offset, ProducerEpoch, ProducerId

NO_GUARD = 0
"""The guard of a batch that was not verified. Kafka: `VerificationGuard.SENTINEL`."""


class OpenTransaction(NamedTuple):
    """A transaction that is open in a log, by its first offset. Kafka: `TxnMetadata` in `ongoingTxns`."""

    first_offset: Offset
    producer_id: ProducerId


class EndedTransaction(NamedTuple):
    """A transaction whose marker, at `last_offset`, is not committed yet. Kafka: `TxnMetadata` in `unreplicatedTxns`."""

    first_offset: Offset
    last_offset: Offset
    producer_id: ProducerId


class AbortedTransaction(NamedTuple):
    """An aborted transaction, up to its marker, and the last stable offset after that. Kafka: `AbortedTxn`."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset


class Verification(NamedTuple):
    """A producer whose transaction the leader asks the coordinator about.

    `guard` names it; `bumps_epoch`: the producer knows version 2. Kafka: `VerificationStateEntry`, `VerificationGuard`.
    """

    producer_id: ProducerId
    guard: int
    lowest_sequence: int
    producer_epoch: ProducerEpoch
    bumps_epoch: bool


class PartitionTransactions(NamedTuple):
    """Producers and transactions in the log of a replica, as it remembers them; `guards` counts those given out.

    Kafka: `ProducerStateManager`, `TransactionIndex`.
    """

    producers: Producers = ()
    ongoing: tuple[OpenTransaction, ...] = ()
    unreplicated: tuple[EndedTransaction, ...] = ()
    aborted: tuple[AbortedTransaction, ...] = ()
    verifications: tuple[Verification, ...] = ()
    guards: int = 0


class LoggedBatch(NamedTuple):
    """A batch of records in the log, as far as transactions are about it. Kafka: `RecordBatch`."""

    batch: ProducerBatch
    is_transactional: bool = True

    @property
    def last_offset(self) -> Offset:
        """The offset of the last record."""
        return self.batch.last_offset


class LoggedMarker(NamedTuple):
    """The end of a transaction in the log, a control batch of one record. Kafka: `EndTransactionMarker`."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    coordinator_epoch: Epoch
    committed: bool
    offset: Offset

    @property
    def last_offset(self) -> Offset:
        """The marker's offset."""
        return self.offset


TransactionalEntry: TypeAlias = LoggedBatch | LoggedMarker
"""A batch of the log, as far as transactions are about it."""


class CheckedBatch(NamedTuple):
    """The state after a batch that a leader was given, and the error; `duplicate`: it is in the log already."""

    state: PartitionTransactions
    error: Error = Error.NONE
    duplicate: ProducerBatch | None = None


# ---- verification


def has_open_transaction(entry: ProducerEntry, producer_epoch: ProducerEpoch) -> bool:
    """Whether a producer has a transaction open in the log, in this epoch. **Kafka:** `UnifiedLog.hasOngoingTransaction`."""
    return entry.transaction_start != UNKNOWN_OFFSET and entry.producer_epoch == producer_epoch


def verification_of(state: PartitionTransactions, producer_id: ProducerId) -> Verification | None:
    """The verification of a producer that goes on. **Kafka:** `ProducerStateManager.verificationStateEntry`."""
    return next((one for one in state.verifications if one.producer_id == producer_id), None)


class StartedVerification(NamedTuple):
    """The state, and either the guard under which the coordinator is asked (`NO_GUARD`: it is not), or an error."""

    state: PartitionTransactions
    guard: int = NO_GUARD
    error: Error = Error.NONE


def start_verification(
    protocol: TransactionProtocol, state: PartitionTransactions, batch: ProducerBatch, bumps: bool
) -> StartedVerification:
    """Whether the coordinator is to be asked before a batch is appended, and under which guard.

    All batches that wait have one guard, and the lowest of their sequence numbers is kept, so that it comes first.

    Errors: `INVALID_PRODUCER_EPOCH`.

    **Kafka:** `UnifiedLog.maybeStartTransactionVerification`, `ProducerStateManager.maybeCreateVerificationStateEntry`.
    """
    entry = entry_of(state.producers, batch.producer_id)
    if not protocol.is_verified(has_open_transaction(entry, batch.producer_epoch)):
        return StartedVerification(state)
    error = check_producer_epoch(entry, batch)
    if error != Error.NONE:
        return StartedVerification(state, error=error)
    known = verification_of(state, batch.producer_id)
    if known is None:
        guard = state.guards + 1
        known = Verification(batch.producer_id, guard, batch.first_sequence, batch.producer_epoch, bumps)
        state = state._replace(guards=guard)
    lower = batch.producer_epoch == known.producer_epoch and batch.first_sequence < known.lowest_sequence
    if lower or batch.producer_epoch > known.producer_epoch:
        known = known._replace(producer_epoch=batch.producer_epoch, lowest_sequence=batch.first_sequence)
    others = without_verification(state, batch.producer_id).verifications
    return StartedVerification(state._replace(verifications=(*others, known)), known.guard)


def without_verification(state: PartitionTransactions, producer_id: ProducerId) -> PartitionTransactions:
    """The state without a producer's verification. **Kafka:** `ProducerStateManager.clearVerificationStateEntry`."""
    left = tuple(one for one in state.verifications if one.producer_id != producer_id)
    return state._replace(verifications=left)


UNDECIDED = frozenset(
    {
        Error.NETWORK_EXCEPTION,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
    }
)
"""Answers, or none, after which a producer is to try again; with `NOT_ENOUGH_REPLICAS` older ones do so."""


def error_after_verification(error: Error, bumps: bool, knows_abortable: bool) -> Error:
    """The error of a Produce request of which the coordinator has said this.

    Parameters: whether the producer knows version 2, and `TRANSACTION_ABORTABLE` (Produce above v10).

    **Kafka:** `ReplicaManager.handleProduceAppend`. **Leaves out:** that a leader asks again by itself in version 2.
    """
    waits = error == Error.CONCURRENT_TRANSACTIONS and not bumps
    if waits or error in UNDECIDED:
        return Error.NOT_ENOUGH_REPLICAS
    if error == Error.PRODUCER_FENCED:
        return Error.INVALID_PRODUCER_EPOCH
    is_unknown = error == Error.TRANSACTION_ABORTABLE and not knows_abortable
    return Error.INVALID_TXN_STATE if is_unknown else error


def replaces_waiting(same_producer: bool, waiting_epoch: ProducerEpoch, epoch: ProducerEpoch) -> Error:
    """The error of a question about a transactional id that waits to be sent, when a later one comes; `NONE`: it stays.

    Then the later one is of a producer that was replaced, and is refused with `INVALID_PRODUCER_EPOCH`. Of two epochs of one
    producer the larger is asked about, of two producers the one that came later: the other one is to try again.

    Errors: `INVALID_PRODUCER_EPOCH`, `NETWORK_EXCEPTION`.

    **Kafka:** `AddPartitionsToTxnManager.addTxnData`, which compares epochs of different producers, too.
    """
    if not same_producer or waiting_epoch == epoch:
        return Error.NETWORK_EXCEPTION
    return Error.INVALID_PRODUCER_EPOCH if waiting_epoch < epoch else Error.NONE


# ---- batches


def append_batch(
    protocol: TransactionProtocol,
    state: PartitionTransactions,
    appended: LoggedBatch,
    guard: int = NO_GUARD,
    is_sequenced: bool = True,
) -> CheckedBatch:
    """Check a batch that a leader is to append, and remember it. One that the log has is a success, and changes nothing.

    A batch that begins a transaction in the log must have been verified since the producer's last one ended: a guard that is
    not the present one was given out before (KAFKA-14884). `is_sequenced`: it is from a client, not a group coordinator.

    Errors: `INVALID_PRODUCER_EPOCH`, `INVALID_TXN_STATE`, `OUT_OF_ORDER_SEQUENCE_NUMBER`.

    **Kafka:** `UnifiedLog.analyzeAndValidateProducerState`, `ProducerAppendInfo.appendDataBatch`.
    """
    batch = appended.batch
    entry = entry_of(state.producers, batch.producer_id)
    duplicate = duplicate_of(entry, batch) if is_sequenced else None
    if duplicate is not None:
        return CheckedBatch(state, duplicate=duplicate)
    error = _check_verified(protocol, state, entry, appended, guard)
    if error == Error.NONE:
        error = _check_order(protocol, state, entry, batch) if is_sequenced else check_producer_epoch(entry, batch)
    if error == Error.NONE and entry.transaction_start != UNKNOWN_OFFSET and not appended.is_transactional:
        error = Error.INVALID_TXN_STATE
    return CheckedBatch(state if error != Error.NONE else with_batch(protocol, state, appended), error)


def _check_verified(
    protocol: TransactionProtocol, state: PartitionTransactions, entry: ProducerEntry, appended: LoggedBatch, guard: int
) -> Error:
    batch = appended.batch
    if not appended.is_transactional or has_open_transaction(entry, batch.producer_epoch):
        return Error.NONE
    stale = check_producer_epoch(entry, batch)
    if stale != Error.NONE and protocol.epoch_before_guard:
        return stale
    if not protocol.is_verified(False):
        return Error.NONE
    known = verification_of(state, batch.producer_id)
    passes = protocol.passes_guard(NO_GUARD if known is None else known.guard, guard)
    return Error.NONE if passes else Error.INVALID_TXN_STATE


def _check_order(
    protocol: TransactionProtocol, state: PartitionTransactions, entry: ProducerEntry, batch: ProducerBatch
) -> Error:
    """**Kafka:** `ProducerAppendInfo.maybeValidateDataBatch`, `checkSequence`."""
    stale = check_producer_epoch(entry, batch)
    if stale != Error.NONE:
        return stale
    known = verification_of(state, batch.producer_id)
    if known is not None:
        is_later_of_new = known.bumps_epoch and batch.first_sequence != 0 and not entry.batches
        if is_later_of_new or not protocol.begins(batch.first_sequence, known.lowest_sequence):
            return Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    return check_batch(entry, batch)


def with_batch(protocol: TransactionProtocol, state: PartitionTransactions, appended: LoggedBatch) -> PartitionTransactions:
    """The state once a batch is in the log; a follower checks nothing.

    **Kafka:** `UnifiedLog.updateProducers`, `ProducerStateEntry.addBatch`.
    """
    batch = appended.batch
    after = state._replace(producers=remember(state.producers, batch))
    if not appended.is_transactional:
        return after
    entry = entry_of(after.producers, batch.producer_id)
    if entry.transaction_start == UNKNOWN_OFFSET:
        begun = with_entry(after.producers, entry._replace(transaction_start=batch.base_offset))
        opened = OpenTransaction(batch.base_offset, batch.producer_id)
        after = after._replace(producers=begun, ongoing=(*after.ongoing, opened))
    return _after_entry(protocol, after, batch.producer_id, batch.producer_epoch, is_marker=False)


def _after_entry(
    protocol: TransactionProtocol,
    state: PartitionTransactions,
    producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
    is_marker: bool,
) -> PartitionTransactions:
    """The state without a verification that a batch or marker has made void."""
    known = verification_of(state, producer_id)
    if known is None or protocol.keeps_guard(known.bumps_epoch, is_marker, producer_epoch, known.producer_epoch):
        return state
    return without_verification(state, producer_id)


# ---- markers


def check_marked_partition(found: Error) -> Error:
    """Whether a broker has the partition that a marker is for. `found`: why not, as a client would be told.

    Errors: `UNKNOWN_TOPIC_OR_PARTITION`, upon which the coordinator asks the metadata again.

    **Kafka:** `KafkaApis.handleWriteTxnMarkersRequest`.
    """
    return found if found == Error.NONE else Error.UNKNOWN_TOPIC_OR_PARTITION


def check_marker(protocol: TransactionProtocol, state: PartitionTransactions, marker: TransactionMarker) -> Error:
    """Whether a leader takes a marker of a coordinator.

    Errors: `INVALID_PRODUCER_EPOCH`; `TRANSACTION_COORDINATOR_FENCED` if a later coordinator has ended a transaction of the
    producer here.

    **Kafka:** `ProducerAppendInfo.appendEndTxnMarker`.
    """
    entry = entry_of(state.producers, marker.producer_id)
    is_open = entry.transaction_start != UNKNOWN_OFFSET
    if not protocol.takes_marker(marker.producer_epoch, entry.producer_epoch, bumps_epoch(marker.client_level), is_open):
        return Error.INVALID_PRODUCER_EPOCH
    is_later = protocol.takes_coordinator(marker.coordinator_epoch, entry.coordinator_epoch)
    return Error.NONE if is_later else Error.TRANSACTION_COORDINATOR_FENCED


def append_marker(
    protocol: TransactionProtocol, state: PartitionTransactions, marker: LoggedMarker, transaction_version: int
) -> CheckedBatch:
    """Check a marker that a leader is to append, and remember it. `transaction_version`: as its coordinator tells it.

    Errors: those of `check_marker`.

    **Kafka:** `UnifiedLog.analyzeAndValidateProducerState`.
    """
    sent = TransactionMarker(*marker[:4], frozenset(), transaction_version)
    error = check_marker(protocol, state, sent)
    return CheckedBatch(state, error) if error != Error.NONE else CheckedBatch(with_marker(protocol, state, marker))


def with_marker(protocol: TransactionProtocol, state: PartitionTransactions, marker: LoggedMarker) -> PartitionTransactions:
    """The state once a marker is in the log: the producer's transaction is over, if it had one there.

    **Kafka:** `ProducerStateEntry.update`, `ProducerStateManager.completeTxn`, `LogSegment.updateTxnIndex`.
    """
    entry = entry_of(state.producers, marker.producer_id)
    is_same = entry.producer_epoch == marker.producer_epoch
    ended = entry._replace(
        producer_epoch=marker.producer_epoch,
        batches=entry.batches if is_same else (),
        transaction_start=UNKNOWN_OFFSET,
        coordinator_epoch=marker.coordinator_epoch,
    )
    after = state._replace(producers=with_entry(state.producers, ended))
    if entry.transaction_start != UNKNOWN_OFFSET:
        after = _with_end(after, marker, entry.transaction_start)
    return _after_entry(protocol, after, marker.producer_id, marker.producer_epoch, is_marker=True)


def _with_end(state: PartitionTransactions, marker: LoggedMarker, first: Offset) -> PartitionTransactions:
    """The transaction goes from the open ones to those whose end is not committed, and is noted if it is aborted."""
    ongoing = tuple(one for one in state.ongoing if one.producer_id != marker.producer_id)
    ended = EndedTransaction(first, marker.offset, marker.producer_id)
    stable = min((one.first_offset for one in ongoing), default=Offset(marker.offset + 1))
    aborted = AbortedTransaction(marker.producer_id, first, marker.offset, stable)
    return state._replace(
        ongoing=ongoing,
        unreplicated=tuple(sorted((*state.unreplicated, ended))),
        aborted=state.aborted if marker.committed else (*state.aborted, aborted),
    )


def with_batches(
    protocol: TransactionProtocol, state: PartitionTransactions, base_offset: Offset, batches: Batches
) -> PartitionTransactions:
    """The state once batches are in the log, the first of which lies at `base_offset`: the same on leader and follower.

    **Kafka:** `UnifiedLog.append`, `updateProducers`.
    """
    for batch in batches:
        if batch.producer_id > NO_PRODUCER_ID:
            state = with_entry_of_log(protocol, state, logged(batch, base_offset))
        base_offset = Offset(base_offset + batch.record_count)
    return state


def logged(batch: AnyBatch, base_offset: Offset) -> TransactionalEntry:
    """A batch at an offset, as far as transactions are about it."""
    marker = batch.marker
    if marker is None:
        return LoggedBatch(producer_batch(batch, base_offset), batch.is_transactional)
    return LoggedMarker(batch.producer_id, batch.producer_epoch, marker.coordinator_epoch, marker.committed, base_offset)


def with_entry_of_log(
    protocol: TransactionProtocol, state: PartitionTransactions, entry: TransactionalEntry
) -> PartitionTransactions:
    """The state once a batch or a marker is in the log."""
    match entry:
        case LoggedBatch():
            return with_batch(protocol, state, entry)
        case _:
            return with_marker(protocol, state, entry)


def rebuilt_transactions(protocol: TransactionProtocol, entries: tuple[TransactionalEntry, ...]) -> PartitionTransactions:
    """The state of a replica that has read a log, in order: after a truncation, or as a follower.

    **Kafka:** `UnifiedLog.rebuildProducerState`, `appendAsFollower`.
    """
    return reduce(partial(with_entry_of_log, protocol), entries, PartitionTransactions())
