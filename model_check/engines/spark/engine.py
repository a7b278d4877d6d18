"""The driver of engine `spark`: one job for each level, or part of a level, of a breadth-first search.

The driver knows numbers of values, names of files and counts. It knows no states except those that it shows.
"""

import os
import pickle
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kspec.model_check.core.exploration import (
    CheckpointError,
    CheckpointPlan,
    Clock,
    Exploration,
    Limits,
    Progress,
    Trace,
    TraceStep,
    Verdict,
)
from kspec.model_check.core.model import Model, ModelError, Property, State
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.compiled.checkpoint import identity
from kspec.model_check.engines.compiled.interning import Domain, distinct, domains_of
from kspec.model_check.engines.compiled.layout import Fields, compact_fields, wide_fields
from kspec.model_check.engines.compiled.orbits import OrbitBook, canonical_numbers
from kspec.model_check.engines.compiled.rulebook import raise_again
from kspec.model_check.engines.compiled.search import spare_bits
from kspec.model_check.engines.spark.checkpoint import SparkCheckpoint
from kspec.model_check.engines.spark.head import Head, HeadState, number_values_ahead
from kspec.model_check.engines.spark.session import (
    SparkError,
    SparkSettings,
    check_master,
    collected,
    is_local,
    send_files,
    spark_context,
)
from kspec.model_check.engines.spark.shuffles import LevelWork, Shuffles, SparkExploration
from kspec.model_check.engines.spark.worker.core import Numbering, Numbers, RuleError, pack
from kspec.model_check.engines.spark.worker.kernels import home_of
from kspec.model_check.engines.spark.worker.runs import Folder, FolderError, Piece, StateFile, pieces_of, slice_of
from kspec.model_check.engines.spark.worker.tables import WorkerTables
from kspec.model_check.engines.spark.worker.tasks import (
    ExplorationSetup,
    Job,
    MergeResult,
    PartitionTask,
    Predecessor,
    expand_partition,
    find_predecessors,
    merge_partition,
)

MOST_AT_A_TIME = 1 << 21
"""The most states of one partition that a job expands: more would exceed the memory of a task."""

PARTITIONS_PER_CORE = 1
MOST_PARTITIONS = 1 << 16


class SparkTracedState(NamedTuple):
    """A state whose trace is wanted, and its level."""

    level: int
    state: Numbers


def explore(
    model: Model,
    properties: list[Property],
    limits: Limits,
    settings: SparkSettings | None = None,
    symmetry: Symmetry | None = None,
    checkpointing: CheckpointPlan | None = None,
) -> SparkExploration:
    """Visit every reachable state, level by level, on Spark.

    Raises `SparkError` if Spark cannot do what is asked, and `CheckpointError` if `checkpointing` asks for something
    impossible.
    """
    settings = settings or SparkSettings()
    if settings.partitions is not None and not 1 <= settings.partitions <= MOST_PARTITIONS:
        raise SparkError(f"--partitions {settings.partitions}: must be from 1 to {MOST_PARTITIONS:,}")
    if checkpointing is not None and settings.spill is not None:
        raise SparkError("checkpoints hold the states; leave --spill out")
    if checkpointing is not None and settings.tables is not None:
        raise SparkError("tables are of one undisturbed exploration: leave --checkpoint and --resume out, or --tables")
    if symmetry is not None and settings.tables is not None:
        raise SparkError("tables are of all states: leave --symmetry out, or --tables")
    if settings.master is not None:
        check_master(settings.master)
        if settings.spill is None and checkpointing is None:
            _check_folder(settings.master)
    _check_writable("--spill", settings.spill)
    _check_writable("--tables", settings.tables)
    asked = Exploration(model, "spark", [Verdict(prop) for prop in properties], symmetry=symmetry is not None)
    checkpoint = SparkCheckpoint(checkpointing, identity(asked)) if checkpointing else None
    useful = symmetry if model.interchangeable else None
    with spark_context(settings) as context, states_folder(settings, context, checkpoint) as folder:
        result = SparkSearch(model, properties, limits, settings, useful, context, folder, checkpoint).run()
    if symmetry is not None and useful is None:  # no two brokers are interchangeable: each state stands for itself
        result.symmetry, result.represented = True, result.distinct_states
    return result


def _check_folder(master: str) -> None:
    """Refuse a master whose executors do not reach this machine's files, where no folder is given."""
    if not is_local(master):
        raise SparkError(
            f"master {master} needs --spill DIR: a folder that driver and executors all reach, such as hdfs://… or s3://…"
        )


def _check_writable(option: str, folder: str | None) -> None:
    """Refuse a local folder that cannot be written to, before Spark starts."""
    if folder is None or "://" in folder:
        return
    path = Path(folder).absolute()
    there = next(known for known in (path, *path.parents) if known.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise SparkError(f"{option} {folder}: {there} is not a folder that can be written to")


@contextmanager
def states_folder(settings: SparkSettings, context: Any, checkpoint: SparkCheckpoint | None = None) -> Iterator[Folder]:
    """The folder of states: with the checkpoints, else a temporary folder that is removed at the end."""
    if checkpoint is not None:
        yield checkpoint.folder
        return
    name = f"kspec-{uuid.uuid4().hex}"
    try:
        with ExitStack() as stack:
            if settings.spill is None:
                _check_folder(context.master)
                local = tempfile.mkdtemp(prefix="kspec-spark-")
                stack.callback(shutil.rmtree, local, ignore_errors=True)
                folder = Folder(local)
            else:
                folder = Folder(f"{settings.spill.rstrip('/')}/{name}")
                stack.callback(folder.remove_all)
            folder.create()
            yield folder
    except FolderError as error:
        raise SparkError(f"--spill {error}") from error


class SparkSearch:
    """One exploration on Spark: the driver's part, level by level."""

    def __init__(
        self,
        model: Model,
        properties: list[Property],
        limits: Limits,
        settings: SparkSettings,
        symmetry: Symmetry | None,
        context: Any,
        folder: Folder,
        checkpoint: SparkCheckpoint | None = None,
    ) -> None:
        from pyspark import cloudpickle  # noqa: PLC0415 (an extra)

        send_files(context, model)
        self.model, self.properties, self.limits, self.symmetry = model, properties, limits, symmetry
        self.context, self.folder, self.checkpoint = context, folder, checkpoint
        self.clock = Clock(limits)
        known = checkpoint.load() if checkpoint and checkpoint.resumes else None
        if known and settings.partitions not in (None, len(known[2])):
            raise CheckpointError(f"the checkpoint has {len(known[2])} partitions, not {settings.partitions}")
        self.partitions = len(known[2]) if known else settings.partitions or PARTITIONS_PER_CORE * context.defaultParallelism
        verdicts = [Verdict(prop) for prop in properties]
        self.result = SparkExploration(model, "spark", verdicts, limits.deadlock_is_violation, symmetry is not None)
        self.exploration = uuid.uuid4().hex
        setup = ExplorationSetup(model, properties, symmetry is not None, folder.url, self.partitions, settings.tables)
        dumps: Any = cloudpickle.dumps
        self.setup = context.broadcast(dumps(setup))
        self.domains = domains_of(model)[: len(model.slots)]
        self.tables = _tables(model, properties, self.domains, settings.tables)
        initial = [domain.number(value) for domain, value in zip(self.domains, model.initial, strict=True)]
        self.orbits = OrbitBook(symmetry, self.domains) if symmetry else None
        if self.orbits:
            self.orbits.extend()
        self.fields = wide_fields(self.counts)
        self.numbers: Any = None
        self.numbering = Numbering(0, [], [])
        self._number_anew()
        self.visited: list[list[StateFile]] = [[] for _ in range(self.partitions)]
        self.levels: list[int] = []
        self.complete = False
        """Whether the driver has explored everything by itself."""
        self.fired = np.zeros(max(1, len(model.actions)), np.int64)
        self.deadlocks, self.represented = 0, 0
        self.found: dict[int, SparkTracedState] = {}
        self.first_deadlock: SparkTracedState | None = None
        self.traces: dict[SparkTracedState, Trace] = {}
        self.position = 0
        self.work: list[LevelWork] = []
        if known:
            self._resume(*known)
        else:
            # Tables are written by tasks, and a limit on states may be a small one.
            by_driver = 0 if settings.tables or limits.max_states is not None else settings.driver_states
            if by_driver:
                self._begin_with_head(by_driver)
            else:
                self._begin(initial)
            self._come_to_rest()
            self._save()

    @property
    def counts(self) -> list[int]:
        """The number of values of each slot."""
        return [len(domain) for domain in self.domains]

    def _begin(self, initial: list[int]) -> None:
        """Start with the initial state."""
        layout, words = self.fields.arrays, self.fields.words
        if self.orbits:
            initial = canonical_numbers(self.orbits.arrays(), layout, words, initial)
        packed = pack(initial, self.fields)
        home = int(home_of(layout, packed, self.partitions))
        name = self.folder.write_states("states", home, packed.view(np.uint8), self.fields.size, 1)
        self.visited[home].append(StateFile(name, len(self.numbering.layouts) - 1, ((0, 1),)))
        self.levels.append(1)
        decided = 0
        for number, prop in enumerate(self.properties):
            if prop.bind()(self.model.initial) != (prop.kind == "always"):
                self.found[number] = SparkTracedState(0, tuple(initial))
                decided |= 1 << number
        if self.tables:
            self.tables.agree()
            self.tables.write_states(self.fields, packed.view(np.uint8), 1, 0, [(decided, 0)], home)
        if self.symmetry:
            self.represented = len(set(self.symmetry.images(self.model.initial)))

    def _begin_with_head(self, most: int) -> None:
        """Start with the levels that the driver explores by itself: the first ones, of up to `most` states."""
        cores = self.context.defaultParallelism if is_local(self.context.master) else os.cpu_count() or 1
        head = Head(self.model, self.properties, self.limits, cores, self.symmetry, most)
        for domain, values in zip(distinct(self.domains), head.values, strict=True):
            domain.number_all(values)
        if not head.complete:
            number_values_ahead(self.model, self.domains, cores)
        if self.orbits:
            self.orbits.extend()
        self.levels = list(head.levels)
        self.fields = self._fitting_fields()
        self._number_anew()
        if self.checkpoint or not head.complete:
            self.visited = head.write(self.folder, self.fields, len(self.numbering.layouts) - 1, self.partitions)
        self.fired[:] = head.fired
        self.deadlocks, self.represented, self.complete = head.deadlocks, head.represented, head.complete
        if head.complete:
            self.position = self.levels[-1]
        self.found = {number: self._met(met) for number, met in head.found().items()}
        deadlock = head.first_deadlock()
        self.first_deadlock = deadlock and self._met(deadlock)

    def _met(self, met: HeadState) -> SparkTracedState:
        """A state that the driver has met by itself. If a run to it is known, it is kept."""
        found = SparkTracedState(met.level, met.state)
        if met.trace:
            self.traces[found] = met.trace
        return found

    def _come_to_rest(self) -> None:
        """Remember this moment: a checkpoint describes it if the next job is not completed."""
        if self.checkpoint:
            self._rest = self._moment(), [list(runs) for runs in self.visited]

    def _save(self, last: bool = False) -> None:
        if self.checkpoint:
            moment, visited = self._rest
            self.checkpoint.save(moment, self.numbering, visited, last)

    def _moment(self) -> dict[str, Any]:
        """The knowledge between two jobs, besides states and numbers of values."""
        return {
            "levels": list(self.levels),
            "position": self.position,
            "fired": self.fired.tolist(),
            "deadlocks": self.deadlocks,
            "first_deadlock": self.first_deadlock,
            "found": dict(self.found),
            "represented": self.represented,
            "work": list(self.work),
            "seconds": self.clock.elapsed,
        }

    def _resume(self, moment: dict[str, Any], numbering: Numbering, visited: list[list[StateFile]]) -> None:
        """Restore the search from the checkpoint."""
        for domain, values in zip(distinct(self.domains), numbering.values, strict=True):
            domain.renumber(values)
        self.numbering = numbering
        self.fields = numbering.fields()
        self._number_anew()
        self.visited = visited
        self.levels, self.position = moment["levels"], moment["position"]
        self.fired[:] = moment["fired"]
        self.deadlocks, self.represented = moment["deadlocks"], moment["represented"]
        self.first_deadlock = moment["first_deadlock"] and _found(moment["first_deadlock"])
        self.found = {int(number): _found(found) for number, found in moment["found"].items()}
        self.work = [LevelWork(*work) for work in moment["work"]]
        self.clock.earlier = moment["seconds"]

    # ---- the search

    def run(self) -> SparkExploration:
        try:
            self._note_decisions()
            while not self.complete and self._expand_level():
                self.position = 0
        except (KeyboardInterrupt, _JobTimeError) as stop:
            out_of_time = isinstance(stop, _JobTimeError)
            self.result.stopped_because = self.clock.out_of_time if out_of_time else "interrupted"
            self._save(last=True)
        self._conclude()
        result = self.result.finish(self.clock)
        if self.tables:
            self.tables.write_verdicts(result)
        return result

    def _expand_level(self) -> bool:
        """Expand the states of the last level, some at a time; returns whether there were new states."""
        level = len(self.levels) - 1
        frontier = max(sum(piece.states for piece in pieces_of(runs, level)) for runs in self.visited)
        while self.position < frontier:
            self._come_to_rest()
            self.result.stopped_because = self._must_stop(level)
            if self.result.stopped_because:
                self._save(last=True)
                return False
            if self.checkpoint and self.checkpoint.due:
                self._save()
            end = min(frontier, self.position + self._most_at_a_time())
            pieces = [slice_of(pieces_of(runs, level), self.position, end) for runs in self.visited]
            while any(pieces):
                pieces = self._job(level + 1, pieces)
            self.position = end
            self._note_decisions()
        return len(self.levels) > level + 1

    def _most_at_a_time(self) -> int:
        """The most states of a partition in a job: fewer near a limit on states, to overshoot it less."""
        if self.limits.max_states is None:
            return MOST_AT_A_TIME
        left = self.limits.max_states - sum(self.levels)
        return max(1, min(MOST_AT_A_TIME, max(256, left // 4) // self.partitions))

    def _must_stop(self, level: int) -> str | None:
        if self.result.violated and self.limits.stop_at_first:
            return "a property is violated"
        queue = sum(max(0, piece.states - self.position) for runs in self.visited for piece in pieces_of(runs, level))
        return self.clock.tick(Progress(level, sum(self.levels), int(self.fired.sum()), queue))

    def _job(self, level: int, pieces: Sequence[list[Piece]]) -> list[list[Piece]]:
        """Expand these states of each partition; returns those that must wait until new values have numbers."""
        job, began = self._described(level), time.monotonic()
        plans = [PartitionTask(own, runs) for own, runs in zip(pieces, self.visited, strict=True)]
        expanded = self.context.parallelize(plans, self.partitions).mapPartitionsWithIndex(partial(expand_partition, job))
        merged = expanded.partitionBy(self.partitions, _home).mapPartitionsWithIndex(partial(merge_partition, job))
        outcomes: list[MergeResult] = sorted(self._collected(merged), key=lambda outcome: outcome.partition)
        for outcome in outcomes:
            if outcome.report.error is not None:
                self._raise_again(outcome.report.error)
        for outcome in outcomes:
            self._take(outcome, level)
        self.folder.remove([piece.file for own in pieces for piece in own if piece.file.startswith("waiting/")])
        self._number([outcome.report.new_values for outcome in outcomes])
        self._note_work(level, outcomes, time.monotonic() - began)
        return [[outcome.report.set_aside] if outcome.report.set_aside else [] for outcome in outcomes]

    def _note_work(self, level: int, outcomes: Sequence[MergeResult], seconds: float) -> None:
        """Add a job to the work of its level."""
        work = LevelWork(
            level,
            1,
            sum(outcome.report.successors for outcome in outcomes),
            sum(outcome.received[0] for outcome in outcomes),
            sum(outcome.received[1] for outcome in outcomes),
            sum(outcome.fresh for outcome in outcomes),
            seconds,
            sum(outcome.report.seconds for outcome in outcomes),
            sum(outcome.seconds for outcome in outcomes),
        )
        if self.work and self.work[-1].level == level:
            work = work.added_to(self.work.pop())
        self.work.append(work)

    def _described(self, level: int) -> Job:
        undecided = tuple(number for number in range(len(self.properties)) if self.tables or number not in self.found)
        return Job(self.exploration, self.setup, self.numbers, self.numbering.version, level, undecided)

    def _collected(self, tasks: Any) -> list[Any]:
        """The results of the tasks; raises `_JobTimeError` if time runs out first."""
        out_of_time = threading.Event()

        def cancel() -> None:
            out_of_time.set()
            self.context.cancelAllJobs()

        timer = None
        if self.limits.max_seconds is not None:
            timer = threading.Timer(max(0.0, self.clock.started + self.limits.max_seconds - time.monotonic()), cancel)
            timer.start()
        try:
            return collected(tasks)
        except SparkError as error:
            if out_of_time.is_set():
                raise _JobTimeError from error
            raise
        finally:
            if timer:
                timer.cancel()

    def _take(self, outcome: MergeResult, level: int) -> None:
        report = outcome.report
        self.visited[outcome.partition] = outcome.visited
        if self.checkpoint:
            self.checkpoint.replaced(outcome.replaced)
        else:
            self.folder.remove(outcome.replaced)
        self.fired += np.array(report.fired, np.int64)
        self.deadlocks += report.deadlocks
        if report.first_deadlock is not None and self.first_deadlock is None:
            self.first_deadlock = SparkTracedState(level - 1, report.first_deadlock)
        self.represented += outcome.represented
        if outcome.fresh:
            if len(self.levels) == level:
                self.levels.append(0)
            self.levels[level] += outcome.fresh
        for decided, state in outcome.decided:
            for number in range(len(self.properties)):
                if decided >> number & 1:
                    self.found.setdefault(number, SparkTracedState(level, state))
        if self.tables:
            self.tables.written += [*outcome.tables, *report.tables]

    def _note_decisions(self) -> None:
        for number, verdict in enumerate(self.result.verdicts):
            if number in self.found:
                verdict.holds = verdict.prop.kind == "sometimes"
        self.result.deadlocks = self.deadlocks

    # ---- numbers of values

    def _number(self, reports: Sequence[list[list[Any]]]) -> None:
        """Give numbers, which all processes will use, to the new values that processes have met."""
        before = self.counts
        domains = distinct(self.domains)
        for new_values in reports:
            for domain, values in zip(domains, new_values, strict=True):
                domain.number_all(values)
        if self.orbits:
            self.orbits.extend()
        fields = self._fitting_fields()
        if not self.fields.has_room(self.counts) or fields.size < self.fields.size:
            self.fields = fields
        elif self.counts == before:
            return
        self._number_anew()

    def _fitting_fields(self) -> Fields:
        spare = spare_bits(sum(self.levels))
        return wide_fields(self.counts) if spare is None else compact_fields(self.counts, spare)

    def _number_anew(self) -> None:
        layout = self.fields.widths, tuple(self.fields.arrays.word.tolist())
        layouts = self.numbering.layouts + [layout] * (layout not in self.numbering.layouts[-1:])
        values = [list(domain.values) for domain in distinct(self.domains)]
        if self.numbers is not None:
            self.numbers.unpersist()
        self.numbering = Numbering(self.numbering.version + 1, values, layouts)
        self.numbers = self.context.broadcast(pickle.dumps(self.numbering))

    # ---- outcomes

    def _conclude(self) -> None:
        """Fill in the numbers and rebuild the traces."""
        result = self.result
        result.levels[:] = self.levels
        for action, count in zip(self.model.actions, self.fired.tolist(), strict=False):
            result.actions[action.name] += count
        result.deadlocks = self.deadlocks
        if self.symmetry:
            result.represented = self.represented
        wanted = {*self.found.values(), *([self.first_deadlock] if self.first_deadlock else [])}
        traces = self.traces | self._traces_to(wanted - self.traces.keys())
        result.shuffles = Shuffles(self.partitions, self.fields.size, self.work)
        for number, found in self.found.items():
            result.verdicts[number].trace = traces[found]
        if self.first_deadlock:
            result.deadlock_trace = traces[self.first_deadlock]
        if self.tables:
            self.tables.folder.remove([name for name in self.tables.folder.names() if name not in set(self.tables.written)])

    def _traces_to(self, wanted: set[SparkTracedState]) -> dict[SparkTracedState, Trace]:
        """Shortest runs to some states, found backwards: each earlier level is expanded until it leads to them."""
        passed = {found: [found.state] for found in wanted}
        actions: dict[SparkTracedState, list[int]] = {found: [] for found in wanted}
        for level in range(max((found.level for found in wanted), default=0), 0, -1):
            under_way = [found for found in sorted(wanted) if found.level >= level]
            targets = sorted({passed[found][0] for found in under_way})
            before = self._predecessors(level, targets)
            for found in under_way:
                predecessor = before[passed[found][0]]
                passed[found].insert(0, predecessor.state)
                actions[found].insert(0, predecessor.action)
        return {found: self._trace(passed[found], actions[found]) for found in wanted}

    def _predecessors(self, level: int, targets: list[Numbers]) -> dict[Numbers, Predecessor]:
        plans = [PartitionTask(pieces_of(runs, level - 1), []) for runs in self.visited]
        tasks = self.context.parallelize(plans, self.partitions).mapPartitions(
            partial(find_predecessors, self._described(level), targets)
        )
        before: dict[Numbers, Predecessor] = {}
        for predecessor in self._collected(tasks):
            before.setdefault(targets[predecessor.wanted], predecessor)
        return before

    def _trace(self, passed: list[Numbers], actions: list[int]) -> Trace:
        if self.symmetry:
            return self.symmetry.real_trace([self._state(numbers) for numbers in passed])
        state = self.model.initial
        trace = [TraceStep(None, state)]
        for number in actions:
            action = self.model.actions[number]
            successor = action.bind()(state)
            assert successor is not None, f"{action.label} is not enabled where the search took it"
            state = successor
            trace.append(TraceStep(action, state))
        return tuple(trace)

    def _state(self, numbers: Numbers) -> State:
        return tuple(domain.values[number] for domain, number in zip(self.domains, numbers, strict=True))

    def _raise_again(self, error: RuleError | str) -> None:
        """Raise again the error that a rule raised in a task."""
        if isinstance(error, str):
            raise ModelError(error)
        state = self._state(error.state)
        if error.action is None:
            for prop in self.properties:
                prop.bind()(state)
            raise AssertionError("a property raised an error once, and not again")
        raise_again(self.model, state, error.action)


def _found(where: Any) -> SparkTracedState:
    level, state = where
    return SparkTracedState(level, tuple(state))


def _tables(model: Model, properties: list[Property], domains: list[Domain], url: str | None) -> WorkerTables | None:
    """The tables in an empty folder, if they are asked for; `SparkError` if it cannot be used."""
    if url is None:
        return None
    try:
        tables = WorkerTables(model, properties, domains, url)
        tables.folder.create()
        names = tables.folder.names()
    except FolderError as error:
        raise SparkError(f"--tables {error}") from error
    if names:
        raise SparkError(f"--tables {url} holds files already ({min(names)}); tables need an empty folder")
    return tables


class _JobTimeError(Exception):
    """There was no time left for a job."""


def _home(home: int) -> int:
    """Messages carry the number of their partition."""
    return home
