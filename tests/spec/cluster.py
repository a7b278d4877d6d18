"""Three brokers and a controller as one object: the handlers of the specification joined without a network.

Whatever the world may do is a method: deliver metadata late and merged, lose an answer, stop a broker. A seeded choice of
them is a run, and after each step the properties of replication are checked.

`trials/simulated` drives the same handlers inside whole brokers, with far more that may happen, and looks at far more. This
cluster is generic in the carrier of its logs. So it is here that the carrier of a broker, which keeps epochs and no records,
is replicated under hundreds of leaders, in large batches, without files; what it can tell apart are epochs. And it is small
enough to be read.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile
from random import Random
from typing import Any, Generic

from kspec.spec.broker.effects import AnswerProducer, FollowerRequest
from kspec.spec.broker.follower import (
    fetch_or_truncate,
    handle_fetch_response,
    handle_list_offsets_response,
    handle_offset_for_leader_epoch_response,
    on_no_answer,
)
from kspec.spec.broker.leader.fetch import handle_fetch
from kspec.spec.broker.leader.isr import consider_shrinking, handle_alter_partition_response
from kspec.spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.partition import Broker, BrokerSettings, Handled, Partition, leads
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.recovery import CheckpointedOffsets, after_clean_stop, after_kill, checkpoint, opened, recover
from kspec.spec.broker.roles import apply_change
from kspec.spec.broker.rules.fetcher import PendingFetch
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from kspec.spec.controller.protocol import ControllerProtocol
from kspec.spec.log.algebra import LogT
from kspec.spec.log.batch import Batch, records_of
from kspec.spec.log.local_log import LocalLog
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kspec.spec.messages.fetch import FetchRequest, FetchResponse
from kspec.spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kspec.spec.messages.produce import ACKS_ALL, ProduceRequest
from kspec.spec.metadata import EMPTY_IMAGE, MetadataImage, local_change, partition_of
from kspec.spec.step import Reply, Send, SendToController
from kspec.spec.values import BrokerEpoch, BrokerId, Epoch, Error, Incarnation, MonotonicMs, Offset, Record
from tests.spec.controller_driver import PARTITION, ControllerDriver, answer_of, cluster

IDS = (BrokerId(1), BrokerId(2), BrokerId(3))
HALF_LAG = 15_000


class BrokenClusterError(Exception):
    """A promise that a run has broken."""


class DivergedError(BrokenClusterError):
    """Two logs differ below a high watermark."""


class AcknowledgedTooEarlyError(BrokenClusterError):
    """A producer was told of a record that is not committed."""


class LostError(BrokenClusterError):
    """A committed record is not in every log, although the cluster has healed."""


@dataclass
class UnderWay:
    """A follower's request on its way, and the answer once its leader has given one."""

    leader: BrokerId
    epoch: Epoch
    offset: Offset
    request: FollowerRequest
    answer: Any = None


@dataclass
class HandlerNode(Generic[LogT]):
    """One broker's replica, with what is on its way to and from it."""

    partition: Partition[LogT]
    broker_epoch: BrokerEpoch
    image: MetadataImage = EMPTY_IMAGE
    asked: UnderWay | None = None
    proposals: deque[AlterPartitionRequest] = field(default_factory=deque)
    answers: deque[tuple[AlterPartitionRequest, AlterPartitionResponse]] = field(default_factory=deque)
    checkpoints: CheckpointedOffsets = field(default_factory=CheckpointedOffsets)
    metadata_end_at_start: int = 0
    up: bool = True


class HandlerCluster(Generic[LogT]):
    """Brokers 1 to 3 with one partition on all of them, and what has been promised to producers so far."""

    def __init__(
        self,
        empty: LogT,
        protocol: BrokerProtocol,
        rules: ControllerProtocol,
        seed: int,
        rare: float = 0.1,
        check_every: int = 1,
        batch: int = 1,
    ) -> None:
        self.random = Random(seed)
        self.rare, self.check_every, self.batch = rare, check_every, batch
        self.steps = 0
        self.protocol = protocol
        self.settings = BrokerSettings(min_isr=2)
        self.controller: ControllerDriver = cluster(rules, min_isr=2)
        self.images = [self.controller.image]
        self.nodes: dict[BrokerId, HandlerNode[LogT]] = {}
        for replica in IDS:
            fresh = Partition(PARTITION, recover(after_clean_stop(LocalLog(empty))).local)
            self.nodes[replica] = HandlerNode(fresh, self.controller.broker_epochs[replica])
        self.requests = 0
        self.produced: dict[int, tuple[int, int]] = {}
        self.acknowledged: list[tuple[Offset, int]] = []
        self.committed: list[Record] = []
        self.elections = 0

    # ---- one party at a time

    def broker(self, replica: BrokerId) -> Broker:
        node = self.nodes[replica]
        return Broker(replica, self.protocol, node.broker_epoch, node.image.brokers, self.settings)

    @property
    def now(self) -> int:
        return self.controller.now_ms

    def run(self, replica: BrokerId, step: Handled[LogT]) -> Any:
        """Carry out what a handler returned; the reply, if there is one."""
        node = self.nodes[replica]
        node.partition = step.state
        reply = None
        for effect in step.effects:
            match effect:
                case SendToController(message):
                    node.proposals.append(message)
                case Send(leader, message):
                    fetcher = node.partition.fetcher
                    node.asked = UnderWay(leader, fetcher.leader_epoch, fetcher.fetch_offset, message)
                case Reply(message):
                    reply = message
                case AnswerProducer(request, response) if response.error == Error.NONE:
                    value, count = self.produced[request]
                    self.acknowledged += [(Offset(response.base_offset + n), value) for n in range(count)]
        return reply

    # ---- what may happen

    def publish(self, replica: BrokerId) -> None:
        """The broker takes some of the metadata that it lacks, merged, however much that is."""
        node = self.nodes[replica]
        start, known = Offset(node.metadata_end_at_start), node.image.end_offset
        fresh = takewhile(lambda image: image.end_offset > known, reversed(self.images))
        registered = BrokerLifecycle(replica, Incarnation(1), BrokerState.RECOVERY)
        newer = [image for image in fresh if self.protocol.acts_on_metadata(registered, image.end_offset, start)]
        if not newer:
            return
        image = newer[self.random.randrange(len(newer))]
        change = local_change(partition_of(node.image, PARTITION), partition_of(image, PARTITION), replica)
        node.image = image
        self.run(replica, apply_change(self.broker(replica), node.partition, change, MonotonicMs(self.now)))

    def ask(self, replica: BrokerId) -> None:
        node = self.nodes[replica]
        if node.asked is None:
            self.run(replica, fetch_or_truncate(self.broker(replica), node.partition, MonotonicMs(self.now)))

    def serve(self, replica: BrokerId) -> None:
        """The leader of whom this broker has asked something answers; a broker that is down does not."""
        asked = self.nodes[replica].asked
        if asked is None or asked.answer is not None:
            return
        leader = self.nodes[asked.leader]
        if not leader.up:
            self.lose(replica)
            return
        broker, partition = self.broker(asked.leader), leader.partition
        match asked.request:
            case FetchRequest() as request:
                asked.answer = self.run(asked.leader, handle_fetch(broker, partition, request, MonotonicMs(self.now)))
            case OffsetForLeaderEpochRequest() as request:
                asked.answer = self.run(
                    asked.leader, handle_offset_for_leader_epoch(broker, partition, request, MonotonicMs(self.now))
                )
            case ListOffsetsRequest() as request:
                asked.answer = self.run(asked.leader, handle_list_offsets(broker, partition, request, MonotonicMs(self.now)))

    def receive(self, replica: BrokerId) -> None:
        node = self.nodes[replica]
        asked = node.asked
        if asked is None or asked.answer is None:
            return
        node.asked = None
        broker, partition, epoch = self.broker(replica), node.partition, asked.epoch
        match asked.answer:
            case FetchResponse() as answer:
                self.run(
                    replica,
                    handle_fetch_response(
                        broker, partition, PendingFetch(epoch, asked.offset), answer, MonotonicMs(self.now)
                    ),
                )
            case OffsetForLeaderEpochResponse() as answer:
                self.run(
                    replica,
                    handle_offset_for_leader_epoch_response(
                        broker, partition, PendingFetch(epoch), answer, MonotonicMs(self.now)
                    ),
                )
            case ListOffsetsResponse() as answer:
                self.run(
                    replica,
                    handle_list_offsets_response(broker, partition, PendingFetch(epoch), answer, MonotonicMs(self.now)),
                )

    def lose(self, replica: BrokerId) -> None:
        node = self.nodes[replica]
        if node.asked is not None:
            node.asked = None
            self.run(replica, on_no_answer(self.broker(replica), node.partition, MonotonicMs(self.now)))

    def propose(self, replica: BrokerId) -> None:
        """The controller decides about the broker's oldest proposal."""
        node = self.nodes[replica]
        if node.proposals:
            request = node.proposals.popleft()
            node.answers.append((request, answer_of(self.controller.alter(request))))
            self.note_image()

    def hear(self, replica: BrokerId) -> None:
        node = self.nodes[replica]
        if node.answers:
            request, response = node.answers.popleft()
            broker = self.broker(replica)
            self.run(
                replica, handle_alter_partition_response(broker, node.partition, request, response, MonotonicMs(self.now))
            )

    def produce(self, replica: BrokerId) -> None:
        count, partition = self.batch, self.nodes[replica].partition
        if leads(self.broker(replica), partition):
            self.requests += 1
            self.produced[self.requests] = (self.requests, count)
            request = ProduceRequest(self.requests, ACKS_ALL, Batch(count, payload=self.requests))
            self.run(replica, handle_produce(self.broker(replica), partition, request, MonotonicMs(self.now)))

    def pass_time(self, replica: BrokerId) -> None:
        """Half the lag passes for everybody; leaders look for who has fallen behind."""
        self.controller.now_ms += HALF_LAG
        for each in self.up():
            self.controller.heartbeat(each)
            node = self.nodes[each]
            node.checkpoints = checkpoint(node.partition.local, Offset(0))
            self.run(each, consider_shrinking(self.broker(each), node.partition, MonotonicMs(self.now)))
        self.note_image()

    def prefer(self, replica: BrokerId) -> None:
        self.controller.elect()
        self.note_image()

    def stop(self, replica: BrokerId, clean: bool = False) -> None:
        """The broker is killed, or stops in order; the controller fences it. Two always stay."""
        if len(self.up()) == len(IDS):
            node = self.nodes[replica]
            node.up, node.asked = False, None
            node.proposals.clear()
            node.answers.clear()
            local = node.partition.local
            survived = after_clean_stop(local) if clean else after_kill(local, node.checkpoints)
            node.partition = opened(PARTITION, recover(survived))
            self.controller.expire(replica)
            self.note_image()

    def start(self, replica: BrokerId) -> None:
        node = self.nodes[replica]
        if not node.up:
            node.metadata_end_at_start = self.controller.image.end_offset
            self.controller.register(replica, clean=True)
            self.controller.heartbeat(replica)
            node.up, node.image = True, EMPTY_IMAGE
            node.broker_epoch = self.controller.broker_epochs[replica]
            self.note_image()

    # ---- runs

    def up(self) -> list[BrokerId]:
        return [replica for replica in IDS if self.nodes[replica].up]

    def note_image(self) -> None:
        before = partition_of(self.images[-1], PARTITION)
        if self.controller.image != self.images[-1]:
            self.images.append(self.controller.image)
            after = partition_of(self.images[-1], PARTITION)
            self.elections += before is not None and after is not None and before.leader_epoch != after.leader_epoch

    ORDINARY = ("publish", "ask", "serve", "receive", "propose", "hear", "produce")
    RARE = ("lose", "pass_time", "prefer", "stop", "start")

    def anything(self) -> None:
        """One step of the world, most often an ordinary one."""
        replica = self.random.choice(IDS)
        name = self.random.choice(self.RARE if self.random.random() < self.rare else self.ORDINARY)
        if self.nodes[replica].up or name == "start":
            getattr(self, name)(replica)
            self.step_done()

    def heal(self) -> None:
        """Everybody is up and nothing is lost any more, until all hold the same."""
        for replica in IDS:
            self.start(replica)
        for _ in range(40):
            self.controller.now_ms += 1_000
            for replica in IDS:
                self.controller.heartbeat(replica)
            self.note_image()
            for replica in IDS:
                for happens in (self.publish, self.ask, self.serve, self.receive, self.propose, self.hear):
                    happens(replica)
                    self.step_done()

    # ---- properties

    def step_done(self) -> None:
        self.steps += 1
        if self.steps % self.check_every == 0:
            self.check()

    def check(self) -> None:
        """Every log is in order; below a leader's high watermark all logs agree for ever; nobody is told too early."""
        for replica, node in self.nodes.items():
            local = node.partition.local
            assert 0 <= local.log.start_offset <= local.high_watermark <= local.log.end_offset
            known = len(self.committed)
            below = records_of(local.log.read(Offset(0), local.high_watermark))
            commits = self.check_every > 1 or leads(self.broker(replica), node.partition)
            if commits and len(below) > known:
                self.committed += below[known:]
            if list(below) != self.committed[: len(below)]:
                raise DivergedError(f"replica {replica} has other records below its high watermark")
        if self.check_every == 1:
            self.check_acknowledged()

    def check_acknowledged(self) -> None:
        if not all(offset < len(self.committed) for offset, _ in self.acknowledged[-1:]):
            raise AcknowledgedTooEarlyError(f"offset {self.acknowledged[-1][0]} is not committed")

    def check_all_kept(self) -> None:
        """Check that all that was committed is in every log, and that all that was acknowledged was committed."""
        self.check()
        self.check_acknowledged()
        for replica, node in self.nodes.items():
            log = node.partition.local.log
            if list(records_of(log.read(Offset(0), log.end_offset)))[: len(self.committed)] != self.committed:
                raise LostError(f"replica {replica} lacks records that were committed")
