"""What brokers do in a simulation: take metadata, fetch and answer, propose ISRs, watch the time."""

from typing import Any

from spec.broker.follower import (
    fetch_or_truncate,
    handle_fetch_response,
    handle_list_offsets_response,
    handle_offset_for_leader_epoch_response,
    on_no_answer,
)
from spec.broker.leader.fetch import handle_fetch
from spec.broker.leader.isr import consider_shrinking, handle_alter_partition_response
from spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from spec.broker.lifecycle import (
    handle_broker_heartbeat_response,
    handle_broker_registration_response,
    next_communication,
    set_ready_to_unfence,
)
from spec.broker.partition import expire_waiting
from spec.broker.recovery import checkpoint
from spec.broker.roles import apply_change
from spec.broker.rules.fetcher import Asked
from spec.broker.rules.reading import leaving_now
from spec.controller.brokers import handle_broker_heartbeat, handle_broker_registration
from spec.controller.partitions import handle_alter_partition
from spec.controller.state import refuse_as_inactive
from spec.log.batch import count_records
from spec.messages.alter_partition import AlterPartitionRequest
from spec.messages.broker_registration import BrokerRegistrationRequest
from spec.messages.fetch import NO_LIMIT, FetchRequest, FetchResponse
from spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from spec.metadata import local_change, partition_of
from spec.step import SendToController
from spec.values import NO_BROKER_EPOCH, Error, Offset
from tests.simulation.carrying_out import Acting
from tests.simulation.parties import ISR, LIFECYCLE, PARTITION, Message, Node
from tests.simulation.setup import Setup
from tests.simulation.state import Violation
from tests.simulation.storage.records import Stored, as_batches

MOST_IN_FLIGHT = 60

CONTROLLER_HANDLERS: dict[type, Any] = {
    BrokerRegistrationRequest: handle_broker_registration,
    AlterPartitionRequest: handle_alter_partition,
}


class Brokers(Acting):
    """Moves of brokers, and of the network between the parties. A move draws its choices from one number, `pick`."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.drawn = 0

    def pick(self, choices: int) -> int:
        """One of so many choices, from the number of the move."""
        self.drawn, choice = divmod(self.drawn, choices)
        return choice

    # ---- metadata

    def publish(self, node: Node) -> bool:
        """The broker takes some of the metadata that it lacks, merged, however much that is."""
        if not node.acts:
            return False
        missing = len(self.images) - node.next_image
        if missing <= 0:
            return False
        newest = self.pick(100) < self.setup.newest_image
        chosen = len(self.images) - 1 if newest else node.next_image + self.pick(missing)
        start = Offset(node.end_at_start)
        if not node.protocol.acts_on_metadata(node.told_to_recover, self.images[chosen].end_offset, start):
            chosen = len(self.images) - 1
            if not node.protocol.acts_on_metadata(node.told_to_recover, self.images[chosen].end_offset, start):
                return False
        image = self.images[chosen]
        change = local_change(partition_of(node.image, PARTITION), partition_of(image, PARTITION), node.id)
        node.image, node.next_image = image, chosen + 1
        if not node.published:
            node.published, node.is_new = True, False
            node.life = set_ready_to_unfence(node.life).state
        if self.say:
            self.say(f"{node.id} takes metadata: {change}")
        epoch = node.partition.leader_epoch
        self.look_at("change", node, change)
        self.carry_out(node, self.seen(apply_change(node.as_broker(), node.partition, change, node.now)))
        if node.partition.leader == node.id and node.partition.leader_epoch > epoch:
            self.check_leader_begins(node, node.partition.leader_epoch)
        return True

    def look_at(self, name: str, node: Node, *request: Any) -> None:
        """A place for oracles: what is about to be handled."""

    def seen(self, step: Any) -> Any:
        """A place for oracles: what the handler returned."""
        return step

    # ---- fetching

    def ask(self, node: Node) -> bool:
        """The follower's next request, unless one to the same leader is unanswered."""
        if not node.acts:
            return False
        fetcher = node.partition.fetcher
        if fetcher.leader in node.channels:
            return False
        if fetcher.delayed_until > node.now and self.pick(2):
            node.now = fetcher.delayed_until
        self.look_at("ask", node)
        before = node.partition
        step = self.seen(fetch_or_truncate(node.as_broker(), before, node.now))
        self.carry_out(node, step)
        return bool(step.effects) or step.state is not before

    def deliver(self, node: Node) -> bool:
        """A message arrives: the oldest, or any other."""
        if not self.flight:
            return False
        overtakes = self.pick(100) < self.setup.reordered
        message = self.flight.pop(self.pick(len(self.flight)) if overtakes else 0)
        if self.say:
            self.say(str(message))
        if message.channel < 0:
            self._deliver_control(message)
        elif message.answer is None:
            self._serve(message)
        else:
            self._take_answer(message)
        if len(self.flight) > MOST_IN_FLIGHT:
            self.lose(self.flight[self.pick(len(self.flight))])
        return True

    def _serve(self, message: Message) -> None:
        leader, sender = self.node(message.channel), self.node(message.source)
        if not leader.up or leader.run != message.server_run:
            self.lose(message)
            return
        if not leader.answers:
            self.lose(message)
            return
        broker, partition, request = leader.as_broker(), leader.partition, message.request
        if isinstance(request, FetchRequest):
            request = request._replace(max_records=self._whole_batches(leader, request.fetch.fetch_offset))
            self.look_at("fetch", leader, request)
            step = handle_fetch(broker, partition, request, leader.now)
        elif isinstance(request, OffsetForLeaderEpochRequest):
            self.look_at("find epoch", leader, request)
            step = handle_offset_for_leader_epoch(broker, partition, request, leader.now)
        else:
            assert isinstance(request, ListOffsetsRequest)
            self.look_at("list offsets", leader, request)
            step = handle_list_offsets(broker, partition, request, leader.now)
        answer = self.carry_out(leader, self.seen(step))
        if answer is None:
            raise Violation("PersistBeforeSend", f"broker {leader.id} does not answer {request}")
        if isinstance(answer, FetchResponse):
            answer = self._as_sent(answer, sender)
        message.answer = answer
        if self.waits_for(sender, message):
            self.flight.append(message)

    def _whole_batches(self, leader: Node, offset: int) -> int:
        """A limit in records with which an answer ends where a batch ends: that of the first batch, or of all."""
        log = leader.partition.local.log
        if self.pick(2) or not log.start_offset <= offset < log.end_offset:
            return NO_LIMIT
        records = log.records[offset - log.start_offset :]
        return as_batches(records)[0].record_count

    def _as_sent(self, answer: FetchResponse, sender: Node) -> FetchResponse:
        """The answer in whole batches: a leader whose log starts inside a batch sends an empty follower all of it."""
        records = answer.records
        if not records:
            return answer
        first, base = records[0], answer.base_offset
        log = sender.partition.local.log
        if isinstance(first, Stored) and first.position and log.start_offset == log.end_offset == base:
            begin = base - first.position
            if begin >= 0 and base <= len(self.committed):
                before = self.committed[begin:base]
                if [one.value for one in before] == list(range(first.value - first.position, first.value)):
                    return answer._replace(records=as_batches((*before, *records)), base_offset=Offset(begin))
        return answer._replace(records=as_batches(records))

    def _take_answer(self, message: Message) -> None:
        node, leader = self.node(message.source), self.node(message.channel)
        if not self.waits_for(node, message):
            return
        answer = message.answer
        if isinstance(answer, FetchResponse) and answer.error == Error.NONE and answer.records and self.pick(2):
            late = leaving_now(answer, leader.partition.local.log)
            if late is None:
                self.lose(message)
                return
            self.reached["late answers"] += count_records(late.records) > 0 and late.records != answer.records
            answer = late._replace(records=as_batches(late.records))
        del node.channels[message.channel]
        broker, partition = node.as_broker(), node.partition
        asked = Asked(*message.asked)
        if isinstance(answer, FetchResponse):
            self.look_at("fetched", node, asked, answer)
            step = handle_fetch_response(broker, partition, asked, answer, node.now)
        elif isinstance(answer, OffsetForLeaderEpochResponse):
            self.look_at("epoch found", node, asked, answer)
            step = handle_offset_for_leader_epoch_response(broker, partition, asked, answer, node.now)
        else:
            assert isinstance(answer, ListOffsetsResponse)
            self.look_at("offset listed", node, asked, answer)
            step = handle_list_offsets_response(broker, partition, asked, answer, node.now)
        self.carry_out(node, self.seen(step))

    # ---- registration, heartbeats, AlterPartition

    def communicate(self, node: Node) -> bool:
        """The broker's next registration or heartbeat, unless one is unanswered."""
        if not node.up or LIFECYCLE in node.channels:
            return False
        step = next_communication(node.life, Offset(node.image.end_offset - 1))
        self.look_at("communicate", node)
        self.seen(step)
        for effect in step.effects:
            assert isinstance(effect, SendToController)
            self.send(node, LIFECYCLE, effect.message)
        return True

    def propose(self, node: Node) -> bool:
        """The broker's oldest proposal is sent, unless one is unanswered. One that breaks off is sent again."""
        if not node.up or not node.proposals or not node.registered or ISR in node.channels:
            return False
        self.send(node, ISR, node.proposals[0])
        return True

    def _deliver_control(self, message: Message) -> None:
        if message.answer is None:
            self._ask_controller(message)
        elif self.waits_for(self.node(message.source), message):
            node = self.node(message.source)
            del node.channels[message.channel]
            if message.channel == ISR:
                request = node.proposals.pop(0)
                broker, answer = node.as_broker(), message.answer
                self.look_at("granted", node, request, answer)
                step = handle_alter_partition_response(broker, node.partition, request, answer, node.now)
                self.carry_out(node, self.seen(step))
            else:
                self.take_lifecycle_answer(node, message)

    def _ask_controller(self, message: Message) -> None:
        deposed = self.deposed is not None and self.pick(4) == 0
        request = message.request
        handler = CONTROLLER_HANDLERS.get(type(request), handle_broker_heartbeat)
        if deposed and self.pick(4) == 0:
            assert self.deposed is not None
            message.answer = refuse_as_inactive(self.deposed, request).effects[0].message  # type: ignore[union-attr]
        else:
            message.answer = self.decide(handler, request, deposed=deposed)
        if message.answer is None:
            if not deposed:
                raise Violation("AnswerAfterAppend", f"the controller does not answer {request}")
            self.lose(message)
            return
        node = self.node(message.source)
        if isinstance(request, BrokerRegistrationRequest):
            if message.answer.error == Error.NONE and not deposed:
                self._check_exclusion(node, message)
            if self.pick(10) == 1:
                again = Message(message.source, message.run, message.channel, 0, request)
                self.flight.append(again)
        if self.waits_for(node, message):
            self.flight.append(message)

    def _check_exclusion(self, node: Node, message: Message) -> None:
        topic, registration = self.topic, message.answer.broker_epoch
        newest = registration == self.image.end_offset - 1
        if not newest or topic is None or not self.keeps or not self.setup.eligible_leader_replicas:
            return
        unclean = message.request.previous_broker_epoch == NO_BROKER_EPOCH
        if unclean and (node.id in topic.isr or node.id in topic.elr):
            raise Violation("UncleanExclusion", f"broker {node.id} is registered anew: {topic}")

    def take_lifecycle_answer(self, node: Node, message: Message) -> None:
        """The answer to a registration or heartbeat."""
        registered = node.registered
        if isinstance(message.request, BrokerRegistrationRequest):
            self.look_at("registered", node, message.answer)
            step = handle_broker_registration_response(node.protocol, node.life, message.answer, node.now)
        else:
            self.look_at("heard", node, message.answer)
            step = handle_broker_heartbeat_response(node.protocol, node.life, message.answer, node.now)
        self.seen(step)
        node.life = step.state
        if not registered and node.registered and not node.acts_early:
            node.end_at_start = self.image.end_offset
        for _ in step.effects:
            self.shut_down(node)

    def shut_down(self, node: Node) -> None:
        """The broker stops in order."""
        raise NotImplementedError

    # ---- losses

    def break_connection(self, node: Node) -> bool:
        """A connection of the broker breaks: what it waits for on it does not come. The request may still arrive."""
        if not node.up or not node.channels:
            return False
        channel = sorted(node.channels)[self.pick(len(node.channels))]
        number = node.channels.pop(channel)
        if self.say:
            self.say(f"{node.id} loses its connection {channel}")
        self.flight = [
            message
            for message in self.flight
            if message.number != number or message.source != node.id or message.answer is None
        ]
        if channel > 0:
            self.no_answer(node)
        return True

    def lose(self, message: Message) -> None:
        """A message is lost, and its connection with it."""
        if message in self.flight:
            self.flight.remove(message)
        node = self.node(message.source)
        if self.waits_for(node, message):
            del node.channels[message.channel]
            if message.channel > 0:
                self.no_answer(node)

    def no_answer(self, node: Node) -> None:
        """The fetcher is told that a request failed."""
        self.look_at("no answer", node)
        self.carry_out(node, self.seen(on_no_answer(node.as_broker(), node.partition, node.now)))

    # ---- time

    def pass_time(self, node: Node) -> bool:
        """Time passes for one broker: it writes its checkpoints, and looks for followers that have fallen behind."""
        if not node.up:
            return False
        node.now += (1, 1000, 15_000, 15_000, 40_000)[self.pick(5)]
        if self.pick(2):
            if self.pick(2):
                node.disk.flushed = node.disk.end
            node.disk.checkpoints = checkpoint(node.partition.local, Offset(node.disk.flushed))
        if node.registered:
            self.look_at("shrink", node)
            self.carry_out(node, self.seen(consider_shrinking(node.as_broker(), node.partition, node.now)))
        return True

    def time_out(self, node: Node) -> bool:
        """Producers whose time is over are told so."""
        if not node.up or not node.partition.waiting:
            return False
        self.look_at("time out", node)
        self.carry_out(node, self.seen(expire_waiting(node.partition, node.now)))
        return True
