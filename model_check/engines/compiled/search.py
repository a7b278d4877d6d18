"""Breadth-first search in blocks, each expanded, merged into the visited set and learned from.

`Search` is what others build on: graphs, random walks and the first levels of engine spark.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kspec.model_check.core.exploration import (
    INTERRUPTED,
    CheckpointPlan,
    Clock,
    Exploration,
    Limits,
    Progress,
    Trace,
    TraceStep,
    Verdict,
    without_garbage_collection,
)
from kspec.model_check.core.model import Model, Property, State
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.compiled import kernels
from kspec.model_check.engines.compiled.checkpoint import Checkpoint, Moment, Where, identity
from kspec.model_check.engines.compiled.interning import Domain
from kspec.model_check.engines.compiled.kernels import ASK, SHARDS
from kspec.model_check.engines.compiled.layout import Fields, compact_fields, wide_fields
from kspec.model_check.engines.compiled.orbits import OrbitBook, canonical_numbers, canonicalize, represented
from kspec.model_check.engines.compiled.rulebook import RuleBook, raise_again
from kspec.model_check.engines.compiled.store import FIRST_INDEX_SIZE, StateStore, available_memory, physical_memory

CHUNK = 8192
"""States that one worker expands at a time. Chunks do not depend on the number of workers, so neither do results."""

BLOCK = 32 * CHUNK
"""States that are expanded before their successors are merged into the visited set."""

CHUNK_OUTPUT = 12 * CHUNK
"""Most successors of a chunk; the states for which there is no room wait for the next round."""

MISSES = 1 << 15
RECENT = 1 << 12
WIDE_UNTIL, LOOSE_UNTIL = 1 << 12, 1 << 20
"""States to find before the layout is made compact, and tight: by then slots have met most of their values."""

_NOTHING, _NOT_MISSED = np.empty(0, np.int64), np.empty(0, np.uint64)

SPARSE_BELOW = 1 << 23
"""Below this many states, full hash tables double; above, memory matters more and they grow by less."""


class StatePlace(NamedTuple):
    """A state in the store."""

    shard: int
    number: int


class TracedState(NamedTuple):
    """A state whose trace is wanted, and its level."""

    level: int
    place: StatePlace


def _found(where: Where) -> TracedState:
    level, place = where
    return TracedState(level, StatePlace(*place))


def explore(
    model: Model,
    properties: list[Property],
    limits: Limits,
    workers: int | None = None,
    memory: int | None = None,
    symmetry: Symmetry | None = None,
    checkpointing: CheckpointPlan | None = None,
) -> Exploration:
    """Visit every reachable state, level by level, on all cores unless `workers` says how many.

    `memory` is the number of bytes that the search may take; by default nearly all that the system has left. With
    `symmetry`, visit one state of each orbit; traces are still real runs. With `checkpointing`, `CheckpointError` says why
    checkpoints cannot be kept or resumed.
    """
    return Search(model, properties, limits, workers or os.cpu_count() or 1, memory, symmetry, checkpointing).run()


@dataclass(slots=True)
class Workspace:
    """The arrays that one worker writes to."""

    linear: NDArray[np.uint64]
    recent: NDArray[np.uint64]


class Search:
    """A search of a model's states, with the tables that it learns on the way.

    To adapt it, inherit and override one of these methods; `run` calls them in this order, again and again:

    - `expand_level`: expand the states of a level, or say in `result.stopped_because` why not;
    - `must_stop`: the reason to stop before the next block, `None` to go on;
    - `count_fired`: count how often actions were taken, whenever states were expanded;
    - `take_decisions`: note which states decide which properties; `note_decisions`: stop testing for decided ones;
    - `fitting_fields`: how states are packed, whenever a slot has met more values than its field has room for;
    - `conclude`: fill in `result`; by default `add_up`, and the traces.

    Others may call: `refresh` once before anything is expanded; `workspace` and `give_back` around `successors`, which
    expands some states; `learn` what these missed; `test` states and `finish_tests`; `raise_again` the error of a rule;
    `do_all` for tasks on all workers; `slot_domains` for the values by number. `fields`, `store`, `levels`, `book`, `found`
    and `first_deadlock` may be read at any time. Everything else is private.
    """

    def __init__(
        self,
        model: Model,
        properties: list[Property],
        limits: Limits,
        workers: int,
        memory: int | None,
        symmetry: Symmetry | None = None,
        checkpointing: CheckpointPlan | None = None,
    ) -> None:
        self.model = model
        self.limits = limits
        self.workers = workers
        self.clock = Clock(limits)
        self.symmetry = symmetry
        verdicts = [Verdict(prop) for prop in properties]
        self.result = Exploration(model, "compiled", verdicts, limits.deadlock_is_violation, symmetry is not None)
        self.book = RuleBook(model, properties, moving=symmetry is not None)
        self.orbits = OrbitBook(symmetry, self.book.domains) if symmetry and model.interchangeable else None
        self.orbit_arrays: Any = None
        self.fields = wide_fields(self.book.counts)
        self.memory = memory
        self.store = StateStore(self.fields)
        self.fired = np.zeros(max(1, len(model.actions)), np.int64)
        self.levels: list[NDArray[np.int64]] = []
        self.found: dict[int, TracedState] = {}
        self.first_deadlock: TracedState | None = None
        self.deadlocks = 0
        self.interrupted = False
        self.underway = False
        """Not so while tables are made and loops are compiled, which may take long: Ctrl-C and the time limit end that."""
        self._compiled = False
        self._spare = spare_bits(0)
        self._sparse = True
        self._lock = threading.Lock()
        self.pool = ThreadPoolExecutor(workers - 1) if workers > 1 else None
        self._idle: list[Workspace] = []
        self._sorted: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.arrays: Any = None
        self._to_check = _NOTHING
        self._check_misses = _NOT_MISSED
        self.undecided = np.array([(1 << len(properties)) - 1 | int(ASK)], np.uint64)
        self.each_state = False
        """Whether every state that decides a property is wanted, not only the first."""
        self.checkpoint = Checkpoint(checkpointing, identity(self.result)) if checkpointing else None

    @property
    def _room(self) -> int:
        """Words of a chunk's output: never less than one state's successors take."""
        return max(CHUNK_OUTPUT, len(self.model.actions) + 1) * (self.fields.words + 1)

    # ---- the search

    def run(self) -> Exploration:
        """Search until everything is explored, or something says to stop."""
        with interrupts(self), without_garbage_collection(), ExitStack() as stack:
            if self.pool:
                stack.enter_context(self.pool)
            if self.checkpoint:
                stack.callback(self.checkpoint.close)
            try:
                self._search()
            except (KeyboardInterrupt, _OutOfTimeError) as stop:
                self.result.stopped_because = INTERRUPTED if isinstance(stop, KeyboardInterrupt) else self.clock.out_of_time
                if self.checkpoint:
                    self.checkpoint.tell_where()
            self.conclude()
            self.result.interrupted = self.interrupted
        return self.result.finish(self.clock)

    def _search(self) -> None:
        position = self._resume() if self.checkpoint and self.checkpoint.resumes else self._begin()
        self.note_decisions()
        self.book.masks.extend()
        self.book.pool.refit()
        self.refresh()
        while True:
            self.expand_level(self.levels[-2], self.levels[-1], position)
            if self.result.stopped_because or self.store.states == self.levels[-1].sum():
                return
            self.levels.append(self.store.count.copy())
            position = 0

    def _begin(self) -> int:
        """Start with the initial state."""
        initial, fields = self.book.initial, self.fields
        if self.orbits is not None:
            self._learn_renamings()
            initial[:] = canonical_numbers(self.orbit_arrays, fields.arrays, fields.words, initial)
        hashed = kernels.hash_of(initial, fields.arrays.weight)
        shard = hashed >> (64 - kernels.SHARD_BITS)
        self._write_initial(shard, hashed)
        self.levels = [np.zeros(SHARDS, np.int64), self.store.count.copy()]
        for number, verdict in enumerate(self.result.verdicts):
            always = verdict.prop.kind == "always"
            if verdict.prop.bind()(self.model.initial) != always:
                self._decide(1 << number, StatePlace(shard, 0), 0)
        if self.checkpoint:
            self.checkpoint.begin(self._moment(0), self.store, self.slot_domains)
        return 0

    def _write_initial(self, shard: int, hashed: int) -> None:
        store, layout = self.store, self.fields.arrays
        packed = np.zeros(self.fields.words, np.uint64)
        for slot, number in enumerate(self.book.initial):
            packed[layout.word[slot]] |= np.uint64(number << int(layout.shift[slot]))
        store.write(shard, 0, packed)
        place = (((hashed >> 26) & 0xFFFFFFFF) * FIRST_INDEX_SIZE) >> 32
        store.index[int(store.index_base[shard]) + place] = ((hashed >> 16) & 0x3F) << kernels.INDEX_BITS | 1
        store.count[shard] = 1

    def expand_level(self, start: NDArray[np.int64], end: NDArray[np.int64], position: int) -> None:
        """Expand the states of a level from this position on."""
        self.underway = True
        prefix = np.concatenate([[0], np.cumsum(end - start)]).astype(np.int64)
        total = int(prefix[-1])
        while position < total:
            reason = self.must_stop(total - position)
            if self.checkpoint and (reason or self.checkpoint.due):
                self.checkpoint.save(self._moment(position), self.store, self.slot_domains, last=reason is not None)
            if reason:
                self.result.stopped_because = reason
                return
            block_end = min(total, position + self._block_size())
            self._expand_block(start, prefix, position, block_end)
            position = block_end

    def _block_size(self) -> int:
        """The states to expand in a block: fewer near a limit on states, to overshoot it less."""
        if self.limits.max_states is None:
            return BLOCK
        return max(256, min(BLOCK, (self.limits.max_states - self.store.states) // 4))

    def must_stop(self, queue: int) -> str | None:
        """The reason to stop now, `None` to go on; `queue` is the number of states left in this level."""
        if self.result.violated and self.limits.stop_at_first:
            return "a property is violated"
        if self.interrupted:
            return INTERRUPTED
        progress = Progress(len(self.levels) - 1, self.store.states, int(self.fired.sum()), queue)
        reason = self.clock.tick(progress)
        if reason:
            return reason
        used = self.store.bytes
        if self.memory is not None and used > self.memory:
            return f"memory: {used / 1e6:,.0f} MB are in use, {self.memory / 1e6:,.0f} MB are allowed"
        if (free := available_memory()) < max(256 << 20, physical_memory() // 50):
            return f"memory is nearly exhausted: {free / 1e6:,.0f} MB are left"
        return None

    def _expand_block(self, start: NDArray[np.int64], prefix: NDArray[np.int64], begin: int, end: int) -> None:
        """Expand the states at these positions of the level; repeat for those that had to wait for a rule's answer."""
        self.underway = self._compiled
        listed, use_list = np.empty(0, np.int64), False
        while begin < end:
            chunks = [(low, min(end, low + CHUNK)) for low in range(begin, end, CHUNK)]
            if len(chunks) * self._room > self._sorted.size:
                self._sorted = np.empty(len(chunks) * self._room, np.uint64)
            firsts = np.zeros((len(chunks), SHARDS + 1), np.int64)
            outputs = self.do_all(
                [
                    partial(self._expand, start, prefix, low, high, listed, use_list, number, firsts[number])
                    for number, (low, high) in enumerate(chunks)
                ]
            )
            misses, waiting = [], []
            for missed, postponed, outcome in outputs:
                misses.append(missed)
                waiting.append(postponed)
                if outcome[5] >= 0:
                    self.raise_again(start, prefix, int(outcome[5]), int(outcome[6]))
                self.deadlocks += int(outcome[3])
                self.result.deadlocks = self.deadlocks
                if outcome[4] >= 0 and self.first_deadlock is None:
                    self.first_deadlock = TracedState(len(self.levels) - 2, self._place(start, prefix, int(outcome[4])))
            self._merge(len(chunks), firsts, end - begin, np.concatenate(misses))
            listed, use_list = np.concatenate(waiting), True
            begin, end = 0, listed.size
        self.finish_tests()
        self.underway = self._compiled = True
        if self._spare != spare_bits(self.store.states):
            self._spare = spare_bits(self.store.states)
            self.change_layout(self.fitting_fields())

    def _expand(
        self,
        start: NDArray[np.int64],
        prefix: NDArray[np.int64],
        begin: int,
        end: int,
        listed: NDArray[np.int64],
        use_list: bool,
        number: int,
        sorted_first: NDArray[np.int64],
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
        """Expand one chunk; return what was missing, the positions that must wait, and the kernel's outcome."""
        workspace = self.workspace()
        missed, postponed, outcome = self.successors(workspace, start, prefix, begin, end, listed, use_list, _NOTHING)
        count = int(outcome[0])
        output = self._sorted[number * self._room : (number + 1) * self._room]
        if self.orbits is not None:
            canonicalize(self.fields.arrays, self.orbit_arrays, self.fields.words, workspace.linear, count)
        kernels.distribute(self.fields.words, workspace.linear, count, output, sorted_first)
        self.give_back(workspace)
        return missed, postponed, outcome

    def successors(
        self,
        workspace: Workspace,
        start: NDArray[np.int64],
        prefix: NDArray[np.int64],
        begin: int,
        end: int,
        listed: NDArray[np.int64],
        use_list: bool,
        degrees: NDArray[np.int64],
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
        """Write the successors of a chunk to the workspace; return what `_expand` does. `degrees` is for the kernel."""
        misses = np.empty(MISSES, np.uint64)
        postponed = np.empty(end - begin, np.int64)
        outcome = np.zeros(7, np.int64)
        fired = np.zeros_like(self.fired)
        layout, tables, programs, masks = self.arrays
        kernels.expand(
            layout,
            tables,
            programs,
            masks,
            self.fields.words,
            self.store.content,
            self.store.base,
            start,
            prefix,
            listed,
            use_list,
            begin,
            end,
            np.zeros(kernels.BATCH * len(self.book.columns), np.uint64),
            workspace.linear,
            fired,
            misses,
            workspace.recent,
            postponed,
            degrees,
            outcome,
        )
        self.count_fired(fired)
        return misses[: outcome[1]], postponed[: outcome[2]], outcome

    def count_fired(self, fired: NDArray[np.int64]) -> None:
        """Add how often each action was taken."""
        with self._lock:
            self.fired += fired

    def workspace(self) -> Workspace:
        """Room to write a chunk's successors to, for one worker; to be given back."""
        try:
            workspace = self._idle.pop()
        except IndexError:
            workspace = Workspace(np.empty(0, np.uint64), np.empty(RECENT, np.uint64))
        if workspace.linear.size != self._room:
            workspace.linear = np.empty(self._room, np.uint64)
        return workspace

    def give_back(self, workspace: Workspace) -> None:
        """Let another chunk have the workspace."""
        self._idle.append(workspace)

    def _merge(self, chunks: int, firsts: NDArray[np.int64], states: int, misses: NDArray[np.uint64]) -> None:
        """Add the chunks' successors to the visited set, learn what was missing, and test what is new for the properties.

        Rules are evaluated while the workers merge, which needs no learned entries. Entries that tests miss are learned
        together with those that the next expansion misses.
        """
        parts = 1 if states < CHUNK or self.workers == 1 else min(SHARDS, 4 * self.workers)
        self._sparse = self.store.states < SPARSE_BELOW
        bounds = [SHARDS * part // parts for part in range(parts + 1)]
        merging = self._start([partial(self.merge_shards, low, high, chunks, firsts) for low, high in pairwise(bounds)])
        misses = np.concatenate([misses, self._check_misses])
        if misses.size:
            self.book.learn(misses)
        fresh = merging()
        if misses.size:
            self._take_what_was_learned()
        self.test([*fresh, self._to_check])

    def merge_shards(self, low: int, high: int, chunks: int, firsts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add the successors that belong to some shards; return what is new, as `check` reads it."""
        incoming = int((firsts[:chunks, high] - firsts[:chunks, low]).sum())
        fresh = np.empty(incoming, np.int64)
        store = self.store
        found = kernels.merge(
            self.fields.arrays,
            self.fields.words,
            store.content,
            store.base,
            store.count,
            store.capacity,
            store.index,
            store.index_base,
            store.index_size,
            2.0 if self._sparse else 1.35,
            low,
            high,
            chunks,
            self._sorted,
            self._room,
            firsts,
            fresh,
        )
        if found < 0:
            raise MemoryError("a shard of the visited set is full")
        return fresh[:found]

    def check(self, listed: NDArray[np.int64]) -> "_CheckResults":
        """Test states for the properties that are still open."""
        checked = _CheckResults(listed.size, self.undecided)
        layout, tables, programs, _ = self.arrays
        kernels.check(
            layout,
            tables,
            programs,
            self.store.content,
            self.store.base,
            listed,
            np.zeros(kernels.BATCH * len(self.book.columns), np.uint64),
            checked.undecided,
            self.each_state,
            checked.misses,
            checked.recent,
            checked.again,
            checked.decided,
            checked.counts,
        )
        return checked

    def test(self, states: Sequence[NDArray[np.int64]]) -> None:
        """Test states for the open properties; note what is decided, and which states wait for a rule's answer."""
        outputs = self.do_all([partial(self.check, listed) for listed in states if listed.size])
        for checked in outputs:
            self.take_decisions(checked.decided[: checked.counts[2] * 3].reshape(-1, 3), len(self.levels) - 1)
        self._check_misses = np.concatenate([_NOT_MISSED, *(checked.misses[: checked.counts[0]] for checked in outputs)])
        self._to_check = np.concatenate([_NOTHING, *(checked.again[: checked.counts[1]] for checked in outputs)])
        self.note_decisions()

    def finish_tests(self) -> None:
        """Learn what the tests missed and repeat the tests, until nothing is missing."""
        while self._to_check.size:
            self.learn(self._check_misses)
            self.test([self._to_check])

    def take_decisions(self, decisions: NDArray[np.int64], level: int) -> None:
        """Note which states of this level decide properties. A decision is a set of properties, a shard and a number."""
        to_ask = [StatePlace(shard, number) for decided, shard, number in decisions.tolist() if decided < 0]
        for decided, shard, number in decisions.tolist():
            if decided > 0:
                self._decide(decided, StatePlace(shard, number), level)
        for place in to_ask:
            self._decide(self._decided(self._state(place)), place, level)

    def _decided(self, state: State) -> int:
        """The open properties that a state decides, if a term has raised an error there."""
        still_open = [number for number, verdict in enumerate(self.result.verdicts) if verdict.holds is None]
        try:
            return self.book.decided(state, still_open)
        except Exception:  # it does not count if another state of this level decides the property
            return self.book.decided(state, [number for number in still_open if number not in self.found])

    def do_all(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        """Do the tasks on all workers; returns their results in order."""
        return self._start(tasks)()

    def _start(self, tasks: Sequence[Callable[[], Any]]) -> Callable[[], list[Any]]:
        """Let the other workers begin the tasks. Returns a function that does the rest and returns the results in order."""
        if self.pool is None or len(tasks) == 1:
            return lambda: [task() for task in tasks]
        futures = [self.pool.submit(task) for task in tasks]

        def finish() -> list[Any]:
            own = {number: tasks[number]() for number in reversed(range(len(tasks))) if futures[number].cancel()}
            return [own[number] if number in own else future.result() for number, future in enumerate(futures)]

        return finish

    # ---- learning

    def learn(self, misses: NDArray[np.uint64]) -> None:
        """Evaluate the rules for the missing entries."""
        if not misses.size:
            return
        self.book.learn(misses)
        self._take_what_was_learned()

    def _learn_renamings(self) -> bool:
        """Rename new values; returns whether there were any."""
        if self.orbits is None or (not self.orbits.extend() and self.orbit_arrays is not None):
            return False
        self.orbit_arrays = self.orbits.arrays()
        return True

    def _take_what_was_learned(self) -> None:
        if self._learn_renamings():
            self.book.masks.extend()
            self.book.pool.refit()
        if not self.fields.has_room(self.book.counts):
            self.change_layout(self.fitting_fields())
        self.refresh()

    def fitting_fields(self) -> Fields:
        """The layout of packed states, given how many values each slot has met."""
        counts = self.book.counts
        return wide_fields(counts) if self._spare is None else compact_fields(counts, self._spare)

    def change_layout(self, fields: Fields) -> None:
        """Pack all states anew."""
        self.store.change_layout(fields)
        self.fields = fields
        self.refresh()

    def refresh(self) -> None:
        """Hand the learned tables to the kernels."""
        self.arrays = self.book.arrays(self.fields)

    # ---- outcomes

    def _decide(self, decided: int, place: StatePlace, level: int) -> None:
        """Note that a state decides properties. Of several states of one level the first counts, so all runs agree."""
        for number in range(len(self.result.verdicts)):
            if decided >> number & 1:
                found = TracedState(level, place)
                if number not in self.found or found < self.found[number]:
                    self.found[number] = found

    def note_decisions(self) -> None:
        """Stop testing for decided properties."""
        open_before = [number for number, verdict in enumerate(self.result.verdicts) if verdict.holds is None]
        still_open = [number for number in open_before if number not in self.found]
        if still_open == open_before:
            return
        for number in open_before:
            if number in self.found:
                verdict = self.result.verdicts[number]
                verdict.holds = verdict.prop.kind == "sometimes"
        self.undecided[0] = np.uint64(sum(1 << number for number in still_open)) | ASK
        self.book.undecided(still_open)
        if self.arrays is not None:
            self.refresh()

    def conclude(self) -> None:
        """Fill in the numbers and rebuild the traces."""
        result = self.result
        self.add_up()
        traces: dict[TracedState, Trace] = {}
        for number, found in self.found.items():
            result.verdicts[number].trace = traces.get(found) or traces.setdefault(found, self._trace_to(found))
        if self.first_deadlock is not None:
            result.deadlock_trace = self._trace_to(self.first_deadlock)

    def add_up(self) -> None:
        """Fill in the numbers."""
        result = self.result
        if self.symmetry is not None and self.orbits is None:  # no two brokers are interchangeable
            result.represented = self.store.states
        if self.orbits is not None and self._compiled:
            result.represented = sum(self.do_all([partial(self._represented, shard) for shard in range(SHARDS)]))
        totals = [int(level.sum()) for level in self.levels] or [0]
        if self.store.states > totals[-1]:
            totals.append(self.store.states)
        result.levels[:] = [after - before for before, after in pairwise(totals)]
        for action, count in zip(self.model.actions, self.fired.tolist(), strict=False):
            result.actions[action.name] += count
        result.deadlocks = self.deadlocks

    def _represented(self, shard: int) -> int:
        """The number of states that those of a shard stand for."""
        store = self.store
        base, count = int(store.base[shard]), int(store.count[shard])
        return int(represented(self.fields.arrays, self.orbit_arrays, store.content, base, count))

    # ---- checkpoints

    @property
    def slot_domains(self) -> list[Domain]:
        """The domains of the slots. The values of views follow from them."""
        return self.book.domains[: len(self.model.slots)]

    def _moment(self, position: int) -> Moment:
        """The knowledge of the search before the state at this position of the level is expanded."""
        return Moment(
            levels=[level.tolist() for level in self.levels],
            position=position,
            fired=self.fired.tolist(),
            deadlocks=self.deadlocks,
            first_deadlock=self.first_deadlock,
            found=dict(self.found),
            seconds=self.clock.elapsed,
        )

    def _resume(self) -> int:
        """Restore the search from the checkpoint; returns the position in its level from which to go on."""
        assert self.checkpoint is not None
        moment = self.checkpoint.load(self.store, self.slot_domains)
        self.fields = self.store.fields
        self._learn_renamings()
        self.levels = [np.array(level, np.int64) for level in moment.levels]
        self._spare = spare_bits(self.store.states)
        self.fired[:] = moment.fired
        self.deadlocks = moment.deadlocks
        self.first_deadlock = moment.first_deadlock and _found(moment.first_deadlock)
        self.found = {number: _found(where) for number, where in moment.found.items()}
        self.clock.earlier = moment.seconds
        return moment.position

    def _state(self, place: StatePlace) -> State:
        numbers = self.store.numbers_at(*place)
        return self.book.state_of(numbers)

    def _trace_to(self, found: TracedState) -> Trace:
        """A shortest run to a state, found backwards: each earlier level is expanded until the state is a successor."""
        steps: list[TraceStep] = []
        level, place = found
        passed = [self._state(place)]
        while level > 0:
            place, action = self._predecessor(level, place)
            steps.append(TraceStep(self.model.actions[action], ()))
            passed.insert(0, self._state(place))
            level -= 1
        if self.symmetry is not None:
            return self.symmetry.real_trace(passed)
        state = self.model.initial
        trace = [TraceStep(None, state)]
        for step in reversed(steps):
            assert step.action is not None
            successor = step.action.bind()(state)
            assert successor is not None, f"{step.action.label} is not enabled where the search took it"
            state = successor
            trace.append(TraceStep(step.action, state))
        return tuple(trace)

    def _predecessor(self, level: int, place: StatePlace) -> tuple[StatePlace, int]:
        """The first state of the previous level that leads to a state, and the action that does."""
        start, end = self.levels[level - 1], self.levels[level]
        prefix = np.concatenate([[0], np.cumsum(end - start)]).astype(np.int64)
        if self._sorted.size < self._room:
            self._sorted = np.empty(self._room, np.uint64)
        first = np.zeros(SHARDS + 1, np.int64)
        fired = self.fired.copy()
        nothing = np.empty(0, np.int64)

        def action_from(low: int, high: int) -> int | None:
            """An action that leads from one of these states to the target."""
            while True:
                missed, postponed, _ = self._expand(start, prefix, low, high, nothing, False, 0, first)
                if not postponed.size:
                    break
                self.learn(missed)
            target, words = self.store.packed_at(*place), self.fields.words
            stride = words + 1
            begin, stop = int(first[place.shard]), int(first[place.shard + 1])
            out = self._sorted[begin * stride : stop * stride].reshape(-1, stride)
            hits = np.flatnonzero((out[:, :words] == target).all(axis=1))
            return int(out[hits[0], words] & np.uint64(0xFFFF)) if hits.size else None

        # Few enough states at a time to have room for all their successors.
        step = max(1, min(CHUNK, self._room // (self.fields.words + 1) // max(1, len(self.model.actions))))
        try:
            for begin in range(0, int(prefix[-1]), step):
                low, high = begin, min(begin + step, int(prefix[-1]))
                if action_from(low, high) is None:
                    continue
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (low, middle) if action_from(low, middle) is not None else (middle, high)
                action = action_from(low, high)
                assert action is not None
                return self._place(start, prefix, low), action
        finally:
            self.fired = fired
        raise AssertionError("a state of the visited set has no predecessor")

    def _place(self, start: NDArray[np.int64], prefix: NDArray[np.int64], position: int) -> StatePlace:
        shard = int(np.searchsorted(prefix, position, side="right")) - 1
        return StatePlace(shard, int(start[shard]) + position - int(prefix[shard]))

    def raise_again(self, start: NDArray[np.int64], prefix: NDArray[np.int64], position: int, action: int) -> None:
        """Raise again the error that a rule raised where the action is otherwise enabled."""
        raise_again(self.model, self._state(self._place(start, prefix, position)), action)


def spare_bits(states: int) -> int | None:
    """The spare bits of a slot's field when this many states are known; `None` for a wide layout."""
    if states < WIDE_UNTIL:
        return None
    return 1 if states < LOOSE_UNTIL else 0


class _CheckResults:
    """The results of testing new states."""

    def __init__(self, states: int, undecided: NDArray[np.uint64]) -> None:
        self.undecided = undecided.copy()
        self.misses = np.empty(MISSES, np.uint64)
        self.recent = np.empty(RECENT, np.uint64)
        self.again = np.empty(states, np.int64)
        self.decided = np.empty(3 * states, np.int64)
        self.counts = np.zeros(3, np.int64)


class _OutOfTimeError(BaseException):
    """The time limit is over while loops are compiled. Not an `Exception`: compilers catch those."""


@contextmanager
def interrupts(search: Search) -> Iterator[None]:
    """Let Ctrl-C stop the search between blocks, where its counts are consistent, once it is under way.

    Before that, Ctrl-C and the time limit stop it at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(signum: int, frame: Any) -> None:
        search.interrupted = True
        if not search.underway:
            raise KeyboardInterrupt

    def out_of_time(signum: int, frame: Any) -> None:
        if not search.underway:
            raise _OutOfTimeError

    at_interrupt, at_alarm = signal.signal(signal.SIGINT, note), signal.signal(signal.SIGALRM, out_of_time)
    if search.limits.max_seconds is not None:
        signal.setitimer(signal.ITIMER_REAL, max(search.limits.max_seconds - search.limits.spent, 0.001), 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, at_alarm)
        signal.signal(signal.SIGINT, at_interrupt)
