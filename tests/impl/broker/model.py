"""One partition of one broker as pure values: each request is answered by the handlers of `spec`, and nothing else."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from kspec.impl.records.batch import header_at
from kspec.impl.server.startup import BrokerRules
from kspec.spec.broker.clients.batches import answered_log_start
from kspec.spec.broker.clients.offset_requests import OffsetQuestion, judge_timestamp
from kspec.spec.broker.effects import AnswerProducer, BatchesAppended, CloseConnection, LogStartMoved, Persist
from kspec.spec.broker.leader.deletion import handle_delete_records
from kspec.spec.broker.leader.fetch import read_partition
from kspec.spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.partition import Broker, Handled, Partition
from kspec.spec.broker.recovery import CheckpointedOffsets, RecoveredLog, SurvivingFiles, opened, recover, recovered_epochs
from kspec.spec.broker.roles import become_leader
from kspec.spec.log.batch import Batch
from kspec.spec.log.epoch_history import EpochHistory
from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.producers import BATCHES_REMEMBERED, ProducerBatch, rebuilt_from
from kspec.spec.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kspec.spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest, FetchResponse, Isolation
from kspec.spec.messages.list_offsets import NOT_FOUND, ListOffsetsRequest, ListOffsetsResponse, OffsetSpec
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kspec.spec.messages.produce import ProduceRequest, ProduceResponse
from kspec.spec.metadata import PartitionRegistration
from kspec.spec.step import Reply
from kspec.spec.transactions.log.partition import PartitionTransactions
from kspec.spec.values import BrokerId, Epoch, Error, MonotonicMs, Offset, PartitionEpoch, PartitionId
from tests.impl.storage.model import BatchInLog, DirectoryModel, producer_batch

SELF = BrokerId(1)
LIST_OFFSETS_VERSION = 7

AnswerT = TypeVar("AnswerT")


class ProducerAnswer(NamedTuple):
    """The answer that a producer is to get. `closes`: the connection is closed instead."""

    response: ProduceResponse | None
    log_start: Offset
    closes: bool = False


class PartitionModel:
    """A partition that this broker leads, and the bytes of its batches."""

    def __init__(self, rules: BrokerRules, leader_epoch: int) -> None:
        self._broker = Broker(SELF, rules.broker)
        self._announced = 0
        self.stored = DirectoryModel()
        self.segment_base = Offset(0)
        """The base offset of the only segment."""
        self.all_epochs = EpochHistory()
        """The epochs without regard to the log start: what the files still tell when it moves back."""
        self._snapshots: dict[Offset, tuple[ProducerBatch, ...]] = {}
        self.partition: Partition[EpochLog] = opened(PartitionId(0), RecoveredLog(LocalLog(EMPTY_EPOCH_LOG), Offset(0)))
        self._lead(leader_epoch)

    @property
    def log(self) -> EpochLog:
        """The log as the rules see it."""
        return self.partition.local.log

    @property
    def leader_epoch(self) -> Epoch:
        """The epoch in which the broker leads."""
        return self.partition.leader_epoch

    def _lead(self, leader_epoch: int) -> None:
        self._announced += 1
        epoch = Epoch(leader_epoch)
        announced = PartitionRegistration((SELF,), frozenset({SELF}), SELF, epoch, PartitionEpoch(self._announced))
        self.partition = become_leader(self._broker, self.partition, announced, MonotonicMs(0)).state
        self.all_epochs = self.all_epochs.assign(epoch, self.log.end_offset)

    # ---- requests

    def produce(self, batch: bytes, acks: int) -> ProducerAnswer:
        header = header_at(batch)
        sent = Batch(
            header.record_count,
            payload=0,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            first_sequence=header.base_sequence,
        )
        step = handle_produce(self._broker, self.partition, ProduceRequest(1, acks, sent), MonotonicMs(0))
        self.partition = step.state
        response, closes = None, False
        for effect in step.effects:
            if isinstance(effect, AnswerProducer):
                response = effect.response
            elif isinstance(effect, CloseConnection):
                closes = True
            elif isinstance(effect, Persist):
                assert isinstance(effect.change, BatchesAppended)
                self.stored.append(effect.change.base_offset, self.leader_epoch, [batch])
        error = response.error if response is not None else Error.NONE
        return ProducerAnswer(response, answered_log_start(error, self.log.start_offset), closes)

    def fetch(self, offset: int, epoch: int, last_epoch: int) -> FetchResponse:
        position = FetchPosition(Epoch(epoch), Offset(offset), Epoch(last_epoch))
        return read_partition(
            self._broker, self.partition, FetchRequest(CONSUMER, position, start_offset=Offset(-1), has_client_metadata=True)
        )

    def records(self, found: FetchResponse, max_bytes: int) -> list[BatchInLog]:
        """The batches that an answer carries."""
        if found.error != Error.NONE or not found.records:
            return []
        return self.stored.read(found.base_offset, found.high_watermark, max_bytes, at_least_one=True)

    def list_offsets(self, timestamp: int, epoch: int) -> tuple[ListOffsetsResponse, int]:
        """The answer, and the timestamp in it."""
        question = judge_timestamp(timestamp, LIST_OFFSETS_VERSION)
        record = self._record(question, timestamp)
        found = NOT_FOUND
        if record is not None:
            found = ListOffsetsResponse(Error.NONE, Offset(record[1]), Epoch(record[2]))
        wanted = {OffsetQuestion.LATEST: OffsetSpec.LATEST, OffsetQuestion.EARLIEST: OffsetSpec.EARLIEST}.get(
            question, OffsetSpec.BY_TIMESTAMP
        )
        request = ListOffsetsRequest(wanted, Epoch(epoch), Isolation.HIGH_WATERMARK)
        answer = replied(
            handle_list_offsets(self._broker, self.partition, request, MonotonicMs(0), found), ListOffsetsResponse
        )
        tells = wanted == OffsetSpec.BY_TIMESTAMP and answer.error == Error.NONE and answer.offset >= 0
        return answer, record[0] if tells and record is not None else -1

    def _record(self, question: OffsetQuestion, timestamp: int) -> tuple[int, int, int] | None:
        records = self.stored.records()
        if question == OffsetQuestion.LARGEST_TIMESTAMP:
            newest = max((time for time, _, _ in records), default=None)
            return next((one for one in records if one[0] == newest), None)
        if question == OffsetQuestion.BY_TIMESTAMP:
            return next((one for one in records if one[0] >= timestamp), None)
        return None

    def offset_for_leader_epoch(self, current: int, epoch: int) -> OffsetForLeaderEpochResponse:
        request = OffsetForLeaderEpochRequest(Epoch(current), Epoch(epoch))
        step = handle_offset_for_leader_epoch(self._broker, self.partition, request, MonotonicMs(0))
        return replied(step, OffsetForLeaderEpochResponse)

    def delete_records(self, offset: int) -> DeleteRecordsResponse:
        step = handle_delete_records(self._broker, self.partition, DeleteRecordsRequest(Offset(offset)), MonotonicMs(0))
        self.partition = step.state
        for effect in step.effects:
            if isinstance(effect, Persist):
                assert isinstance(effect.change, LogStartMoved)
                self._move_start(effect.change.start_offset)
        return replied(step, DeleteRecordsResponse)

    def _move_start(self, start: Offset) -> None:
        self.stored.start_at(start)
        if start == self.log.end_offset:  # nothing is left of the segment: the next one begins here, with a snapshot
            self._snapshots = {start: self._remembered()}
            self.segment_base = start

    # ---- stopping and starting

    def _remembered(self) -> tuple[ProducerBatch, ...]:
        return tuple(batch for entry in self.partition.producers for batch in entry.batches)

    def stop(self) -> None:
        """A clean stop writes a snapshot of the producers at the end of the log."""
        self._snapshots[self.log.end_offset] = self._remembered()

    def start(self, log_start: Offset, leader_epoch: int, clean: bool) -> None:
        """Start again. After a kill the log start may be an earlier one than before: the last one that was written."""
        assert self.segment_base <= log_start <= self.log.start_offset
        assert log_start == self.log.start_offset or not clean
        end = self.log.end_offset
        log = EpochLog(recovered_epochs(self.all_epochs, log_start, end, ()), log_start, end)
        recovered = recover(SurvivingFiles(log, CheckpointedOffsets(end, end, log_start), clean))
        self.stored.log = recovered.local.log
        known = rebuilt_from(self._producers(log_start, end, clean))
        self.partition = opened(PartitionId(0), recovered, PartitionTransactions(known))
        self.all_epochs = self.all_epochs.truncate_from_end(end)
        self._lead(leader_epoch)

    def _producers(self, start: Offset, end: Offset, clean: bool) -> tuple[ProducerBatch, ...]:
        """The batches from which the state of the producers is made: a snapshot has those that are remembered."""
        self._snapshots = {offset: known for offset, known in self._snapshots.items() if start < offset <= end}
        if not self._snapshots and clean:
            return ()
        begin = max(self._snapshots, default=start)
        after = [producer_batch(one) for one in self.stored.batches if one.next_offset > begin]
        return last_of_each((*self._snapshots.get(begin, ()), *(one for one in after if one is not None)))


def replied(step: Handled[EpochLog], kind: type[AnswerT]) -> AnswerT:
    """The answer among the effects of a handler."""
    (message,) = [effect.message for effect in step.effects if isinstance(effect, Reply)]
    assert isinstance(message, kind)
    return message


def last_of_each(batches: Sequence[ProducerBatch]) -> tuple[ProducerBatch, ...]:
    """The last batches of each producer, in order of their offsets."""
    known: dict[int, list[ProducerBatch]] = {}
    for batch in batches:
        known.setdefault(batch.producer_id, []).append(batch)
    kept = [batch for one in known.values() for batch in one[-BATCHES_REMEMBERED:]]
    return tuple(sorted(kept, key=lambda batch: batch.base_offset))
