"""Which faults happen when: drawn from a seed, and from nothing else."""

import random
from collections.abc import Sequence
from typing import NamedTuple

from impl.faults.links import CLIENTS, Link

KINDS = {
    "kill": "a node is killed (SIGKILL) and stays away for a while",
    "pause": "a node stands still (SIGSTOP) and goes on",
    "cut": "nodes and clients are parted in two groups that do not reach each other",
    "one-way": "what one node or the clients send to another does not arrive",
    "disk": "no file of a broker may grow, as on a full disk; then it is killed and started again",
    "clock": "the clock of a node jumps, forward or back, and later it is right again",
    "roll": "all brokers are stopped in order and started again, one after the other",
}
"""All faults. A clock jumps only where the program lets its clock be moved: `kspec broker` does, Apache Kafka does not."""

CLOCK = "clock"
FIRST_S, BETWEEN_S, LONG_S = 1.0, (0.5, 3.0), (1.0, 8.0)
MOST_JUMP_S = 20.0


class Fault(NamedTuple):
    """A fault: when it begins (s after the load), how long it lasts, and whom it is about: a node, or links."""

    at: float
    seconds: float
    kind: str
    node: str = ""
    links: tuple[Link, ...] = ()
    jump: float = 0.0
    """By how many seconds a clock is off."""

    def __str__(self) -> str:
        about = self.node or _sides(self.links)
        jump = f" by {self.jump:+.1f} s" if self.jump else ""
        lasts = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.kind} {about}".rstrip() + f"{jump} at {self.at:.1f} s{lasts}"


def schedule(seed: int, nodes: Sequence[str], brokers: Sequence[str], seconds: float, kinds: Sequence[str]) -> list[Fault]:
    """The faults of a round: some at the same time, but never two of one node."""
    choose = random.Random(f"faults {seed}")
    at, found, busy = FIRST_S, [], dict.fromkeys((*nodes, "links"), 0.0)
    while at < seconds:
        kind = choose.choice(list(kinds))
        length = round(choose.uniform(*LONG_S), 1)
        fault = _fault(choose, kind, round(at, 1), length, nodes, brokers)
        engaged = [fault.node] if fault.node else ["links"] if fault.links else list(nodes)
        if all(busy[name] <= at for name in engaged):
            found.append(fault)
            busy |= dict.fromkeys(engaged, at + length)
        at += choose.uniform(*BETWEEN_S)
    return found


def _fault(
    choose: random.Random, kind: str, at: float, length: float, nodes: Sequence[str], brokers: Sequence[str]
) -> Fault:
    match kind:
        case "kill" | "pause":
            return Fault(at, length, kind, choose.choice(list(nodes)))
        case "disk":
            return Fault(at, length, kind, choose.choice(list(brokers)))
        case "clock":
            jump = round(choose.uniform(-MOST_JUMP_S, MOST_JUMP_S), 1)
            return Fault(at, length, kind, choose.choice(list(nodes)), jump=jump)
        case "one-way":
            first, second = choose.sample([*nodes, CLIENTS], 2)
            return Fault(at, length, kind, links=((first, second),))
        case "cut":
            everybody = [*nodes, CLIENTS]
            here = set(choose.sample(everybody, choose.randint(1, len(everybody) // 2)))
            there = [one for one in everybody if one not in here]
            between = [(one, other) for one in everybody if one in here for other in there]
            return Fault(
                at, length, kind, links=tuple(link for one, other in between for link in ((one, other), (other, one)))
            )
        case _:
            return Fault(at, 0.0, kind)


def _sides(links: Sequence[Link]) -> str:
    if len(links) == 1:
        return f"{links[0][0]} to {links[0][1]}"
    here, there = ([*dict.fromkeys(link[side] for link in links[::2])] for side in (0, 1))
    return f"{'+'.join(here)} from {'+'.join(there)}" if links else ""
