"""Verification of a transaction by a leader: its coordinator is asked before a batch begins it in the log."""

from dataclasses import replace

from kspec.spec.broker.effects import VerificationAnswer
from kspec.spec.broker.partition import Broker, Handled, Partition, leads
from kspec.spec.log.algebra import LogT
from kspec.spec.log.batch import Batch
from kspec.spec.log.producers import producer_batch
from kspec.spec.step import Reply, Step
from kspec.spec.transactions.log.partition import NO_GUARD, start_verification
from kspec.spec.transactions.protocol import TransactionProtocol
from kspec.spec.transactions.rules.partitions import never_verified
from kspec.spec.values import Error, MonotonicMs, ProducerEpoch, ProducerId

FIRST_THAT_ADDS, FIRST_WITH_ABORTABLE = 12, 11
"""The versions of Produce since which a leader adds partitions, and since which a producer knows `TRANSACTION_ABORTABLE`."""


def adds_partitions(version_number: int) -> bool:
    """Whether a Produce request of this version adds its partitions to the transaction, too: its producer knows version 2.

    **Kafka:** `ProduceRequest.isTransactionV2Requested`.
    """
    return version_number >= FIRST_THAT_ADDS


def knows_abortable(version_number: int) -> bool:
    """Whether a Produce request of this version may be answered with `TRANSACTION_ABORTABLE`.

    **Kafka:** `AddPartitionsToTxnManager.produceRequestVersionToTransactionSupportedOperation`.
    """
    return version_number >= FIRST_WITH_ABORTABLE


def transaction_rules(broker: Broker) -> TransactionProtocol:
    """The release's rules about transactions, for a broker that may be set not to verify any.

    **Kafka:** `ProducerStateManagerConfig.transactionVerificationEnabled`.
    """
    rules = broker.protocol.transactions
    return rules if broker.settings.verifies_transactions else replace(rules, is_verified=never_verified)


def begin_verification(broker: Broker, partition: Partition[LogT], batch: Batch, bumps_epoch: bool) -> Handled[LogT]:
    """Say whether the coordinator is to be asked before a transactional batch is appended, and under which guard.

    `bumps_epoch`: the producer knows version 2, and its partitions are added by its leaders: they ask in any case.

    Errors: `NOT_LEADER_OR_FOLLOWER`, `INVALID_PRODUCER_EPOCH`.

    **Kafka:** `Partition.maybeStartTransactionVerification`, `UnifiedLog.maybeStartTransactionVerification`.
    """
    if not leads(broker, partition):
        return Step(partition, (Reply(VerificationAnswer(Error.NOT_LEADER_OR_FOLLOWER)),))
    rules = broker.protocol.transactions if bumps_epoch else transaction_rules(broker)
    sent = producer_batch(batch, partition.local.log.end_offset)
    started = start_verification(rules, partition.transactions, sent, bumps_epoch)
    answer = VerificationAnswer(started.error, started.guard)
    return Step(partition._replace(transactions=started.state), (Reply(answer),))


def batch_of_offsets(producer_id: ProducerId, producer_epoch: ProducerEpoch) -> Batch:
    """The batch that a group coordinator is to append in a transaction, as far as it is verified: without a sequence number.

    **Kafka:** `CoordinatorPartitionWriter.maybeStartTransactionVerification`.
    """
    return Batch(1, producer_id=producer_id, producer_epoch=producer_epoch, is_transactional=True)


def is_asked(answer: VerificationAnswer) -> bool:
    """Whether the coordinator is asked."""
    return answer.error == Error.NONE and answer.guard != NO_GUARD


def asks_again(error: Error, bumps_epoch: bool, later: MonotonicMs, until: MonotonicMs) -> bool:
    """Whether a leader asks the coordinator again by itself, in a while: the transaction before is not complete yet.

    Parameters: its answer; whether the producer knows version 2, so that it has not asked the coordinator itself; when it
    would ask again (`add.partitions.to.txn.retry.backoff.ms` from now), and until when it asks (ms).

    **Kafka:** `ReplicaManager.handleProduceAppend`, `AddPartitionsToTxnManager` (KAFKA-18654, since 4.1).
    """
    return error == Error.CONCURRENT_TRANSACTIONS and bumps_epoch and later <= until
