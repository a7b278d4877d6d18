"""`cluster`: brokers and a controller, joined without a network. Kafka: the servers of an integration test.

After every operation all messages are delivered, until nobody has anything to say.
"""

from dataclasses import dataclass, field
from typing import Any

from kspec.spec.broker.effects import AnswerProducer, FollowerRequest
from kspec.spec.broker.follower import (
    fetch_or_truncate,
    handle_fetch_response,
    handle_list_offsets_response,
    handle_offset_for_leader_epoch_response,
)
from kspec.spec.broker.leader.fetch import handle_fetch
from kspec.spec.broker.leader.isr import handle_alter_partition_response
from kspec.spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.partition import Broker, Handled, Partition, leads
from kspec.spec.broker.recovery import after_clean_stop, after_kill, checkpoint, opened, recover
from kspec.spec.broker.roles import apply_change
from kspec.spec.broker.rules.epoch_lookup import offset_for_leader_epoch_without_log
from kspec.spec.broker.rules.fetcher import PendingFetch
from kspec.spec.controller.protocol import ControllerSettings
from kspec.spec.log.batch import Batch
from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.log.local_log import LocalLog
from kspec.spec.messages.fetch import FetchRequest, FetchResponse
from kspec.spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kspec.spec.messages.produce import ACKS_ALL, ProduceRequest
from kspec.spec.metadata import EMPTY_IMAGE, MetadataImage, PartitionRegistration, local_change, partition_of
from kspec.spec.releases.broker import BROKER_3_9
from kspec.spec.releases.kraft import KRAFT_3_9
from kspec.spec.step import Reply, Send, SendToController
from kspec.spec.values import NO_EPOCH, NO_LEADER, BrokerId, Epoch, Error, MonotonicMs, Offset, PartitionId
from tests.conformance.components import BrokerIds, VectorAnswer
from tests.conformance.components.batches import LIMIT, at_most, batch_of
from tests.conformance.components.epochs import epoch_end_of
from tests.conformance.outcomes import MismatchError, UnsupportedError
from tests.spec.controller_driver import TIMEOUT_MS, ControllerDriver, answer_of

ROUNDS = 100
"""More than any exchange here takes: a leader change, a truncation, a fetch of everything, an ISR proposal."""


@dataclass
class NodeOfVectors:
    """One broker: its replicas, and the metadata that it has acted on."""

    up: bool = True
    image: MetadataImage = EMPTY_IMAGE
    replicas: dict[PartitionId, Partition[EpochLog]] = field(default_factory=dict)


class ClusterOfVectors:
    """`cluster`: topics on brokers that start when they are first named."""

    def __init__(self) -> None:
        self.controller = ControllerDriver(KRAFT_3_9, ControllerSettings(session_timeout_ms=TIMEOUT_MS))
        self.nodes: dict[BrokerId, NodeOfVectors] = {}
        self.partitions: dict[tuple[str, int], PartitionId] = {}
        self.acknowledged: dict[int, Error] = {}
        self.requests = 0

    # ---- brokers

    def start_brokers(self, brokers: list[int]) -> None:
        for broker in brokers:
            self._start(BrokerId(broker), clean=True)

    def start_broker(self, broker: int) -> None:
        self._start(BrokerId(broker), clean=True)

    def stop_broker(self, broker: int, clean: bool = True) -> None:
        self._stop(self._known(broker), clean)

    def kill_broker(self, broker: int) -> None:
        self._stop(self._known(broker), clean=False)

    def bounce_broker(self, broker: int | None = None, clean: bool = True) -> None:
        """Stop a broker, by default the leader, in order or not, and start it again."""
        bounced = self._leader() if broker is None else self._known(broker)
        self._stop(bounced, clean)
        self._start(bounced, clean)

    def _leader(self) -> BrokerId:
        leaders = {self._registration(partition_id).leader for partition_id in self._named(None, None)}
        if len(leaders) > 1 or NO_LEADER in leaders:
            raise UnsupportedError(f"the leader, of leaders {sorted(leaders)}")
        return leaders.pop()

    def _known(self, broker: int) -> BrokerId:
        if BrokerId(broker) not in self.nodes:
            raise UnsupportedError(f"broker {broker}, which was not started")
        return BrokerId(broker)

    def _start(self, broker: BrokerId, clean: bool) -> None:
        node = self.nodes.setdefault(broker, NodeOfVectors(up=False))
        if not node.up:
            node.up, node.image = True, EMPTY_IMAGE
            self.controller.register(broker, clean=clean)
            self._settle()

    def _stop(self, broker: BrokerId, clean: bool) -> None:
        node = self.nodes[broker]
        for _ in range(ROUNDS if clean else 0):
            if answer_of(self.controller.heartbeat(broker, shutdown=True)).should_shut_down:
                break
            self._settle()
        node.up = False
        for partition_id, partition in node.replicas.items():
            local = partition.local
            survived = after_clean_stop(local) if clean else after_kill(local, checkpoint(local, Offset(0)))
            node.replicas[partition_id] = opened(partition_id, recover(survived))
        if not clean:
            self.controller.expire(broker)
        self._settle()

    # ---- topics

    def create_topic(
        self,
        replicas: list[int] | None = None,
        topics: int = 1,
        topic: str | None = None,
        assignment: dict[str, list[int]] | list[list[int]] | None = None,
        partition: int = 0,
    ) -> None:
        """One topic with the replicas of each partition, or several of one partition each."""
        partitions: dict[Any, Any] = {partition: replicas}
        if assignment is not None:
            partitions = assignment if isinstance(assignment, dict) else dict(enumerate(assignment))
        names = [f"topic{number}" for number in range(at_most(LIMIT, topics))] if topic is None else [topic]
        for name in names:
            for index, hosts in partitions.items():
                self._create((name, int(index)), hosts)
        self._settle()

    def _create(self, name: tuple[str, int], hosts: list[int] | None) -> None:
        if not hosts or name in self.partitions:
            raise UnsupportedError(f"partition {name} on {hosts}")
        self.start_brokers(hosts)
        self.partitions[name] = PartitionId(len(self.partitions))
        self.controller.create(*hosts, topic=f"{name[0]}-{name[1]}", number=len(self.partitions))

    def _named(self, topic: str | None, partition: int | str | None) -> list[PartitionId]:
        """All partitions, or those of a topic, or one of them."""
        topic, partition = _topic_and_number(topic, partition)
        found = [
            partition_id
            for (name, index), partition_id in self.partitions.items()
            if topic in (None, name) and partition in (None, index)
        ]
        if not found:
            raise UnsupportedError(f"partition {partition} of topic {topic}")
        return found

    def _registration(self, partition_id: PartitionId) -> PartitionRegistration:
        found = partition_of(self.controller.image, partition_id)
        assert found is not None, f"the controller has not created partition {partition_id}"
        return found

    # ---- clients

    def produce(
        self, count: int = 1, topic: str | None = None, partition: int | str | None = None, times: int = 1
    ) -> VectorAnswer:
        """Produce a batch to each of the partitions named, and wait until it is on all in-sync replicas."""
        error = Error.NONE
        for _ in range(at_most(LIMIT, times)):
            for partition_id in self._named(topic, partition):
                answer = self._produce(partition_id, batch_of(count, 0).in_epoch(NO_EPOCH))
                error = answer if error == Error.NONE else error
        return VectorAnswer(error.name)

    def _produce(self, partition_id: PartitionId, batch: Batch) -> Error:
        leader = self._registration(partition_id).leader
        if leader == NO_LEADER:
            return Error.LEADER_NOT_AVAILABLE
        self.requests += 1
        request = ProduceRequest(self.requests, ACKS_ALL, batch)
        broker, replica = self._broker(leader), self.nodes[leader].replicas[partition_id]
        self._run(leader, partition_id, handle_produce(broker, replica, request, MonotonicMs(self.controller.now_ms)))
        self._settle()
        return self.acknowledged.pop(self.requests, Error.REQUEST_TIMED_OUT)

    def offset_for_leader_epoch(
        self,
        leader_epoch: int,
        broker: int | None = None,
        topic: str | None = None,
        partition: int | str | None = None,
        current_leader_epoch: int | None = None,
    ) -> VectorAnswer:
        """Ask a broker, by default the leader, where an epoch ends in its log of one partition."""
        return epoch_end_of(self._epoch_end(leader_epoch, broker, topic, partition, current_leader_epoch))

    def _epoch_end(
        self,
        leader_epoch: int,
        broker: int | None,
        topic: str | None,
        partition: int | str | None,
        current: int | None,
    ) -> OffsetForLeaderEpochResponse:
        topic, partition = _topic_and_number(topic, partition)
        if topic is not None and (topic, partition or 0) not in self.partitions:
            return offset_for_leader_epoch_without_log(False)
        named = self._named(topic, 0 if partition is None and topic is not None else partition)
        if len(named) > 1:
            raise UnsupportedError("a question about several partitions")
        asked = self._registration(named[0]).leader if broker is None else self._known(broker)
        if asked == NO_LEADER or named[0] not in self.nodes[asked].replicas:
            return offset_for_leader_epoch_without_log(True)
        request = OffsetForLeaderEpochRequest(NO_EPOCH if current is None else Epoch(current), Epoch(leader_epoch))
        replica = self.nodes[asked].replicas[named[0]]
        step = handle_offset_for_leader_epoch(self._broker(asked), replica, request, MonotonicMs(self.controller.now_ms))
        response: OffsetForLeaderEpochResponse = self._run(asked, named[0], step)
        return response

    # ---- what must hold

    def expect_record_epochs(
        self, offsets: list[int], epoch: int, topic: str | None = None, partition: int | str | None = None
    ) -> None:
        """The records from the first of two offsets to the second have this epoch, in the logs of all replicas."""
        first, last = offsets[0], offsets[-1]
        for partition_id in self._named(topic, partition):
            for replica in self._registration(partition_id).replicas:
                log = self.nodes[replica].replicas[partition_id].local.log
                epochs = {log.epoch_at(Offset(offset)) for offset in range(first, at_most(LIMIT, last) + 1)}
                if epochs != {epoch}:
                    raise MismatchError(f"broker {replica}: expected epoch {epoch}, got {sorted(epochs)}")

    def expect_leo(
        self, offset: int, broker: int | None = None, topic: str | None = None, partition: int | str | None = None
    ) -> None:
        for partition_id in self._named(topic, partition):
            host = self._registration(partition_id).leader if broker is None else self._known(broker)
            replica = self.nodes[host].replicas.get(partition_id)
            end = None if replica is None else replica.local.log.end_offset
            if end != offset:
                raise MismatchError(f"broker {host}: expected log end offset {offset}, got {end}")

    def expect_metadata_leader_epoch(self, epoch: int, topic: str | None = None, partition: int | str | None = None) -> None:
        for partition_id in self._named(topic, partition):
            found = self._registration(partition_id).leader_epoch
            if found != epoch:
                raise MismatchError(f"expected leader epoch {epoch}, got {found}")

    def final_state(self) -> dict[str, Any]:
        """Each partition by its topic and number; if there is only one, also by itself."""
        by_name = {f"{topic}-{index}": self._state_of(found) for (topic, index), found in self.partitions.items()}
        return {"partitions": by_name} | (next(iter(by_name.values())) if len(by_name) == 1 else {})

    def _state_of(self, partition_id: PartitionId) -> dict[str, Any]:
        registration = self._registration(partition_id)
        state = {
            "leader": registration.leader,
            "leader_epoch": registration.leader_epoch,
            "isr": BrokerIds(sorted(registration.isr)),
        }
        if registration.leader != NO_LEADER:
            local = self.nodes[registration.leader].replicas[partition_id].local
            entries = [list(pair) for pair in local.log.epoch_history.pairs]
            state |= {"leo": local.log.end_offset, "hw": local.high_watermark, "epoch_entries": entries}
        return state

    # ---- messages

    def _broker(self, broker: BrokerId) -> Broker:
        epoch = self.controller.broker_epochs[broker]
        return Broker(broker, BROKER_3_9, epoch, self.nodes[broker].image.brokers)

    def _settle(self) -> None:
        """Deliver everything until nothing changes any more; a round takes a second."""
        for _ in range(ROUNDS):
            before = [(node.image, dict(node.replicas)) for node in self.nodes.values()]
            self.controller.now_ms += 1_000
            up = [broker for broker, node in self.nodes.items() if node.up]
            for broker in up:
                self.controller.heartbeat(broker)
            for broker in up:
                self._publish(broker)
            for broker in up:
                for partition_id in list(self.nodes[broker].replicas):
                    self._fetch(broker, partition_id)
            after = [(node.image, dict(node.replicas)) for node in self.nodes.values()]
            if _without_times(before) == _without_times(after):
                return

    def _publish(self, broker: BrokerId) -> None:
        node, image = self.nodes[broker], self.controller.image
        before, node.image = node.image, image
        for partition_id in self.partitions.values():
            new = partition_of(image, partition_id)
            change = local_change(partition_of(before, partition_id), new, broker)
            hosts = new is not None and broker in new.replicas
            if hosts and partition_id not in node.replicas:
                fresh = recover(after_clean_stop(LocalLog(EMPTY_EPOCH_LOG))).local
                node.replicas[partition_id] = Partition(partition_id, fresh)
            if partition_id in node.replicas:
                replica = node.replicas[partition_id]
                step = apply_change(self._broker(broker), replica, change, MonotonicMs(self.controller.now_ms))
                self._run(broker, partition_id, step)

    def _fetch(self, broker: BrokerId, partition_id: PartitionId) -> None:
        """One request of a follower, and its answer."""
        replica = self.nodes[broker].replicas[partition_id]
        if not leads(self._broker(broker), replica):
            self._run(
                broker, partition_id, fetch_or_truncate(self._broker(broker), replica, MonotonicMs(self.controller.now_ms))
            )

    def _run(self, broker: BrokerId, partition_id: PartitionId, step: Handled[EpochLog]) -> Any:
        """Carry out what a handler returned; the reply, if there is one."""
        self.nodes[broker].replicas[partition_id] = step.state
        reply = None
        for effect in step.effects:
            match effect:
                case Send(leader, message):
                    self._exchange(broker, partition_id, leader, message)
                case SendToController(message):
                    response = answer_of(self.controller.alter(message))
                    replica = self.nodes[broker].replicas[partition_id]
                    now = self.controller.now_ms
                    answered = handle_alter_partition_response(
                        self._broker(broker), replica, message, response, MonotonicMs(now)
                    )
                    self._run(broker, partition_id, answered)
                case AnswerProducer(request, response):
                    self.acknowledged[request] = response.error
                case Reply(message):
                    reply = message
        return reply

    def _exchange(self, follower: BrokerId, partition_id: PartitionId, leader: BrokerId, request: FollowerRequest) -> None:
        """A follower's request is answered at once; a broker that is down does not answer."""
        if not self.nodes[leader].up:
            return
        fetcher = self.nodes[follower].replicas[partition_id].fetcher
        asked, now = PendingFetch(fetcher.leader_epoch, fetcher.fetch_offset), self.controller.now_ms
        there, led = self._broker(leader), self.nodes[leader].replicas[partition_id]
        match request:
            case FetchRequest():
                answer = self._run(leader, partition_id, handle_fetch(there, led, request, MonotonicMs(now)))
            case OffsetForLeaderEpochRequest():
                answer = self._run(
                    leader, partition_id, handle_offset_for_leader_epoch(there, led, request, MonotonicMs(now))
                )
            case ListOffsetsRequest():
                answer = self._run(leader, partition_id, handle_list_offsets(there, led, request, MonotonicMs(now)))
        here, replica = self._broker(follower), self.nodes[follower].replicas[partition_id]
        match answer:
            case FetchResponse():
                self._run(follower, partition_id, handle_fetch_response(here, replica, asked, answer, MonotonicMs(now)))
            case OffsetForLeaderEpochResponse():
                step = handle_offset_for_leader_epoch_response(here, replica, asked, answer, MonotonicMs(now))
                self._run(follower, partition_id, step)
            case ListOffsetsResponse():
                self._run(
                    follower, partition_id, handle_list_offsets_response(here, replica, asked, answer, MonotonicMs(now))
                )


def _topic_and_number(topic: str | None, partition: int | str | None) -> tuple[str | None, int | None]:
    """A partition by its topic and its number; `foo-0` is partition 0 of topic foo."""
    if not isinstance(partition, str):
        return topic, partition
    name, _, number = partition.rpartition("-")
    if not number.isdecimal() or topic not in (None, name):
        raise UnsupportedError(f"partition {partition} of topic {topic}")
    return name, int(number)


def _without_times(nodes: list[tuple[MetadataImage, dict[PartitionId, Partition[EpochLog]]]]) -> list[Any]:
    """The part of brokers that can settle: everything but the times of the fetches that leaders remember."""
    return [
        (image, [(id_, replica._replace(followers=_ends(replica))) for id_, replica in replicas.items()])
        for image, replicas in nodes
    ]


def _ends(replica: Partition[EpochLog]) -> Any:
    return tuple((follower.broker, follower.state.end_offset) for follower in replica.followers)
