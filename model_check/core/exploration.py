"""The input and output of every engine."""

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from kspec.model_check.core.display import NotebookValue
from kspec.model_check.core.model import Action, Model, NotebookState, Property, State


class TraceStep(NamedTuple):
    """A state of a trace and the action that led to it (`None` for the initial state)."""

    action: Action | None
    state: State

    def _repr_html_(self) -> str | None:
        """The state for a notebook, if it knows its model."""
        return self.state._repr_html_() if isinstance(self.state, NotebookState) else None


Trace = tuple[TraceStep, ...]


class NotebookTrace(NotebookValue, Trace):
    """A trace that knows its model, and whose states do. It is equal to the plain tuple, and is pickled as that."""

    model: Model

    def __new__(cls, model: Model, steps: Iterable[TraceStep]) -> Self:
        """The trace of these steps."""
        made = super().__new__(cls, (step._replace(state=NotebookState(model, step.state)) for step in steps))
        made.model = model
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


class Progress(NamedTuple):
    """The progress of an exploration: levels, distinct states, transitions, states of this level left to expand, seconds."""

    level: int
    distinct_states: int
    transitions: int
    queue: int
    seconds: float = 0.0


@dataclass(slots=True)
class Limits:
    """Limits of an exploration: when to stop early, and how often to report."""

    stop_at_first: bool = True
    max_states: int | None = None
    max_seconds: float | None = None
    deadlock_is_violation: bool = False
    report: Callable[[Progress], None] | None = None
    report_every: float = 0.5
    spent: float = 0.0
    """Seconds of `max_seconds` that have passed before the exploration begins."""


INTERRUPTED = "interrupted"
"""The reason why an exploration ended that Ctrl-C stopped."""


class CheckpointError(ValueError):
    """A folder that cannot hold this exploration's checkpoints, or whose checkpoint cannot be resumed."""


class CheckpointPlan(NamedTuple):
    """The folder in which an exploration keeps checkpoints, the seconds between them, and whether it resumes from an
    existing one.

    `tell` is called with a sentence when a checkpoint is left behind or could not be written. `address` is the folder as
    it was given: for engine spark it may be a URL.
    """

    folder: Path
    tell: Callable[[str], None]
    resume: bool = False
    every: float = 60.0
    address: str = ""


@dataclass(slots=True)
class Verdict:
    """A property's verdict: `holds` is `None` while the exploration cannot tell.

    `trace` is a shortest counterexample of an `always`, a shortest witness of a `sometimes`.
    """

    prop: Property
    holds: bool | None = None
    trace: Trace | None = None

    @property
    def violated(self) -> bool:
        """Whether an `always` fails. A `sometimes` that is never reached is only a warning: bounds may be too small."""
        return self.holds is False and self.prop.kind == "always"


@dataclass(slots=True)
class Exploration(NotebookValue):
    """The outcome: numbers, verdicts, deadlocks. `complete` says that every reachable state was expanded.

    `levels` holds the number of distinct states at each distance from the initial one; the number of levels is TLC's depth.
    With `symmetry`, `represented` counts the states that the visited ones stand for, including themselves. An engine with
    further results inherits from this class and adds `details`.
    """

    model: Model
    engine: str
    verdicts: list[Verdict]
    deadlock_is_violation: bool = False
    symmetry: bool = False
    stopped_because: str | None = None
    levels: list[int] = field(default_factory=list)
    actions: dict[str, int] = field(default_factory=dict)
    deadlocks: int = 0
    deadlock_trace: Trace | None = None
    duration_s: float = 0.0
    represented: int | None = None
    interrupted: bool = False
    """Whether Ctrl-C came, also if the exploration had ended by itself by then."""

    def __post_init__(self) -> None:
        self.model.check_properties()
        self.actions = dict.fromkeys(self.model.action_names, 0)

    def finish(self, clock: "Clock", real_trace: Callable[[Trace], Trace] | None = None) -> Self:
        """Decide what only a complete exploration can decide, and stop the clock.

        `real_trace` turns the traces found, which lead through canonical states, into runs of the model.
        """
        if real_trace:
            for verdict in self.verdicts:
                verdict.trace = real_trace(verdict.trace) if verdict.trace else None
            self.deadlock_trace = real_trace(self.deadlock_trace) if self.deadlock_trace else None
        for verdict in self.verdicts:
            verdict.trace = NotebookTrace(self.model, verdict.trace) if verdict.trace else None
        self.deadlock_trace = NotebookTrace(self.model, self.deadlock_trace) if self.deadlock_trace else None
        if self.complete:
            for verdict in self.verdicts:
                if verdict.holds is None:
                    verdict.holds = verdict.prop.kind == "always"
        self.duration_s = clock.elapsed
        return self

    def details(self) -> dict[str, Any]:
        """The results that only this engine has, as JSON by name."""
        return {}

    @property
    def complete(self) -> bool:
        return self.stopped_because is None

    @property
    def distinct_states(self) -> int:
        return sum(self.levels)

    @property
    def transitions(self) -> int:
        return sum(self.actions.values())

    @property
    def depth(self) -> int:
        return len(self.levels)

    @property
    def violated(self) -> bool:
        return any(verdict.violated for verdict in self.verdicts) or (self.deadlock_is_violation and self.deadlocks > 0)


def uninterrupted(result: Exploration) -> Exploration:
    """The result, unless Ctrl-C has stopped the exploration: then `KeyboardInterrupt`, so that nothing follows."""
    if result.interrupted or result.stopped_because == INTERRUPTED:
        raise KeyboardInterrupt
    return result


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """States hold no reference cycles, so searching millions of tuples for cycles only costs time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Clock:
    """Checks an engine's limits: whether to report progress, and whether to stop.

    `earlier` is the number of seconds that an exploration took before it was resumed from a checkpoint. A time limit
    applies only to the time after that.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.earlier = 0.0
        self.started = time.monotonic()
        self._next_report = self.started + limits.report_every

    @property
    def elapsed(self) -> float:
        return self.earlier + time.monotonic() - self.started

    @property
    def out_of_time(self) -> str:
        """The reason why the exploration must stop, if no time is left."""
        return f"the time limit of {self.limits.max_seconds:g} s is reached"

    def tick(self, progress: Progress) -> str | None:
        """Report progress if it is time to; return why the exploration must stop now, or `None` if it need not."""
        now = time.monotonic()
        if self.limits.report and now >= self._next_report:
            self._next_report = now + self.limits.report_every
            self.limits.report(progress._replace(seconds=self.elapsed))
        if self.limits.max_states is not None and progress.distinct_states >= self.limits.max_states:
            return f"the limit of {self.limits.max_states:,} states is reached"
        if self.limits.max_seconds is not None and now - self.started + self.limits.spent >= self.limits.max_seconds:
            return self.out_of_time
        return None
