"""The controllers as a broker knows them: where each is reached, and which of them is the active one.

Fetches of the metadata log tell: every voter that answers one says who leads, if it knows. Until then voters are asked in
turn. Kafka: `KafkaRaftClient` as an observer, `RaftControllerNodeProvider`.
"""

from collections.abc import Callable, Mapping

from kspec.impl.config.voters import Place
from kspec.spec.values import NO_LEADER


class KnownControllers:
    """The controllers by their ids. `on_change` is called when others are asked from now on."""

    def __init__(self, places: Mapping[int, Place]) -> None:
        self._places = dict(places)
        self._named = frozenset(one for one in places if one >= 0)  # a bootstrap server has no id yet
        self._order = sorted(places)
        self._turn = 0
        self._leader: int = NO_LEADER
        self.on_change: Callable[[], object] = lambda: None

    @property
    def are_several(self) -> bool:
        """Whether there is more than one."""
        return len(self._places) > 1

    @property
    def asked(self) -> int:
        """The controller that is asked: the active one, or the one whose turn it is."""
        return self._order[self._turn] if self._leader == NO_LEADER else self._leader

    @property
    def place(self) -> Place:
        """The address of the controller that is asked."""
        return self._places[self.asked]

    def hear(self, leader: int, place: Place | None = None) -> None:
        """Somebody says who leads, and where that one is reached, or that he does not know it.

        Controllers come and go (KIP-853), and settings may name none of those that there are. One that they name is reached
        where they say: behind a proxy, for instance.
        """
        if place is not None and leader not in self._named | {NO_LEADER} and self._places.get(leader) != place:
            self._places[leader] = place
            self._order = sorted(self._places)
        if leader == NO_LEADER or leader not in self._places:
            self.lose()
            return
        before, self._leader = self.asked, leader
        self._turn = self._order.index(leader)
        if before != leader:
            self.on_change()

    def lose(self) -> None:
        """The one that was asked does not answer, or does not know who leads: it is the turn of the next one."""
        self._leader = NO_LEADER
        if self.are_several:
            self._turn = (self._turn + 1) % len(self._order)
            self.on_change()
