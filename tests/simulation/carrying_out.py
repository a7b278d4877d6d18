"""The effects of handlers, carried out in their order, each looked at on the way."""

from collections.abc import Callable
from typing import Any

from spec.broker.effects import (
    AnswerProducer,
    BatchesAppended,
    CloseConnection,
    LogDeleted,
    LogRestarted,
    LogTruncated,
    Persist,
    RebuildProducers,
)
from spec.broker.partition import Handled
from spec.broker.roles import producers_rebuilt
from spec.controller.state import AppendRecords, ControllerStep, check_append
from spec.log.record_log import RecordLog
from spec.metadata import partition_of, replay_all
from spec.step import Reply, Send, SendToController
from spec.values import NO_PRODUCER_ID, Epoch, Error
from tests.simulation.parties import PARTITION, Message, Node
from tests.simulation.properties import check_decision, check_replica
from tests.simulation.state import State, Violation
from tests.simulation.storage.disk import StoredWronglyError
from tests.simulation.storage.records import idempotent_batches

REMEMBERED = 5


class Acting(State):
    """The state, and how the effects of a step change it."""

    # ---- brokers

    def carry_out(self, node: Node, step: Handled[RecordLog]) -> Any:
        """Store, send and answer what a handler of a broker returned; the reply, if there is one."""
        self.calls += 1
        before = node.partition
        reply, told, rebuild = None, False, False
        for effect in step.effects:
            match effect:
                case Persist(change):
                    if told:
                        raise Violation("PersistBeforeSend", f"broker {node.id}: {step.effects}")
                    self._store(node, change)
                case Reply(message):
                    if reply is not None:
                        raise Violation("PersistBeforeSend", f"broker {node.id} answers twice: {step.effects}")
                    reply, told = message, True
                case AnswerProducer():
                    told = told or effect.response.error == Error.NONE
                    self._answer_producer(node, step.state, effect)
                case Send(leader, message):
                    self.send(node, leader, message)
                    told = True
                case SendToController(message):
                    node.proposals.append(message)
                    told = True
                case RebuildProducers():
                    rebuild = True
                case CloseConnection(request):
                    self.requests.pop(request, None)
        node.partition = step.state
        if rebuild:
            batches = idempotent_batches(node.disk.records, node.disk.start)
            node.partition = producers_rebuilt(node.partition, batches)
        if node.partition is not before or step.effects:
            check_replica(self, node, before)
            self._check_producers(node)
        return reply

    def _store(self, node: Node, change: Any) -> None:
        base = node.disk.end
        try:
            node.disk.store(change)
        except StoredWronglyError as wrong:
            raise Violation("PersistRebuildsLog", f"broker {node.id}: {wrong}") from wrong
        if isinstance(change, BatchesAppended):
            for batch in change.batches:
                self._remember(node, batch, base)
                base += batch.record_count
            return
        if isinstance(change, LogDeleted):
            node.sequences = {}
        elif isinstance(change, LogTruncated | LogRestarted):
            self.learn_producers(node)
            self.reached["truncations"] += 1

    def learn_producers(self, node: Node) -> None:
        """What the stored batches say of their producers: after a truncation, and when the log is opened."""
        node.sequences = {}
        for batch in idempotent_batches(node.disk.records, node.disk.start):
            self._remember(node, batch, batch.base_offset)

    def _remember(self, node: Node, batch: Any, base_offset: int) -> None:
        if batch.producer_id == NO_PRODUCER_ID:
            return
        epoch, known = node.sequences.get(batch.producer_id, (None, ()))
        kept = known if epoch == batch.producer_epoch else ()
        entry = (batch.first_sequence, batch.record_count, base_offset)
        node.sequences[batch.producer_id] = (batch.producer_epoch, (*kept, entry)[-REMEMBERED:])

    def _check_producers(self, node: Node) -> None:
        if not node.sequences and not node.partition.producers:
            return
        known = {
            entry.producer_id: (
                entry.producer_epoch,
                tuple([(one.first_sequence, one.record_count, one.base_offset) for one in entry.batches]),
            )
            for entry in node.partition.producers
        }
        if known != node.sequences:
            raise Violation("ProducersFollowLog", f"broker {node.id} knows {known}, its log says {node.sequences}")

    def _answer_producer(self, node: Node, after: Any, effect: AnswerProducer) -> None:
        batch, acks = self.requests.pop(effect.request, (None, 0))
        if batch is None:
            raise Violation("AnswersAreStored", f"broker {node.id} answers {effect}, which nobody waits for")
        if effect.response.error != Error.NONE:
            return
        disk, base = node.disk, effect.response.base_offset
        for place, record in enumerate(batch.records):
            offset = base + place
            if offset < disk.start:
                continue
            if offset >= disk.end or disk.records[offset - disk.start].value != record.value:
                raise Violation("AnswersAreStored", f"broker {node.id} answers {effect}; stored is {disk.as_log()}")
            if acks == -1:
                if offset >= after.local.high_watermark:
                    raise Violation("AcknowledgedIsCommitted", f"broker {node.id} answers {effect}: {after}")
                self.acknowledged[offset] = record.value
        self.reached["acknowledged"] += acks == -1

    # ---- messages

    def send(self, node: Node, channel: int, request: Any) -> Message:
        """Put a request on a connection of a broker, where it waits for its answer."""
        self.messages += 1
        message = Message(node.id, node.run, channel, self.messages, request)
        node.channels[channel] = self.messages
        self.flight.append(message)
        if channel > 0:
            fetcher = node.partition.fetcher
            message.asked = (fetcher.leader_epoch, fetcher.fetch_offset)
            message.server_run = self.node(channel).run
        return message

    def waits_for(self, node: Node, message: Message) -> bool:
        """Whether the connection is still there on which an answer would come."""
        return node.up and node.run == message.run and node.channels.get(message.channel) == message.number

    # ---- the controller

    def decide(self, handler: Callable[..., ControllerStep], *request: Any, deposed: bool = False) -> Any:
        """Let the controller handle something, or the one that it has replaced; the answer, if it comes to one."""
        self.calls += 1
        state = self.deposed if deposed else self.controller
        step = handler(self.party, state, *request, self.time)
        assert state is not None
        self.look_at_decision(handler, state, request, step)
        answer, committed = None, state.image
        for effect in step.effects:
            if isinstance(effect, AppendRecords):
                if answer is not None:
                    raise Violation("AnswerAfterAppend", f"{step.effects}")
                if check_append(self.controller.controller_epoch, self.image.end_offset, effect) != Error.NONE:
                    if not deposed:
                        raise Violation("MetadataLogIsState", f"the metadata log refuses {effect}")
                    self.deposed = None
                    return None
                if deposed:
                    raise Violation("MetadataLogIsState", f"a deposed controller appends {effect}")
                committed = replay_all(committed, effect.records)
            elif isinstance(effect, Reply):
                answer = effect.message
        if step.state.image != committed:
            raise Violation("MetadataLogIsState", f"appended {step.effects}, and has {step.state.image}")
        if deposed:
            self.deposed = step.state
        else:
            self.controller = step.state
            if committed is not state.image:
                self.take_image()
        return answer

    def look_at_decision(self, handler: Any, state: Any, request: Any, step: ControllerStep) -> None:
        """A place for oracles."""

    def take_image(self) -> None:
        """The metadata log has grown."""
        before, image = self.topic, self.controller.image
        self.images.append(image)
        self.topic = topic = partition_of(image, PARTITION)
        if topic is not None and topic != before:
            self.reached["elections"] += before is not None and topic.leader_epoch != before.leader_epoch
            check_decision(self, before, topic)
            if self.say:
                self.say(f"   partition {topic}")

    def check_leader_begins(self, node: Node, epoch: Epoch) -> None:
        """A leader that begins holds what leaders of earlier epochs have committed."""
        if not self.keeps:
            return
        log = node.partition.local.log
        end = max([end for one, end in self.commit_ends.items() if one < epoch], default=0)
        if log.start_offset < end and log.records[: end - log.start_offset] != self.committed[log.start_offset : end]:
            raise Violation(
                "CommittedOnLaterLeaders", f"broker {node.id} begins epoch {epoch} with {log}: {self.committed[:end]}"
            )
