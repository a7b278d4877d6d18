"""Members of groups in the simulated cluster, in either protocol.

A member joins, gets partitions, commits offsets of these, and reads the committed offsets. Now and then it pauses for longer
than its session, leaves, or starts anew without having left.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence

from kspec.spec.values import Error
from kspec.trials.history.commits import GroupHistory
from kspec.trials.simulated.clients.client import ClientEnvironment
from kspec.trials.simulated.clients.groups import READS, GroupClient

SESSION_MS, REBALANCE_MS = 2_000, 3_000
"""The session timeout, and the rebalance timeout (ms)."""

COMMITS = 0.5
"""The share of OffsetCommit among a member's requests, beside reads and heartbeats."""

STANDS_STILL, LEAVES, STARTS_ANEW = 0.01, 0.01, 0.01
"""The shares of turns in which it pauses, leaves, or starts anew instead."""

LONGEST_STILL_MS = 2 * SESSION_MS


class SimulatedMember(GroupClient):
    """A member of a group, whatever the protocol."""

    no_generation: int
    """The generation, or member epoch, of one that is not in its group."""

    def __init__(self, client_id: int, environment: ClientEnvironment, history: GroupHistory) -> None:
        super().__init__(client_id, environment, history)
        self.generation = self.no_generation
        """Its generation, or its member epoch."""
        self.owned: tuple[int, ...] = ()
        self._has_committed = False

    @property
    def is_in(self) -> bool:
        """Whether it is in its group, as far as it knows."""
        return self.generation > self.no_generation

    def go(self) -> None:
        """Join, or take a member's next turn."""
        if not self.is_in:
            self.join()
        elif self.stopped:
            self._settle_down()
        else:
            self._act()

    def _act(self) -> None:
        drawn = self.random.random()
        if drawn < STANDS_STILL:
            self.later(self.go, self.random.randint(SESSION_MS // 2, LONGEST_STILL_MS))
        elif drawn < STANDS_STILL + LEAVES:
            self.leave()
        elif drawn < STANDS_STILL + LEAVES + STARTS_ANEW:
            self.start_anew()
            self.go_on()
        elif drawn < 1 - COMMITS - READS or not self.owned:
            self.beat()
        elif drawn < 1 - COMMITS:
            self.read(self.owned, self.after)
        else:
            some = self.random.sample(self.owned, self.random.randint(1, len(self.owned)))
            self.commit_as_member(some, self.after)

    # ---- at the end

    def settle(self) -> None:
        """Stop pausing and leaving; go on until all members have what they are to have, and have committed and read."""
        super().settle()
        self._has_committed = False

    def _settle_down(self) -> None:
        """Commit each partition once, and read all; heartbeats in between say what has changed."""
        if self.has_settled or self.random.random() < READS:
            self.beat()
        elif self.owned and not self._has_committed:
            self.commit_as_member(self.owned, self._after_commit)
        else:
            self.read(list(self.history.offsets), self._after_reading)

    def _after_commit(self, error: Error) -> None:
        self._has_committed = error == Error.NONE
        self.after(error)

    def _after_reading(self, error: Error) -> None:
        self.has_settled = error == Error.NONE
        self.after(error)

    # ---- membership

    def begins_to_own(self, partitions: tuple[int, ...]) -> None:
        """Own these partitions from now on."""
        if partitions != self.owned:
            self.has_settled = self._has_committed = False
        self.owned = partitions

    def drop_out(self) -> None:
        """Be in the group no more."""
        self.generation, self.owned = self.no_generation, ()
        self.has_settled = self._has_committed = False

    @abstractmethod
    def join(self) -> None:
        """Ask to be in the group."""

    @abstractmethod
    def beat(self) -> None:
        """Send a heartbeat."""

    @abstractmethod
    def leave(self) -> None:
        """Leave the group, and come back later."""

    @abstractmethod
    def start_anew(self) -> None:
        """Forget all, as a process does that is killed."""

    @abstractmethod
    def commit_as_member(self, partitions: Sequence[int], take: Callable[[Error], None]) -> None:
        """Commit the next offset of each of these partitions in the present generation."""
