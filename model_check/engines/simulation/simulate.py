"""Compiled walks by the million: the compiled engine expands the states of many walkers, and each draws its next step."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kspec.model_check.core.exploration import Limits, NotebookTrace, Trace, without_garbage_collection
from kspec.model_check.core.model import Model, Property
from kspec.model_check.engines.compiled.kernels import ASK, SHARDS
from kspec.model_check.engines.compiled.layout import Fields, padded, wide_fields
from kspec.model_check.engines.compiled.search import CHUNK, Search, interrupts
from kspec.model_check.engines.compiled.store import StateStore
from kspec.model_check.engines.simulation.choice import POSTPONED, STUCK, choose, first_random
from kspec.model_check.engines.simulation.walks import End, Walk, instance_weights, trace_of, walks

WALKERS = 4 * CHUNK
"""The number of walks in progress at a time. A walk depends only on its number, so results do not depend on this."""

_Numbers = NDArray[np.int64]


class WalkPlan(NamedTuple):
    """The walks to take: how many, how long at most, under which seed, with which weights of actions by name.

    `first` is the number of the first walk. Seed and number determine a walk.
    """

    seed: int = 1
    traces: int = 1000
    depth: int = 100
    weights: Mapping[str, int] = {}
    first: int = 0


@dataclass(slots=True)
class WalkFinding:
    """The walks' result for a property: how many violated it, if it is `always`, or reached it, if it is `sometimes`.

    For an `always`, `walk` is the number of the first among the walks that violate it in the fewest steps, and `trace` has
    its states. For a `sometimes`, `walk` is the first walk that reaches it.
    """

    prop: Property
    walks: int = 0
    walk: int | None = None
    steps: int | None = None
    trace: Trace | None = None

    @property
    def violated(self) -> bool:
        return self.prop.kind == "always" and self.walks > 0

    def count(self, numbers: _Numbers, lengths: _Numbers) -> None:
        """Add the walks of these numbers and lengths."""
        steps = int(lengths.min()) if self.prop.kind == "always" else 0
        number = int(numbers[lengths == steps].min()) if self.prop.kind == "always" else int(numbers.min())
        self.add(numbers.size, number, steps)

    def add(self, walks: int, walk: int | None, steps: int | None) -> None:
        """Add the number of walks, and the walk to report with its steps."""
        self.walks += walks
        if walk is not None and (self.walk is None or (steps or 0, walk) < (self.steps or 0, self.walk)):
            self.walk, self.steps = walk, steps


@dataclass(slots=True)
class Simulation:
    """The outcome of a plan: how often each action instance was taken, how many walks had each length, why they ended."""

    model: Model
    plan: WalkPlan
    findings: list[WalkFinding]
    taken: _Numbers
    lengths: _Numbers
    ends: dict[End, int] = field(default_factory=lambda: dict.fromkeys(End, 0))
    workers: int = 1
    interrupted: bool = False
    duration_s: float = 0.0

    @property
    def walks(self) -> int:
        """The number of walks that came to an end."""
        return int(self.lengths.sum())

    @property
    def steps(self) -> int:
        return int(self.taken.sum())

    @property
    def violated(self) -> bool:
        return any(finding.violated for finding in self.findings)

    @property
    def actions(self) -> dict[str, int]:
        """The number of times that the actions of each name were taken."""
        times = dict.fromkeys(self.model.action_names, 0)
        for action, count in zip(self.model.actions, self.taken.tolist(), strict=True):
            times[action.name] += count
        return times


class WalkProgress(NamedTuple):
    """The progress of a simulation."""

    walks: int
    steps: int
    seconds: float


Report = Callable[[WalkProgress], None]


class EndedWalks(NamedTuple):
    """Walks that have come to their ends: their numbers, and what `walks.Walk` says of each."""

    numbers: _Numbers
    walkers: _Numbers
    ends: _Numbers
    lengths: _Numbers
    violated: NDArray[np.uint64]
    reached: NDArray[np.uint64]


def simulate(
    model: Model,
    properties: Sequence[Property],
    plan: WalkPlan,
    workers: int | None = None,
    report: Report | None = None,
) -> Simulation:
    """Take all walks of the plan, on all cores unless `workers` says how many. The outcome does not depend on it."""
    result = take_walks(model, properties, plan, workers, report)
    find_traces(result)
    return result


def take_walks(
    model: Model, properties: Sequence[Property], plan: WalkPlan, workers: int | None = None, report: Report | None = None
) -> Simulation:
    """The same as `simulate`, but without the traces."""
    started = time.monotonic()
    fleet = Fleet(model, properties, plan, workers)
    result = Simulation(
        model,
        plan,
        [WalkFinding(prop) for prop in properties],
        fleet.taken,
        np.zeros(plan.depth + 1, np.int64),
        workers=fleet.workers,
    )

    def note(ended: EndedWalks) -> None:
        _add_up(result, ended)
        if report:
            report(WalkProgress(result.walks, result.steps, time.monotonic() - started))

    fleet.take(note)
    result.interrupted = fleet.interrupted
    result.duration_s = time.monotonic() - started
    return result


def find_traces(result: Simulation) -> None:
    """Take the walks that violate properties again, step by step."""
    started, model, plan = time.monotonic(), result.model, result.plan
    properties = [finding.prop for finding in result.findings]
    for finding in result.findings:
        if finding.violated and finding.walk is not None:
            again = next(walks(model, properties, plan.seed, [finding.walk], plan.depth, plan.weights))
            assert len(again.actions) == finding.steps, "a compiled walk and the plain one differ"
            finding.trace = NotebookTrace(model, trace_of(model, again.actions))
    result.duration_s += time.monotonic() - started


def compiled_walks(model: Model, properties: Sequence[Property], plan: WalkPlan, workers: int | None = None) -> list[Walk]:
    """All walks of the plan, step by step, as `walks.walks` gives them."""
    fleet = Fleet(model, properties, plan, workers, logged=True)
    found: dict[int, Walk] = {}

    def note(ended: EndedWalks) -> None:
        for number, walker, end, length, violated, reached in zip(*(column.tolist() for column in ended), strict=True):
            actions = tuple(fleet.log[walker, :length].tolist())
            found[number] = Walk(actions, End(end), _members(violated), _members(reached))

    fleet.take(note)
    return [found[plan.first + number] for number in range(plan.traces)]


def _members(bits: int) -> frozenset[int]:
    return frozenset(number for number in range(bits.bit_length()) if bits >> number & 1)


class Fleet(Search):
    """Walkers, whose states take the place of a search's visited set. The engine's tables give their successors."""

    def __init__(
        self, model: Model, properties: Sequence[Property], plan: WalkPlan, workers: int | None, logged: bool = False
    ) -> None:
        super().__init__(model, list(properties), Limits(stop_at_first=False), workers or os.cpu_count() or 1, None)
        self.plan = plan
        self.taken = self.fired
        self.count = min(WALKERS, plan.traces)
        self.fields = self.fitting_fields()
        self.store = StateStore(self.fields, memory=8 * self.fields.size * self.count * SHARDS)
        self.store.count[0] = self.count
        self.weight = np.array(instance_weights(model, plan.weights), np.int64)
        self.random = np.zeros(self.count, np.uint64)
        self.number = np.arange(plan.first, plan.first + self.count, dtype=np.int64)
        self.length = np.zeros(self.count, np.int64)
        self.violated, self.reached = np.zeros(self.count, np.uint64), np.zeros(self.count, np.uint64)
        self.log = np.zeros((self.count, plan.depth if logged else 0), np.int64)
        self.always = np.uint64(sum(1 << number for number, prop in enumerate(properties) if prop.kind == "always"))
        self.each_state = True

    def fitting_fields(self) -> Fields:
        return padded(wide_fields(self.book.counts))

    def conclude(self) -> None:
        """There is no exploration to conclude."""

    def take(self, note: Callable[[EndedWalks], None]) -> None:
        """Take all walks; `note` is called with those that have ended, some at a time."""
        with interrupts(self), without_garbage_collection(), ExitStack() as stack:
            if self.pool:
                stack.enter_context(self.pool)
            self.book.masks.extend()
            self.book.pool.refit()
            self.refresh()
            decided = sum(
                1 << number
                for number, prop in enumerate(self.book.properties)
                if prop.bind()(self.model.initial) != (prop.kind == "always")
            )
            self.decided_at_first = np.uint64(decided)
            active = np.arange(self.count)
            begun = self.count
            self._begin_walks(active)
            while active.size and not self.interrupted:
                ended = self._ended(active, self._step(active))
                self.underway = True
                note(ended)
                # A walker whose walk has ended takes the next one, as long as there are any.
                again = ended.walkers[: self.plan.traces - begun]
                self.number[again] = self.plan.first + np.arange(begun, begun + again.size)
                begun += again.size
                self._begin_walks(again)
                active = np.setdiff1d(active, ended.walkers[again.size :], assume_unique=True)

    def _begin_walks(self, walkers: _Numbers) -> None:
        random = np.empty(walkers.size, np.uint64)
        first_random(np.uint64(self.plan.seed), self.number[walkers], random)
        self.random[walkers], self.length[walkers] = random, 0
        self.violated[walkers] = self.decided_at_first & self.always
        self.reached[walkers] = self.decided_at_first & ~self.always
        packed, layout = np.zeros(self.fields.words, np.uint64), self.fields.arrays
        for slot, number in enumerate(self.book.initial):
            packed[layout.word[slot]] |= np.uint64(number) << layout.shift[slot]
        self._states.reshape(-1, self.fields.words)[walkers] = packed

    @property
    def _states(self) -> NDArray[np.uint64]:
        """The walkers' states as words."""
        return self.store.content[: self.count * self.fields.size].view(np.uint64)

    def _step(self, active: _Numbers) -> _Numbers:
        """Let walkers draw and take one step; returns the actions taken, `STUCK` or `POSTPONED`."""
        if (self.violated[active] != 0).any():  # in the initial state already
            return np.full(active.size, POSTPONED)
        chunks = [(low, min(active.size, low + CHUNK)) for low in range(0, active.size, CHUNK)]
        found = self.do_all([partial(self._draw, active, low, high) for low, high in chunks])
        chosen = np.concatenate([actions for actions, _ in found])
        self.learn(np.concatenate([missed for _, missed in found]))
        moved, actions = active[chosen >= 0], chosen[chosen >= 0]
        self.taken += np.bincount(actions, minlength=self.taken.size)
        if self.log.shape[1]:
            self.log[moved, self.length[moved]] = actions
        self.length[moved] += 1
        listed = moved << 22 | actions
        parts = [listed[low : low + CHUNK] for low in range(0, listed.size, CHUNK)]
        self.test(parts)
        self.finish_tests()
        return chosen

    def _draw(self, active: _Numbers, low: int, high: int) -> tuple[_Numbers, NDArray[np.uint64]]:
        workspace = self.workspace()
        start = np.zeros(SHARDS, np.int64)
        prefix = np.full(SHARDS + 1, self.count, np.int64)
        prefix[0] = 0
        degrees = np.full(high - low, -1, np.int64)
        missed, _, outcome = self.successors(workspace, start, prefix, low, high, active, True, degrees)
        if outcome[5] >= 0:
            self.raise_again(start, prefix, int(outcome[5]), int(outcome[6]))
        chosen = np.empty(high - low, np.int64)
        words = self.fields.words
        choose(words, workspace.linear, degrees, self.weight, active[low:high], self.random, self._states, chosen)
        self.give_back(workspace)
        return chosen, missed

    def count_fired(self, fired: _Numbers) -> None:
        """Nothing is counted here: an enabled action need not be taken."""

    def take_decisions(self, decisions: _Numbers, level: int) -> None:
        bits, walkers = decisions[:, 0].astype(np.uint64), decisions[:, 2]
        for place in np.flatnonzero(bits & ASK).tolist():
            state = self.book.state_of(self.store.numbers_at(0, int(walkers[place])))
            bits[place] = self.book.decided(state, range(len(self.book.properties)))
        self.violated[walkers] |= bits & self.always
        self.reached[walkers] |= bits & ~self.always

    def note_decisions(self) -> None:
        """Every walk is tested for every property."""

    def _ended(self, active: _Numbers, chosen: _Numbers) -> EndedWalks:
        """The active walkers whose walks end here."""
        violated, full = self.violated[active] != 0, self.length[active] == self.plan.depth
        stuck = chosen == STUCK
        over = violated | full | stuck
        ends = np.where(violated, int(End.VIOLATED), np.where(full, int(End.DEPTH), int(End.STUCK)))[over]
        walkers = active[over]
        return EndedWalks(
            self.number[walkers], walkers, ends, self.length[walkers], self.violated[walkers], self.reached[walkers]
        )


def _add_up(result: Simulation, ended: EndedWalks) -> None:
    """Add walks that have ended."""
    result.lengths += np.bincount(ended.lengths, minlength=result.lengths.size)
    for end in End:
        result.ends[end] += int((ended.ends == end).sum())
    for number, finding in enumerate(result.findings):
        decided = ended.violated if finding.prop.kind == "always" else ended.reached
        found = (decided >> np.uint64(number) & np.uint64(1)) != 0
        if found.any():
            finding.count(ended.numbers[found], ended.lengths[found])
