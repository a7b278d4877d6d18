"""The cost of a search on Spark, from what one was measured to cost, and what larger ones would: `benchmarks.spark` uses it.

The processor seconds of expanding go with the successors found; those of merging with the states that are received, and
with the states that are read again to strike out what is known, which are all that have been visited before the level. Each
has a part that goes with the number of tasks. Least squares over the levels of a run give what one of each costs.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

STATES_IN_A_JOB = 1 << 21
"""States of a partition that a job expands: `model_check.engines.spark.engine.MOST_AT_A_TIME`."""

CASES = [(10**10, 32), (10**10, 256), (10**11, 32), (10**11, 256)]
USED = 0.7
"""The part of the cores' time that is used: tasks of a level wait for its slowest."""

DISK, NETWORK = 500e6, 500e6
"""Bytes in a second that each machine of `CORES_OF_A_MACHINE` reads, and sends."""

CORES_OF_A_MACHINE = 8


class Costs(NamedTuple):
    """Processor seconds for each successor, received state, state read again, and task, and by how much the seconds of all
    processes exceed these; sizes in bytes; how spaces grow.
    """

    successor: float
    received: float
    read: float
    task: float
    overhead: float
    job: float
    successors: float
    sent: float
    sent_bytes: float
    stored_bytes: float
    depth_per_digit: float
    depth: int
    states: int
    share_of_widest: float


class Estimate(NamedTuple):
    """The estimated cost of a search of so many states."""

    states: int
    cores: int
    partitions: int
    depth: int
    jobs: int
    core_hours: float
    hours: float
    shuffled: float
    stored: float
    read: float


def costs_of(run: dict[str, Any], smaller: dict[str, Any], crowded: dict[str, Any], job: float) -> Costs:
    """The costs in a run.

    `smaller` is one that shows how the depth grows, `crowded` one with many partitions, so with more duplicates and smaller
    messages, as a cluster has them; `job` is what an empty job takes.
    """
    work = run["work"][1:]  # in the first job processes start
    before = np.cumsum([0, *run["levels"]])
    ones = np.ones(len(work))
    successors = np.array([entry["successors"] for entry in work], float)
    received = np.array([entry["sent_states"] for entry in work], float)
    read = np.array([before[entry["level"]] * entry["jobs"] for entry in work], float)
    expanding = _fit([successors, ones], [entry["expand_s"] for entry in work])
    merging = _fit([received, read, ones], [entry["merge_s"] for entry in work])
    digits = float(np.log10(run["distinct"] / smaller["distinct"]))
    new = sum(entry["new_states"] for entry in work)
    new_in_crowd = sum(entry["new_states"] for entry in crowded["work"])
    return Costs(
        expanding[0],
        merging[0],
        merging[1],
        (expanding[1] + merging[2]) / run["partitions"],
        max(1.0, (run["search_cpu_seconds"] - smaller["search_cpu_seconds"]) / (_of_tasks(run) - _of_tasks(smaller))),
        job,
        float(successors.sum()) / new,
        sum(entry["sent_states"] for entry in crowded["work"]) / new_in_crowd,
        sum(entry["sent_bytes"] for entry in crowded["work"]) / new_in_crowd,
        run["stored_bytes"] / run["distinct"],
        max(0.0, (run["depth"] - smaller["depth"]) / digits),
        run["depth"],
        run["distinct"],
        max(run["levels"]) / run["distinct"],
    )


def _of_tasks(run: dict[str, Any]) -> float:
    """The processor seconds of expanding and merging."""
    return float(sum(entry["expand_s"] + entry["merge_s"] for entry in run["work"]))


def _fit(columns: list[NDArray[np.float64]], seconds: list[float]) -> list[float]:
    """Costs that are not negative and fit best: those that come out negative are left out, one after the other."""
    known = np.array(seconds)
    left = list(range(len(columns)))
    while left:
        matrix = np.stack([columns[number] for number in left], axis=1)
        found = np.linalg.lstsq(matrix, known, rcond=None)[0]
        if (found >= 0).all():
            break
        del left[int(np.argmin(found * matrix.max(axis=0)))]
    costs = [0.0] * len(columns)
    for number, cost in zip(left, found if left else [], strict=True):
        costs[number] = float(cost)
    return costs


def estimate(costs: Costs, states: int, cores: int) -> Estimate:
    """The cost of a search of so many states on so many cores."""
    depth = round(costs.depth + costs.depth_per_digit * np.log10(states / costs.states))
    widest = states * costs.share_of_widest * costs.depth / depth
    partitions = min(1 << 16, max(2 * cores, 1 << int(np.ceil(np.log2(widest / STATES_IN_A_JOB)))))
    jobs = depth * int(np.ceil(states / depth / partitions / STATES_IN_A_JOB))
    read = states * jobs / 2
    core_seconds = states * (costs.successors * costs.successor + costs.sent * costs.received) + read * costs.read
    core_seconds = (core_seconds + jobs * partitions * costs.task) * costs.overhead
    machines = cores / CORES_OF_A_MACHINE
    moved = states * costs.sent_bytes / (machines * NETWORK) + read * costs.stored_bytes / (machines * DISK)
    seconds = core_seconds / cores / USED + moved + jobs * costs.job
    return Estimate(
        states,
        cores,
        partitions,
        depth,
        jobs,
        core_seconds / 3600,
        seconds / 3600,
        states * costs.sent_bytes,
        states * costs.stored_bytes,
        read * costs.stored_bytes,
    )


def in_words(costs: Costs) -> str:
    """The measured costs and the assumptions."""
    lines = [
        f"a core takes {costs.successor * 1e9:.0f} ns for a successor, {costs.received * 1e9:.0f} ns for a state received",
        f"visited states that a job reads again to strike out what is known: {costs.read * 1e9:.1f} ns each",
        f"each pair of tasks {costs.task * 1e3:.0f} ms; more states cost all processes {costs.overhead:.2f} times this",
        f"each job {costs.job:.2f} s besides",
        f"a new state: {costs.successors:.2f} successors; {costs.sent:.2f} states sent in {costs.sent_bytes:.1f} bytes, with"
        " the most partitions that were tried",
        f"{costs.stored_bytes:.1f} bytes stored for each state",
        f"the depth grows by {costs.depth_per_digit:.1f} levels for each factor of ten, as from the size before",
    ]
    assumed = (
        f"Assumed: that all this stays so; that {USED:.0%} of the cores' time is used; that {CORES_OF_A_MACHINE} cores of a"
        f" machine share {DISK / 1e6:.0f} MB/s of storage and {NETWORK / 1e6:.0f} MB/s of network, and neither is used while"
        " it computes; that nothing fails. No cluster was measured."
    )
    return "\n".join(["Estimates. Measured in the largest run:", "", *(f"- {line}" for line in lines), "", assumed])
