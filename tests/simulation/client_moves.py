"""What clients and operators do in a simulation: produce, send again, read, ask for offsets, delete records."""

from typing import Any

from spec.broker.leader.deletion import apply_retention, handle_delete_records
from spec.broker.leader.fetch import handle_fetch
from spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from spec.broker.leader.produce import handle_produce
from spec.broker.rules.offsets import is_deleted
from spec.messages.delete_records import TO_HIGH_WATERMARK, DeleteRecordsRequest
from spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest, Isolation
from spec.messages.list_offsets import ListOffsetsRequest, Wanted
from spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from spec.messages.produce import ProduceRequest
from spec.metadata import broker_of
from spec.values import NO_EPOCH, NO_PRODUCER_ID, Epoch, Error, Offset, ProducerEpoch, ProducerId
from tests.simulation.broker_moves import Brokers
from tests.simulation.parties import Node
from tests.simulation.setup import Setup
from tests.simulation.state import Violation
from tests.simulation.storage.records import Sent

ACKS = (-1, -1, -1, -1, -1, 1, 1, 0, 2)


class Producer:
    """An idempotent producer: its epoch, its next sequence number, and its last batches, which it may send again."""

    __slots__ = ("epoch", "number", "sent", "sequence")

    def __init__(self, number: int) -> None:
        self.number, self.epoch, self.sequence = number, 0, 0
        self.sent: list[Sent] = []


class Clients(Brokers):
    """Moves of clients."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.producers = [Producer(number) for number in (1, 2)]
        self.number = 0

    # ---- producing

    def produce(self, node: Node) -> bool:
        """A producer sends a batch: a new one, or one of its last ones again."""
        if not node.answers:
            return False
        if node.partition.leader != node.id and self.pick(10):
            return False
        batch = self._batch()
        full = node.partition.local.log.end_offset >= self.setup.longest_log
        if full and batch not in self.batches:
            return False
        acks = -1 if self.setup.only_acks_all else ACKS[self.pick(len(ACKS))]
        deadline = -1 if self.pick(4) else node.now + 1000
        self.messages += 1
        request = ProduceRequest(self.messages, acks, batch, deadline)
        self.requests[self.messages] = (batch, acks)
        if batch in self.batches:
            self.reached["duplicates"] += 1
        elif batch.producer_id != NO_PRODUCER_ID:
            self.batches.append(batch)
        if self.say:
            self.say(f"{node.id} is sent {request}")
        self.look_at("produce", node, request)
        self.carry_out(node, self.seen(handle_produce(node.as_broker(), node.partition, request, node.now)))
        return True

    def _batch(self) -> Any:
        count = (1, 1, 2)[self.pick(3)]
        if not self.setup.idempotent or self.pick(3) == 0:
            self.number += 1
            return Sent(self.number, count)
        producer = self.producers[self.pick(2)]
        if producer.sent and self.pick(3) == 0:
            return producer.sent[-1 - self.pick(min(7, len(producer.sent)))]
        if self.pick(12) == 0:
            producer.epoch, producer.sequence = producer.epoch + 1, 0
        self.number += 1
        batch = Sent(
            self.number,
            count,
            producer_id=ProducerId(producer.number),
            producer_epoch=ProducerEpoch(producer.epoch),
            first_sequence=producer.sequence,
        )
        producer.sequence += count
        producer.sent.append(batch)
        return batch

    # ---- reading

    def consume(self, node: Node) -> bool:
        """A consumer fetches from any broker."""
        if not self._answers(node):
            return False
        fetch = FetchPosition(self._some_epoch(node), self._some_offset(node), NO_EPOCH)
        request = FetchRequest(
            CONSUMER,
            fetch,
            max_records=1 + self.pick(4),
            read_committed=bool(self.pick(2)),
            has_client_metadata=bool(self.pick(2)),
        )
        self.look_at("fetch", node, request)
        before = node.partition
        answer = self.carry_out(node, self.seen(handle_fetch(node.as_broker(), before, request, node.now)))
        for place, record in enumerate(answer.records):
            offset = answer.base_offset + place
            if self.keeps and (offset >= len(self.committed) or self.committed[offset] != record):
                name = "ConsistentRead" if offset < len(self.committed) else "ReadableIsFinal"
                raise Violation(name, f"broker {node.id} shows {record} at {offset}")
        return True

    def list_offsets(self, node: Node) -> bool:
        """A client asks where the log starts or ends."""
        if not self._answers(node):
            return False
        isolation = (Isolation.HIGH_WATERMARK, Isolation.COMMITTED_TRANSACTIONS, Isolation.LOG_END)[self.pick(3)]
        wanted = (Wanted.LATEST, Wanted.LATEST, Wanted.EARLIEST)[self.pick(3)]
        request = ListOffsetsRequest(wanted, self._some_epoch(node), isolation, leader_only=self.pick(5) > 0)
        self.look_at("list offsets", node, request)
        answer = self.carry_out(node, self.seen(handle_list_offsets(node.as_broker(), node.partition, request, node.now)))
        told = wanted == Wanted.LATEST and answer.error == Error.NONE and node.protocol.promises_latest_offset
        if told and self.keeps and self.is_in_office(node) and answer.offset < len(self.committed):
            raise Violation("LatestOffset", f"broker {node.id} says {answer}, and {len(self.committed)} are committed")
        return True

    def find_epoch(self, node: Node) -> bool:
        """A client asks where an epoch ends."""
        if not self._answers(node):
            return False
        asked = self._some_epoch(node)
        request = OffsetForLeaderEpochRequest(self._some_epoch(node), asked, leader_only=self.pick(5) > 0)
        self.look_at("find epoch", node, request)
        step = handle_offset_for_leader_epoch(node.as_broker(), node.partition, request, node.now)
        self.carry_out(node, self.seen(step))
        return True

    def _answers(self, node: Node) -> bool:
        return node.answers

    def _some_epoch(self, node: Node) -> Epoch:
        epoch = node.partition.leader_epoch
        return Epoch(max(NO_EPOCH, (epoch, epoch, NO_EPOCH, epoch - 1, epoch + 1)[self.pick(5)]))

    def _some_offset(self, node: Node) -> Offset:
        log = node.partition.local.log
        return Offset(log.start_offset - 1 + self.pick(log.end_offset - log.start_offset + 3))

    # ---- deleting

    def delete_records(self, node: Node) -> bool:
        """A client deletes records by request; it is told once no live replica has them any more."""
        if not self.setup.deletes or not self._answers(node):
            return False
        log, high_watermark = node.partition.local
        wanted = (TO_HIGH_WATERMARK, high_watermark, log.start_offset, log.end_offset, high_watermark + 1)[self.pick(5)]
        request = DeleteRecordsRequest(Offset(wanted))
        self.look_at("delete", node, request)
        answer = self.carry_out(node, self.seen(handle_delete_records(node.as_broker(), node.partition, request, node.now)))
        if (
            not self.keeps
            or answer.error != Error.NONE
            or not self.is_in_office(node)
            or not is_deleted(answer, answer.low_watermark)
        ):
            return True
        for other in self.nodes:
            assigned = self.topic is not None and other.id in self.topic.replicas
            known = broker_of(node.image.brokers, other.id)
            live = known is not None and not known.fenced and known.broker_epoch == other.epoch
            assigned = assigned and other.id in [one.broker for one in node.partition.followers]
            if assigned and live and other.up and other.disk.records and other.disk.start < answer.offset:
                raise Violation("LowWatermark", f"broker {other.id} holds {other.disk.as_log()}, told is {answer}")
        return True

    def retain(self, node: Node) -> bool:
        """Old records are deleted by size or time, on any replica."""
        if not self.setup.deletes or not node.up:
            return False
        log = node.partition.local.log
        wanted = Offset(log.start_offset - 1 + self.pick(len(log.records) + 3))
        self.look_at("retain", node, wanted)
        self.carry_out(node, self.seen(apply_retention(node.partition, wanted)))
        return True
