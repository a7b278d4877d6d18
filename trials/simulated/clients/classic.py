"""Members of groups in the simulated cluster by the classic protocol. A leader assigns the partitions."""

import struct
from collections.abc import Callable, Sequence

from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from kspec.trials.history.commits import GroupHistory
from kspec.trials.simulated.clients.client import ClientEnvironment
from kspec.trials.simulated.clients.groups import NO_GENERATION
from kspec.trials.simulated.clients.members import REBALANCE_MS, SESSION_MS, SimulatedMember

PROTOCOL_TYPE, PROTOCOL = "consumer", "range"
LOSES_IDENTITY = frozenset({Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID})
LOSES_GENERATION = LOSES_IDENTITY | {Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION}


def subscription(topic: str) -> bytes:
    """The topics that a consumer reads. **Kafka:** `ConsumerProtocol.serializeSubscription`, version 0."""
    name = topic.encode()
    return struct.pack(f">hih{len(name)}si", 0, 1, len(name), name, -1)


class ClassicMember(SimulatedMember):
    """A member of a group; a static one if it has an instance id."""

    no_generation = NO_GENERATION

    def __init__(
        self, client_id: int, environment: ClientEnvironment, history: GroupHistory, instance_id: str | None
    ) -> None:
        super().__init__(client_id, environment, history)
        self._instance_id = instance_id
        self._member_id = ""
        self._former_id = ""
        """The member id of a static member before it started anew."""
        self._marks = 0
        self._earlier: tuple[str, int, tuple[int, ...]] | None = None
        """Its state in the previous generation: member id, generation, partitions."""

    def go(self) -> None:
        """Join, commit as a thread does that has not noticed the new generation, or take a member's next turn."""
        if self.is_in and self._earlier is not None:
            self._commit_as_before()
        else:
            super().go()

    def after(self, error: Error) -> None:
        """Go on after a response; some errors end the membership."""
        if error in LOSES_GENERATION:
            self.drop_out()
        if error in LOSES_IDENTITY:
            self._member_id = ""
        super().after(error)

    def drop_out(self) -> None:
        """Be in no generation, and remember the one before."""
        if self.owned:
            self._earlier = (self._member_id, self.generation, self.owned)
        super().drop_out()

    def commit_as_member(self, partitions: Sequence[int], take: Callable[[Error], None]) -> None:
        """Commit the next offset of each of these partitions in the present generation."""
        self.commit(partitions, take, self._member_id, self.generation, self._instance_id)

    def _commit_as_before(self) -> None:
        """Commit as a member of the previous generation: in vain."""
        assert self._earlier is not None
        (member_id, generation, partitions), self._earlier = self._earlier, None
        if (member_id, generation) == (self._member_id, self.generation):
            self.go()
            return
        self.commit(partitions, lambda error: self.go_on(), member_id, generation, self._instance_id)

    def _identified(self, **fields: object) -> Message:
        return Message(
            group_id=self.history.group_id, member_id=self._member_id, group_instance_id=self._instance_id, **fields
        )

    def join(self) -> None:
        """Ask to be in the next generation."""
        message = self._identified(
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type=PROTOCOL_TYPE,
            protocols=[Message(name=PROTOCOL, metadata=subscription(self.topic))],
            reason=None,
        )
        self.ask_coordinator("JoinGroup", message, self._joined)

    def _joined(self, answer: Message) -> None:
        error = Error(answer.error_code)
        if error == Error.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            self.join()
        elif error != Error.NONE:
            self.after(error)
        else:
            self._member_id = answer.member_id
            self._sync(answer)

    def _sync(self, joined: Message) -> None:
        generation = joined.generation_id
        assignments: list[Message] = []
        if joined.leader == self._member_id and not joined.skip_assignment:
            self._marks += 1
            members = sorted(one.member_id for one in joined.members)
            partitions = list(self.history.offsets)
            assignments = [
                Message(
                    member_id=member,
                    assignment=f"{self.node_id}.{self._marks}:".encode() + bytes(partitions[place :: len(members)]),
                )
                for place, member in enumerate(members)
            ]
        message = self._identified(
            generation_id=generation, protocol_type=PROTOCOL_TYPE, protocol_name=PROTOCOL, assignments=assignments
        )

        def taken(answer: Message) -> None:
            error = Error(answer.error_code)
            if error == Error.NONE:
                self._take_assignment(generation, bytes(answer.assignment))
            self.after(error)

        self.ask_coordinator("SyncGroup", message, taken)

    def _take_assignment(self, generation: int, assignment: bytes) -> None:
        self.generation = generation
        if self._former_id not in ("", self._member_id):
            self.history.replace(self._former_id)
        if not assignment:  # the leader did not know of this member
            return
        mark, _, partitions = assignment.partition(b":")
        self.begins_to_own(tuple(partitions))
        self._hold("OneAssignment", self.history.assign(generation, mark.decode()))

    def beat(self) -> None:
        """Send a heartbeat."""
        message = self._identified(generation_id=self.generation)
        self.ask_coordinator("Heartbeat", message, lambda answer: self.after(Error(answer.error_code)))

    def leave(self) -> None:
        """Leave, whatever the answer, and come back later as another member."""
        leaving = Message(member_id=self._member_id, group_instance_id=self._instance_id, reason=None)
        message = Message(group_id=self.history.group_id, member_id=self._member_id, members=[leaving])
        self.drop_out()
        self._member_id = self._former_id = ""
        self.ask_coordinator("LeaveGroup", message, lambda answer: self.go_on())

    def start_anew(self) -> None:
        """As a process that was killed: it knows its instance id only."""
        self.drop_out()
        if self._instance_id is not None:
            self._former_id = self._member_id or self._former_id
        self._member_id = ""
