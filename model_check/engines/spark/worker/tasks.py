"""Tasks of Spark in the worker processes: expand the states of a partition, and merge what a partition is sent.

Both are functions of files and messages alone. A process keeps a model's tables from one task to the next, and the tables
of a process that dies are learned again by another.
"""

import gc
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from kspec.model_check.core.model import Model, ModelError, Property
from kspec.model_check.engines.compiled.kernels import HASH_MASK, hash_of
from kspec.model_check.engines.compiled.layout import Fields
from kspec.model_check.engines.spark.worker.core import (
    Core,
    Expansion,
    Numbering,
    Numbers,
    Packed,
    RaisedError,
    RuleError,
    pack,
    repacked,
)
from kspec.model_check.engines.spark.worker.distinct import Distinct
from kspec.model_check.engines.spark.worker.runs import Folder, Piece, StateFile
from kspec.model_check.engines.spark.worker.tables import WorkerTables
from kspec.model_check.engines.spark.worker.transport import MOST_STATES, decode, encode

MOST_READ = 1 << 22
"""The most visited states that a task holds at a time to strike out known states; some row groups of a file."""

MOST_ROWS = 1 << 22
"""Transitions that a task collects before it writes a file of them."""


class ExplorationSetup(NamedTuple):
    """The constants of an exploration."""

    model: Model
    properties: list[Property]
    symmetric: bool
    folder: str
    partitions: int
    tables: str | None = None


class Job(NamedTuple):
    """The common knowledge of the tasks of one job: `setup` and `numbering` are Spark's broadcasts, of pickled content."""

    exploration: str
    setup: Any
    numbering: Any
    version: int
    level: int
    undecided: tuple[int, ...]


class PartitionTask(NamedTuple):
    """The work on one partition: states to expand, and where the states that it has visited lie."""

    pieces: list[Piece]
    visited: list[StateFile]


class Report(NamedTuple):
    """The findings of an expansion besides successors. `seconds` are processor time; `successors` includes those left out.

    `error` is that of a rule, or says what no model may do.
    """

    fired: list[int]
    deadlocks: int
    first_deadlock: Numbers | None
    new_values: list[list[Any]]
    set_aside: Piece | None
    error: RuleError | str | None
    seconds: float
    successors: int
    tables: list[str]


class MergeResult(NamedTuple):
    """The knowledge of a partition after a job: its states, the new ones among them, and what its own expansion reported.

    `received` are states and bytes that came in; `decided` are states that decide properties, each with these as bits.
    """

    partition: int
    visited: list[StateFile]
    replaced: list[str]
    fresh: int
    represented: int
    decided: list[tuple[int, Numbers]]
    report: Report
    received: tuple[int, int]
    seconds: float
    tables: list[str]


class WorkerMemory(NamedTuple):
    """The memory of a process from one task of an exploration to the next."""

    setup: ExplorationSetup
    core: Core
    folder: Folder
    tables: WorkerTables | None


_kept: dict[str, WorkerMemory] = {}
"""The exploration that this process works for."""

_numberings: dict[tuple[str, int], Numbering] = {}


def known_of(job: Job) -> tuple[WorkerMemory, Numbering]:
    """The knowledge of this process, in the numbering of the job."""
    if job.exploration not in _kept:
        setup = pickle.loads(job.setup.value)
        core = Core(setup.model, setup.properties, setup.symmetric)
        tables = WorkerTables(setup.model, setup.properties, core.book.domains, setup.tables) if setup.tables else None
        _kept.clear()
        _kept[job.exploration] = WorkerMemory(setup, core, Folder(setup.folder), tables)
    version = job.exploration, job.version
    if version not in _numberings:
        _numberings.clear()
        _numberings[version] = pickle.loads(job.numbering.value)
    known = _kept[job.exploration]
    known.core.agree(_numberings[version], job.undecided)
    if known.tables:
        known.tables.written = []
        known.tables.agree()
    return known, _numberings[version]


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Learning makes many values that all stay: garbage collection among them is wasted.

    PySpark's worker collects garbage after every task, a tenth of a second each time. Objects that exist then are left out.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def expand_partition(job: Job, partition: int, plans: Iterator[PartitionTask]) -> Iterator[tuple[int, Any]]:
    """Expand a partition's states. Yields messages by partition: packed states, and for its own its plan and report."""
    (plan,) = plans  # read to the end: a process that has not read all of its input is not used again
    with _no_garbage_collection():
        yield from _expand_partition(job, partition, plan)


def _expand_partition(job: Job, partition: int, plan: PartitionTask) -> Iterator[tuple[int, Any]]:
    started = time.process_time()
    (setup, core, folder, tables), numbering = known_of(job)
    core.fired[:] = 0
    core.deadlocks, core.first_deadlock = 0, None
    found, successors = Distinct(core.wire), 0
    set_aside: list[Packed] = []
    error: RuleError | str | None = None

    rows = _TransitionRows(tables, core.wire, job.level - 1, partition) if tables else None

    def take(expanded: Expansion, sifted: bool) -> None:
        nonlocal successors
        successors += expanded.size
        found.add_successors(expanded.linear, expanded.size, setup.partitions)
        if rows:
            rows.add(expanded)

    try:
        for piece in plan.pieces:
            packed = read(folder, numbering, piece)
            if rows:
                rows.begin(packed, piece.states)
            aside = core.expand(packed, piece.states, take)
            if aside.size:
                states = packed[: piece.states * core.wire.size].reshape(piece.states, core.wire.size)
                set_aside.append(states[aside].reshape(-1))
    except RaisedError as raised:
        error = raised.error
    except ModelError as refusal:
        error = str(refusal)
    kept_aside = None
    if set_aside:
        waiting = np.concatenate(set_aside)
        count = waiting.size // core.wire.size
        name = folder.write_states("waiting", partition, waiting, core.wire.size, count)
        kept_aside = Piece(name, len(numbering.layouts) - 1, 0, count)
    if rows:
        rows.write()
    packed, first = found.by_home(setup.partitions)
    size = core.wire.size
    for home in range(setup.partitions):
        for begin in range(first[home], first[home + 1], MOST_STATES):
            end = min(begin + MOST_STATES, first[home + 1])
            yield home, encode(packed[begin * size : end * size], size, end - begin)
    report = Report(
        core.fired.tolist(),
        core.deadlocks,
        core.first_deadlock,
        core.new_values(),
        kept_aside,
        error,
        time.process_time() - started,
        successors,
        tables.written if tables else [],
    )
    yield partition, (plan, report)


def merge_partition(job: Job, partition: int, messages: Iterator[tuple[int, Any]]) -> Iterator[MergeResult]:
    """Keep what a partition is sent and has not visited; say what is new."""
    with _no_garbage_collection():
        yield _merge_partition(job, partition, messages)


def _merge_partition(job: Job, partition: int, messages: Iterator[tuple[int, Any]]) -> MergeResult:
    started = time.process_time()
    (_, core, folder, tables), numbering = known_of(job)
    size = core.wire.size
    candidates, received, received_bytes = Distinct(core.wire), 0, 0
    own: tuple[PartitionTask, Report] | None = None
    for _, message in messages:
        if isinstance(message, bytes):
            states, count = decode(message, size)
            candidates.add_packed(states, count)
            received, received_bytes = received + count, received_bytes + len(message)
        else:
            own = message
    assert own is not None, "a partition's own report did not arrive"
    plan, report = own
    rewritten = _to_rewrite(plan.visited, len(numbering.layouts) - 1)
    old: list[Packed] = []
    for place, run in enumerate(plan.visited):
        if not candidates.count and place < rewritten:
            continue
        for begin in range(0, run.states, MOST_READ):
            count = min(MOST_READ, run.states - begin)
            packed = read(folder, numbering, Piece(run.file, run.layout, begin, count))
            candidates.strike(packed, count)
            if place >= rewritten:
                old.append(packed[: count * size])
    packed, fresh = candidates.remaining()
    deciding: list[tuple[int, int]] = []
    try:
        deciding = core.test(packed, fresh, each_state=tables is not None) if job.undecided else []
    except RaisedError as raised:
        report = report._replace(error=raised.error)
    if tables and fresh:
        tables.write_states(core.wire, packed, fresh, job.level, deciding, partition)
    decided = [(bits, core.numbers_at(packed, number)) for bits, number in _first_for_each(deciding)]
    levels = [level for run in plan.visited[rewritten:] for level in run.levels]
    if fresh:
        levels.append((job.level, fresh))
    visited, replaced = list(plan.visited), list[str]()
    if old or fresh:
        content = np.concatenate([*old, packed[: fresh * size]]) if old else packed
        name = folder.write_states("states", partition, content, size, sum(count for _, count in levels))
        replaced = [run.file for run in plan.visited[rewritten:]]
        visited[rewritten:] = [StateFile(name, len(numbering.layouts) - 1, _joined(levels))]
    return MergeResult(
        partition,
        visited,
        replaced,
        fresh,
        core.represented(packed, fresh),
        decided,
        report,
        (received, received_bytes),
        time.process_time() - started,
        tables.written if tables else [],
    )


def _first_for_each(deciding: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """For each property, the first state that decides it."""
    seen, chosen = 0, []
    for bits, number in deciding:
        if bits & ~seen:
            seen |= bits
            chosen.append((bits, number))
    return chosen


class _TransitionRows:
    """Transitions of a task on their way to the tables."""

    def __init__(self, tables: WorkerTables, fields: Fields, depth: int, partition: int) -> None:
        self.tables, self.fields, self.depth, self.partition = tables, fields, depth, partition
        self._packed: Packed = np.zeros(0, np.uint8)
        self._states: Any = None
        self._parts: list[tuple[Any, Any, Any, Any]] = []

    def begin(self, packed: Packed, states: int) -> None:
        """The states that are expanded next."""
        self._packed = packed
        self._states = self.tables.keys(self.fields, packed, self.fields.size, states)

    def add(self, expanded: Expansion) -> None:
        """Successors of some of these states."""
        words = self.fields.words
        positions = np.repeat(expanded.positions, np.maximum(expanded.degrees, 0))
        targets = self.tables.keys(self.fields, expanded.linear.view(np.uint8), 8 * (words + 1), expanded.size)
        hashes = expanded.linear[: expanded.size * (words + 1)].reshape(-1, words + 1)[:, words].copy()
        errors = self.tables.answers(self.fields, self._packed, positions, hashes)
        self._parts.append((self._states[positions], targets, hashes, errors))
        if sum(len(part[2]) for part in self._parts) > MOST_ROWS:
            self.write()

    def write(self) -> None:
        """Write the collected transitions."""
        if any(len(part[2]) for part in self._parts):
            sources, targets, hashes, errors = (np.concatenate(column) for column in zip(*self._parts, strict=True))
            self.tables.write_transitions(sources, targets, hashes, errors, self.depth, self.partition)
        self._parts = []


def _to_rewrite(runs: list[StateFile], layout: int) -> int:
    """The first file whose states are rewritten together with new ones: few big files are read faster than many small ones.

    All files are rewritten if some have another layout. Otherwise the last ones are, when many are of like size. So a state
    is rewritten only as often as the number of states doubles.
    """
    if any(run.layout != layout for run in runs):
        return 0
    total, first = 0, len(runs)
    while first > 0 and (total >= runs[first - 1].states // 2 or len(runs) - first < 1):
        first -= 1
        total += runs[first].states
    return first if len(runs) - first >= 4 else len(runs)


def _joined(levels: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Merge neighbours of the same level."""
    joined: list[tuple[int, int]] = []
    for level, count in levels:
        if joined and joined[-1][0] == level:
            joined[-1] = level, joined[-1][1] + count
        else:
            joined.append((level, count))
    return tuple(joined)


def read(folder: Folder, numbering: Numbering, piece: Piece) -> Packed:
    """The states of a piece in the current layout."""
    packed, _ = folder.read(piece)
    if piece.layout == len(numbering.layouts) - 1:
        return packed
    return repacked(packed, piece.states, numbering.fields(piece.layout), numbering.fields())


class Predecessor(NamedTuple):
    """A state that leads to a wanted one, the number of the wanted one, and the action."""

    wanted: int
    state: Numbers
    action: int


def find_predecessors(job: Job, wanted: list[Numbers], plans: Iterator[PartitionTask]) -> Iterator[Predecessor]:
    """For each wanted state the first of a partition's states that leads to it, if one does."""
    with _no_garbage_collection():
        yield from _find_predecessors(job, wanted, plans)


def _find_predecessors(job: Job, wanted: list[Numbers], plans: Iterator[PartitionTask]) -> Iterator[Predecessor]:
    (_, core, folder, _), numbering = known_of(job)
    open_ones = set(range(len(wanted)))
    hashes = [hash_of(list(numbers), core.wire.arrays.weight) & int(HASH_MASK) for numbers in wanted]
    found: list[Predecessor] = []

    def look(packed: Packed) -> Callable[[Expansion, bool], None]:
        fields: Fields = core.wire

        def take(expanded: Expansion, sifted: bool) -> None:
            words = core.fields.words
            rows = expanded.linear[: expanded.size * (words + 1)].reshape(-1, words + 1)
            for number in sorted(open_ones):
                hits = np.flatnonzero((rows[:, words] & HASH_MASK) == np.uint64(hashes[number]))
                hits = hits[(rows[hits, :words] == pack(wanted[number], core.fields)).all(axis=1)]
                if hits.size:
                    first = int(hits[0])
                    ends = np.cumsum(np.maximum(expanded.degrees, 0))
                    position = int(expanded.positions[int(np.searchsorted(ends, first, side="right"))])
                    action = int(rows[first, words] & np.uint64(0xFFFF))
                    found.append(Predecessor(number, core.numbers_at(packed, position, fields), action))
                    open_ones.discard(number)

        return take

    for plan in plans:
        for piece in plan.pieces:
            if open_ones:
                packed = read(folder, numbering, piece)
                core.expand(packed, piece.states, look(packed), sifted=False)
    yield from found
