"""Members of groups in the simulated cluster, by the classic protocol; and simple consumers, which commit without a group.

A member joins, gets partitions from the group's leader, commits offsets of these, and reads the committed offsets. Now and
then it pauses for longer than its session, leaves, or starts anew without having left. Each offset is a number that no
client has committed before, so that a reader can tell whose commit it is; no record needs to have that offset.
"""

import struct
from abc import abstractmethod
from collections.abc import Callable, Sequence

from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from kspec.trials.history.commits import Commit, GroupHistory
from kspec.trials.simulated.clients.client import ClientEnvironment, SimClient
from kspec.trials.simulated.history import BrokenPromiseError

SESSION_MS, REBALANCE_MS, JOIN_MS = 2_000, 3_000, 8_000
"""The session timeout, the rebalance timeout, and the client's own timeout for a response."""

COMMITS, READS = 0.5, 0.2
"""The shares of OffsetCommit and OffsetFetch among a member's requests, beside heartbeats."""

STANDS_STILL, LEAVES, STARTS_ANEW = 0.01, 0.01, 0.01
"""The shares of turns in which it pauses, leaves, or starts anew instead."""

LONGEST_STILL_MS = 2 * SESSION_MS
GROUP_KEY_TYPE = 0
PROTOCOL_TYPE, PROTOCOL = "consumer", "range"
NO_GENERATION = -1

REFUSALS = frozenset(
    {
        Error.ILLEGAL_GENERATION,
        Error.UNKNOWN_MEMBER_ID,
        Error.FENCED_INSTANCE_ID,
        Error.REBALANCE_IN_PROGRESS,
        Error.INVALID_GROUP_ID,
        Error.OFFSET_METADATA_TOO_LARGE,
        Error.GROUP_ID_NOT_FOUND,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.STALE_MEMBER_EPOCH,
    }
)
"""Errors of a commit by which it is certainly not stored. After another one, or without a response, its fate is unknown."""

LOSES_COORDINATOR = frozenset({Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS})
LOSES_IDENTITY = frozenset({Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID})
LOSES_GENERATION = LOSES_IDENTITY | {Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION}


def subscription(topic: str) -> bytes:
    """The topics that a consumer reads. **Kafka:** `ConsumerProtocol.serializeSubscription`, version 0."""
    name = topic.encode()
    return struct.pack(f">hih{len(name)}si", 0, 1, len(name), name, -1)


class GroupClient(SimClient):
    """A client of a group's coordinator."""

    def __init__(self, client_id: int, environment: ClientEnvironment, history: GroupHistory) -> None:
        super().__init__(client_id, environment)
        self.history = history
        self._coordinator = -1
        self.topic_id: bytes | None = None
        self.has_settled = False
        """Whether it has committed and read since `settle`."""

    def start(self) -> None:
        """Begin."""
        self._find_coordinator()

    def settle(self) -> None:
        """Stop pausing and leaving; commit and read once more, to see that the group works."""
        self.stopped, self.has_settled = True, False

    # ---- the coordinator

    def _find_coordinator(self) -> None:
        if self.topic_id is None:
            self.ask_for_topic(self._learn_topic)
            return
        group_id = self.history.group_id
        message = Message(key=group_id, key_type=GROUP_KEY_TYPE, coordinator_keys=[group_id])
        self.ask(self.random.choice(self.brokers), "FindCoordinator", message, self._learn_coordinator)

    def _learn_topic(self, answer: Message | None) -> None:
        if answer is None or answer.topics[0].error_code:
            self.later(self._find_coordinator)
            return
        self.topic_id = bytes(answer.topics[0].topic_id)
        self._find_coordinator()

    def _learn_coordinator(self, answer: Message | None) -> None:
        if answer is None or answer.coordinators[0].error_code:
            self.later(self._find_coordinator)
            return
        self._coordinator = answer.coordinators[0].node_id
        self.go()

    def ask_coordinator(
        self, api: str, message: Message, take: Callable[[Message], None], timeout_ms: int = JOIN_MS
    ) -> None:
        """Send a request to the coordinator; without a response, or if it is none any more, find it again."""

        def taken(answer: Message | None) -> None:
            if answer is None:
                self.later(self._find_coordinator)
            else:
                take(answer)

        self.ask(self._coordinator, api, message, taken, timeout_ms)

    def after(self, error: Error) -> None:
        """Go on after a response."""
        if error in LOSES_COORDINATOR:
            self.later(self._find_coordinator)
        else:
            self.go_on()

    # ---- offsets

    def _topics(self, **fields: object) -> list[Message]:
        return [Message(name=self.topic, topic_id=self.topic_id, **fields)]

    def commit(
        self,
        partitions: Sequence[int],
        take: Callable[[Error], None],
        member_id: str = "",
        generation: int = NO_GENERATION,
        instance_id: str | None = None,
    ) -> None:
        """Commit the next offset of each of these partitions; `take` gets the first error."""
        commits = {index: self.history.send(index, member_id, generation) for index in partitions}
        wanted = [
            Message(partition_index=index, committed_offset=commit.offset, committed_leader_epoch=-1, committed_metadata="")
            for index, commit in commits.items()
        ]
        message = Message(
            group_id=self.history.group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=self._topics(partitions=wanted),
        )

        def taken(answer: Message) -> None:
            errors = {one.partition_index: Error(one.error_code) for one in answer.topics[0].partitions}
            for index, commit in commits.items():
                self._note(commit, errors[index])
            take(max(errors.values(), key=lambda error: error != Error.NONE))

        self.ask_coordinator("OffsetCommit", message, taken)

    def _note(self, commit: Commit, error: Error) -> None:
        if error == Error.NONE:
            self._hold("FencedCommit", self.history.offsets_of(commit).acknowledge(commit))
        elif error in REFUSALS:
            self.history.offsets_of(commit).refuse(commit)

    def read(self, partitions: Sequence[int], take: Callable[[Error], None]) -> None:
        """Read the committed offsets, and check them against the history."""
        began = {index: self.history.offsets[index].begin_to_read() for index in partitions}
        group = Message(group_id=self.history.group_id, topics=self._topics(partition_indexes=list(partitions)))

        def taken(answer: Message) -> None:
            (found,) = answer.groups
            error = Error(found.error_code)
            for one in found.topics[0].partitions if error == Error.NONE else ():
                index = one.partition_index
                error = error if error != Error.NONE else Error(one.error_code)
                if one.error_code == 0:
                    wrong = self.history.offsets[index].read(began[index], one.committed_offset)
                    self._hold("LostCommit", wrong and f"partition {index}: {wrong}")
            take(error)

        self.ask_coordinator("OffsetFetch", Message(groups=[group], require_stable=True), taken)

    def _hold(self, name: str, wrong: str | None) -> None:
        if wrong:
            raise BrokenPromiseError(name, f"group {self.history.group_id}: {wrong}")

    @abstractmethod
    def go(self) -> None:
        """Send the next request to the coordinator."""


class SimpleConsumer(GroupClient):
    """A client that commits offsets of some partitions, and reads them, without being a member.

    **Kafka:** `KafkaConsumer.assign` with `commitSync`.
    """

    def __init__(
        self, client_id: int, environment: ClientEnvironment, history: GroupHistory, partitions: Sequence[int]
    ) -> None:
        super().__init__(client_id, environment, history)
        self._partitions = list(partitions)
        self._has_committed = False

    def go(self) -> None:
        """Commit, or read."""
        if self.has_settled:
            return
        reads = self._has_committed if self.stopped else self.random.random() < READS
        if reads:
            self.read(self._partitions, self._after_reading)
        else:
            self._has_committed = False
            self.commit(self._partitions, self._after_commit)

    def settle(self) -> None:
        """Go on until a commit from now on is stored and read."""
        super().settle()
        self._has_committed = False

    def _after_commit(self, error: Error) -> None:
        self._has_committed = error == Error.NONE and self.stopped
        self.after(error)

    def _after_reading(self, error: Error) -> None:
        self.has_settled = self.stopped and error == Error.NONE
        self.after(error)


class MemberClient(GroupClient):
    """A member of a group; a static one if it has an instance id."""

    def __init__(
        self, client_id: int, environment: ClientEnvironment, history: GroupHistory, instance_id: str | None
    ) -> None:
        super().__init__(client_id, environment, history)
        self._instance_id = instance_id
        self._member_id = ""
        self._former_id = ""
        """The member id of a static member before it started anew."""
        self.generation = NO_GENERATION
        self.assigned: tuple[int, ...] = ()
        self._has_committed = False
        self._marks = 0
        self._earlier: tuple[str, int, tuple[int, ...]] | None = None
        """Its state in the previous generation: member id, generation, partitions."""

    @property
    def is_in(self) -> bool:
        """Whether it has an assignment, as far as it knows."""
        return self.generation != NO_GENERATION

    def go(self) -> None:
        """Join, or take a member's next turn."""
        if not self.is_in:
            self._join()
        elif self._earlier is not None:
            self._commit_as_before()
        elif self.stopped:
            self._settle_down()
        else:
            self._act()

    def _act(self) -> None:
        drawn = self.random.random()
        if drawn < STANDS_STILL:
            self.later(self.go, self.random.randint(SESSION_MS // 2, LONGEST_STILL_MS))
        elif drawn < STANDS_STILL + LEAVES:
            self._leave()
        elif drawn < STANDS_STILL + LEAVES + STARTS_ANEW:
            self._start_anew()
        elif drawn < 1 - COMMITS - READS or not self.assigned:
            self._beat()
        elif drawn < 1 - COMMITS:
            self.read(self.assigned, self.after)
        else:
            some = self.random.sample(self.assigned, self.random.randint(1, len(self.assigned)))
            self._commit_as_member(some, self.after)

    def settle(self) -> None:
        """Stop pausing and leaving; go on until all members have committed in one generation."""
        super().settle()
        self._has_committed = False

    def _settle_down(self) -> None:
        """Commit each assigned partition once, read all, and go on with heartbeats."""
        if self.has_settled:
            self._beat()
        elif self.assigned and not self._has_committed:
            self._commit_as_member(self.assigned, self._after_commit)
        else:
            self.read(list(self.history.offsets), self._after_reading)

    def _after_commit(self, error: Error) -> None:
        self._has_committed = error == Error.NONE
        self.after(error)

    def _after_reading(self, error: Error) -> None:
        self.has_settled = error == Error.NONE
        self.after(error)

    # ---- membership

    def after(self, error: Error) -> None:
        """Go on after a response; some errors end the membership."""
        if error in LOSES_GENERATION:
            self._drop_out()
        if error in LOSES_IDENTITY:
            self._member_id = ""
        super().after(error)

    def _drop_out(self) -> None:
        if self.assigned:
            self._earlier = (self._member_id, self.generation, self.assigned)
        self.generation, self.assigned = NO_GENERATION, ()
        self.has_settled = self._has_committed = False

    def _commit_as_member(self, partitions: Sequence[int], take: Callable[[Error], None]) -> None:
        self.commit(partitions, take, self._member_id, self.generation, self._instance_id)

    def _commit_as_before(self) -> None:
        """Commit as a member of the previous generation, as a thread does that has not noticed the new one: in vain."""
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

    def _join(self) -> None:
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
            self._join()
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
        self.assigned = tuple(partitions)
        self._hold("OneAssignment", self.history.assign(generation, mark.decode()))

    def _beat(self) -> None:
        message = self._identified(generation_id=self.generation)
        self.ask_coordinator("Heartbeat", message, lambda answer: self.after(Error(answer.error_code)))

    def _leave(self) -> None:
        """Leave, whatever the answer, and come back later as another member."""
        leaving = Message(member_id=self._member_id, group_instance_id=self._instance_id, reason=None)
        message = Message(group_id=self.history.group_id, member_id=self._member_id, members=[leaving])
        self._drop_out()
        self._member_id = self._former_id = ""
        self.ask_coordinator("LeaveGroup", message, lambda answer: self.go_on())

    def _start_anew(self) -> None:
        """As a process that was killed: it knows its instance id only."""
        self._drop_out()
        if self._instance_id is not None:
            self._former_id = self._member_id or self._former_id
        self._member_id = ""
        self.go_on()
