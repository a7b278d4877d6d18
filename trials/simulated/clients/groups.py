"""Clients of a group's coordinator in the simulated cluster; and simple consumers, which commit without being members.

Each offset is a number that no client has committed before, so that a reader can tell whose commit it is; no record needs to
have that offset.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence

from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from kspec.trials.history.commits import Commit, GroupHistory
from kspec.trials.simulated.clients.client import ClientEnvironment, SimClient
from kspec.trials.simulated.history import BrokenPromiseError

ANSWER_MS = 8_000
"""The client's own timeout for a response (ms)."""

READS = 0.2
"""The share of OffsetFetch among a client's requests."""

GROUP_KEY_TYPE = 0
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
        self, api: str, message: Message, take: Callable[[Message], None], timeout_ms: int = ANSWER_MS
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
