"""TxnOffsetCommit: a producer commits offsets of a group in its transaction, which is verified first."""

from kspec.impl.broker.calls import Call, Detain, Effect, InTurns, Resume, Steps
from kspec.impl.broker.replica import Replica
from kspec.impl.broker.verification import TransactionQuestion, Verdict
from kspec.impl.requests.group_offsets import NamedOffsets
from kspec.impl.requests.groups import Groups
from kspec.spec.broker.effects import VerificationAnswer
from kspec.spec.broker.leader.verification import batch_of_offsets, begin_verification, is_asked
from kspec.spec.coordinator.offsets import check_before_verification, txn_commit_refused
from kspec.spec.coordinator.refusals import answer_for_verification
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kspec.spec.transactions.log.partition import NO_GUARD
from kspec.spec.values import (
    Error,
    Generation,
    GroupId,
    Instant,
    MemberId,
    ProducerEpoch,
    ProducerId,
    TransactionalId,
)

FIRST_KNOWING_LOADING, FIRST_KNOWING_ABORTABLE, FIRST_THAT_ADDS, FIRST_WITH_TOPIC_IDS = 2, 4, 5, 6
"""The versions from which a client knows that a coordinator loads, and `TRANSACTION_ABORTABLE`; has its leader add the
partition of the group; and names topics by their ids, and knows that a group is missing."""


def txn_offset_commit(groups: Groups, call: Call, now: Instant) -> list[Effect]:
    """Offsets are committed in a transaction. **Kafka:** `KafkaApis.handleTxnOffsetCommitRequest`."""
    return [InTurns(call, _commit(groups, call, now))]


def _commit(groups: Groups, call: Call, now: Instant) -> Steps:
    message, version = call.message, call.version
    named = NamedOffsets(groups.core, message.topics, version >= FIRST_WITH_TOPIC_IDS)
    yield from named.read()
    if not named.taken:
        return [call.respond(**named.answered()).long_if(named.is_long)]
    request = TxnOffsetCommitRequest(
        TransactionalId(message.transactional_id),
        GroupId(message.group_id),
        ProducerId(message.producer_id),
        ProducerEpoch(message.producer_epoch),
        tuple(named.taken),
        Generation(message.generation_id_or_member_epoch),
        MemberId(message.member_id),
        message.group_instance_id,
        reports_missing_group=version >= FIRST_WITH_TOPIC_IDS,
        knows_loading=version >= FIRST_KNOWING_LOADING,
    )

    def write(guard: int, now: Instant) -> list[Effect]:
        return groups.ask(call, request, TxnOffsetCommitResponse, named.shown, now, named.is_long, guard)

    def refuse(error: Error) -> list[Effect]:
        told = answer_for_verification(error, version >= FIRST_KNOWING_ABORTABLE)
        return [call.respond(**named.shown(txn_commit_refused(request, told))).long_if(named.is_long)]

    shard = groups.log.shard_of(request.group_id)
    if shard is None:
        return write(NO_GUARD, now)
    wrong = check_before_verification(groups.coordinator, shard.group(request.group_id).latest, request)
    if wrong != Error.NONE:
        return [call.respond(**named.shown(txn_commit_refused(request, wrong))).long_if(named.is_long)]
    answer = _begun(groups, shard.replica, request, version >= FIRST_THAT_ADDS, now)
    if answer.error != Error.NONE:
        return refuse(answer.error)
    if not is_asked(answer):
        return write(answer.guard, now)
    place = shard.replica.place
    whose = request.transactional_id, request.producer_id, request.producer_epoch
    question = TransactionQuestion(*whose, (place,), version >= FIRST_THAT_ADDS)

    def go_on(verdict: Verdict, later: Instant) -> list[Effect]:
        told = verdict[place]
        effects = write(answer.guard, later) if told == Error.NONE else refuse(told)
        return [*effects, Resume(call)]

    return [Detain(call), *groups.core.verifier.ask(question, go_on, now)]


def _begun(
    groups: Groups, replica: Replica, request: TxnOffsetCommitRequest, adds: bool, now: Instant
) -> VerificationAnswer:
    """Whether the coordinator of transactions is to be asked, and under which guard.

    **Kafka:** `CoordinatorRuntime.scheduleTransactionalWriteOperation`.
    """
    batch = batch_of_offsets(request.producer_id, request.producer_epoch)
    answer = groups.core.run(begin_verification, replica, batch, adds, now=now).reply
    assert isinstance(answer, VerificationAnswer)
    return answer
