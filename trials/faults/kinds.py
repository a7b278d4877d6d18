"""Kinds of faults in a cluster of processes: a class for each."""

import asyncio
import contextlib
import resource
from collections.abc import Coroutine, Mapping, Sequence
from random import Random
from typing import NamedTuple, Protocol

from kspec.trials.cluster.clocks import move_clock
from kspec.trials.cluster.plan import ClusterError
from kspec.trials.cluster.supervisor import ClusterSupervisor
from kspec.trials.fault_kind import FaultKind
from kspec.trials.faults.controllers.voters import VoterOperator
from kspec.trials.faults.links import CLIENTS, Link, Links

MOST_JUMP_S = 20.0
FAR_S = (60.0, 3600.0, 20 * 86_400.0)
"""Long jumps of a clock (s). No setting keeps a producer's state for more than 24.8 days after its last record."""

DRIFTS = 1 / 3
"""The share of clock faults that drift instead of jumping."""

STEPS_OF_DRIFT = 20
"""The number of steps in which a clock drifts."""

NOTHING_MORE = 1
"""The size (bytes) that no file may exceed while the disk is full."""


class ProcessFault(NamedTuple):
    """A fault: its beginning (s after the load's), its length (s), and its node or links."""

    at: float
    seconds: float
    kind: str
    node: str = ""
    links: tuple[Link, ...] = ()
    jump: float = 0.0
    """The error of the clock, in seconds."""
    drifts: bool = False
    """Whether the clock drifts to this error instead of jumping."""

    def __str__(self) -> str:
        about = self.node or _sides(self.links)
        jump = f" by {self.jump:+.1f} s{' by and by' if self.drifts else ''}" if self.jump else ""
        lasts = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.kind} {about}".rstrip() + f"{jump} at {self.at:.1f} s{lasts}"


class ProcessSite(Protocol):
    """The place where faults happen: the processes, and the links between them."""

    cluster: ClusterSupervisor
    links: Links

    def begin(self, work: Coroutine[None, None, None]) -> None:
        """Begin with a part of a fault that takes time."""


class NodeFault(FaultKind):
    """A fault of a cluster of processes."""

    def __init__(self, site: ProcessSite, fault: ProcessFault) -> None:
        self.site, self.fault, self.cluster = site, fault, site.cluster

    @classmethod
    def drawn(cls, choose: Random, fault: ProcessFault, nodes: Sequence[str], brokers: Sequence[str]) -> ProcessFault:
        """A fault of this kind, with its node or links."""
        return fault._replace(node=choose.choice(list(nodes)))


class NodeKill(NodeFault):
    """A node is killed, and later started."""

    words = "a node is killed (SIGKILL) and stays away for a while"

    def act(self) -> bool:
        """Kill it."""
        self.cluster.held.add(self.fault.node)
        self.cluster.processes[self.fault.node].kill()
        return True

    def undo(self) -> None:
        """Let it start."""
        self.cluster.held.discard(self.fault.node)


class NodePause(NodeFault):
    """A node is paused and resumed."""

    words = "a node is paused (SIGSTOP) and resumed"

    def act(self) -> bool:
        """Pause it."""
        self.cluster.processes[self.fault.node].pause()
        return True

    def undo(self) -> None:
        """Resume it."""
        self.cluster.processes[self.fault.node].resume()


class NetworkCut(NodeFault):
    """Two groups of nodes and clients do not reach each other."""

    words = "a network partition: two groups of nodes and clients do not reach each other"

    @classmethod
    def drawn(cls, choose: Random, fault: ProcessFault, nodes: Sequence[str], brokers: Sequence[str]) -> ProcessFault:
        """Two groups."""
        everybody = [*nodes, CLIENTS]
        here = set(choose.sample(everybody, choose.randint(1, len(everybody) // 2)))
        there = [one for one in everybody if one not in here]
        between = [(one, other) for one in everybody if one in here for other in there]
        return fault._replace(links=tuple(link for one, other in between for link in ((one, other), (other, one))))

    def act(self) -> bool:
        """Cut the links."""
        self.site.links.cut(self.fault.links)
        return True

    def undo(self) -> None:
        """Mend them."""
        self.site.links.mend(self.fault.links)


class OneWayCut(NetworkCut):
    """Messages do not arrive one way."""

    words = "messages from one node or the clients to another do not arrive"

    @classmethod
    def drawn(cls, choose: Random, fault: ProcessFault, nodes: Sequence[str], brokers: Sequence[str]) -> ProcessFault:
        """One way."""
        first, second = choose.sample([*nodes, CLIENTS], 2)
        return fault._replace(links=((first, second),))


class NoSpace(NodeFault):
    """A broker's disk is full, until there is space again and the broker is restarted, as an operator does."""

    words = "no file of a broker may grow, as on a full disk; then it is killed and started again"

    @classmethod
    def drawn(cls, choose: Random, fault: ProcessFault, nodes: Sequence[str], brokers: Sequence[str]) -> ProcessFault:
        """A broker."""
        return fault._replace(node=choose.choice(list(brokers)))

    def act(self) -> bool:
        """Let no file grow."""
        self.cluster.held.add(self.fault.node)
        self.cluster.processes[self.fault.node].limit_files(NOTHING_MORE)
        return True

    def undo(self) -> None:
        """Let files grow, and restart the broker."""
        process = self.cluster.processes[self.fault.node]
        process.limit_files(resource.RLIM_INFINITY)
        process.kill()
        self.cluster.held.discard(self.fault.node)


class WallClockFault(NodeFault):
    """A wall clock jumps or drifts, and later it is right again."""

    words = "the wall clock of a node jumps or drifts, forward or back, little or far, and later it is right again"

    @classmethod
    def drawn(cls, choose: Random, fault: ProcessFault, nodes: Sequence[str], brokers: Sequence[str]) -> ProcessFault:
        """A node and an error."""
        jump = round(choose.uniform(-MOST_JUMP_S, MOST_JUMP_S), 1)
        node = choose.choice(list(nodes))
        how = Random(f"clock {jump} {fault.at}")
        far = how.choice(FAR_S) * how.choice((-1, 1))
        return fault._replace(node=node, jump=how.choice((jump, far)), drifts=how.random() < DRIFTS)

    def act(self) -> bool:
        """Set the clock to a wrong time at once, or let it drift there."""
        if self.fault.drifts:
            self.site.begin(self._drift())
        else:
            self._set(1.0)
        return True

    def undo(self) -> None:
        """Set it right."""
        self._set(0.0)

    def _set(self, share: float) -> None:
        move_clock(self.cluster.processes[self.fault.node].node.clock, round(self.fault.jump * 1000 * share))

    async def _drift(self) -> None:
        for step in range(1, STEPS_OF_DRIFT):
            self._set(step / STEPS_OF_DRIFT)
            await asyncio.sleep(self.fault.seconds / STEPS_OF_DRIFT)
        self._set(1.0)


class ProcessRoll(NodeFault):
    """All brokers are restarted."""

    words, is_undone = "all brokers are stopped in order and started again, one after the other", False

    @classmethod
    def drawn(cls, choose: Random, fault: ProcessFault, nodes: Sequence[str], brokers: Sequence[str]) -> ProcessFault:
        """All, for as long as it takes."""
        return fault._replace(seconds=0.0)

    def act(self) -> bool:
        """Begin with the first broker."""
        self.site.begin(self._roll())
        return True

    async def _roll(self) -> None:
        for process in self.cluster.brokers:
            if process.serves and process.node.name not in self.cluster.held:
                with contextlib.suppress(ClusterError):  # another fault came between: it is started again as after any end
                    await self.cluster.restart(process.node.name)


class VoteTaken(NodeFault):
    """A controller votes no more for a while."""

    words = "a controller, which may be the active one, is removed from the voters, and added again (KIP-853)"
    is_undone = False

    @classmethod
    def drawn(cls, choose: Random, fault: ProcessFault, nodes: Sequence[str], brokers: Sequence[str]) -> ProcessFault:
        """A controller."""
        return fault._replace(node=choose.choice([name for name in nodes if name not in brokers]))

    def act(self) -> bool:
        """Begin to remove it."""
        self.site.begin(self._away())
        return True

    async def _away(self) -> None:
        operator, name = VoterOperator(self.cluster), self.fault.node
        if await operator.take_vote(name):
            await asyncio.sleep(self.fault.seconds)
            if not await operator.give_back(name):
                self.cluster.say(f"{name} does not vote again")


CLOCK, VOTERS = "clock", "voters"
KINDS: Mapping[str, type[NodeFault]] = {
    "kill": NodeKill,
    "pause": NodePause,
    "cut": NetworkCut,
    "one-way": OneWayCut,
    "disk": NoSpace,
    CLOCK: WallClockFault,
    "roll": ProcessRoll,
    VOTERS: VoteTaken,
}
"""All faults. A clock is moved by libfaketime; where that is missing, no clock is. Voters change where the log has them."""


def _sides(links: Sequence[Link]) -> str:
    if len(links) == 1:
        return f"{links[0][0]} to {links[0][1]}"
    here, there = ([*dict.fromkeys(link[side] for link in links[::2])] for side in (0, 1))
    return f"{'+'.join(here)} from {'+'.join(there)}" if links else ""
