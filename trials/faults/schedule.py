"""The schedule of faults: drawn from a seed, and from nothing else."""

import random
from collections.abc import Sequence

from kspec.trials.faults.kinds import KINDS, ProcessFault

FIRST_S, BETWEEN_S, LONG_S = 1.0, (0.5, 3.0), (1.0, 8.0)


def schedule(
    seed: int, nodes: Sequence[str], brokers: Sequence[str], seconds: float, kinds: Sequence[str]
) -> list[ProcessFault]:
    """The faults of a round: some at the same time, but never two on one node."""
    choose = random.Random(f"faults {seed}")
    at, found, busy = FIRST_S, [], dict.fromkeys((*nodes, "links"), 0.0)
    while at < seconds:
        kind = choose.choice(list(kinds))
        length = round(choose.uniform(*LONG_S), 1)
        fault = KINDS[kind].drawn(choose, ProcessFault(round(at, 1), length, kind), nodes, brokers)
        engaged = [fault.node] if fault.node else ["links"] if fault.links else list(nodes)
        if all(busy[name] <= at for name in engaged):
            found.append(fault)
            busy |= dict.fromkeys(engaged, at + length)
        at += choose.uniform(*BETWEEN_S)
    return found
