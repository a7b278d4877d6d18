"""The first levels of a search, explored by the driver, because a small level is not worth a Spark job.

The compiled engine explores whole levels until one of them has more than `most` states, or `MANY_LEVELS` times as many are
visited in total. So the driver never holds more than that and one level. Random walks then meet slot values of deeper
levels: a value that has its number in advance makes no state wait (see `core`).
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kspec.model_check.core.exploration import Limits, Progress, Trace
from kspec.model_check.core.model import Model, Property
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.compiled.interning import Domain, distinct
from kspec.model_check.engines.compiled.kernels import SHARDS, repack
from kspec.model_check.engines.compiled.layout import Fields
from kspec.model_check.engines.compiled.search import Search
from kspec.model_check.engines.simulation.simulate import Fleet, WalkPlan
from kspec.model_check.engines.spark.worker.core import PADDING, Numbers, Packed
from kspec.model_check.engines.spark.worker.kernels import homes_of
from kspec.model_check.engines.spark.worker.runs import Folder, StateFile

MANY_LEVELS = 16
WALKS = WalkPlan(seed=1, traces=1 << 9, depth=100)
_HANDED_ON = "Spark goes on"


class HeadState(NamedTuple):
    """A state that matters: its level, the numbers of its values, and a shortest run to it."""

    level: int
    state: Numbers
    trace: Trace | None


class HeadSearch(Search):
    """The compiled engine up to the first level that is too wide."""

    def __init__(
        self,
        model: Model,
        properties: list[Property],
        limits: Limits,
        workers: int,
        symmetry: Symmetry | None,
        most: int,
    ) -> None:
        super().__init__(model, properties, limits, workers, None, symmetry)
        self.most = most

    def expand_level(self, start: NDArray[np.int64], end: NDArray[np.int64], position: int) -> None:
        frontier = int((end - start).sum())
        stops = self.result.violated and self.limits.stop_at_first
        if stops or frontier > self.most or self.store.states > MANY_LEVELS * self.most:
            self.result.stopped_because = _HANDED_ON
        else:
            super().expand_level(start, end, position)

    def must_stop(self, queue: int) -> str | None:
        """A level is finished in any case, unless Ctrl-C ends everything."""
        self.clock.tick(Progress(len(self.levels) - 1, self.store.states, int(self.fired.sum()), queue))
        return "interrupted" if self.interrupted else None


class Head:
    """The first levels of a search."""

    def __init__(
        self, model: Model, properties: list[Property], limits: Limits, workers: int, symmetry: Symmetry | None, most: int
    ) -> None:
        self._search = search = HeadSearch(
            model, properties, replace(limits, max_states=None, max_seconds=None), workers, symmetry, most
        )
        self._result = search.run()
        if search.interrupted or self._result.stopped_because == "interrupted":
            raise KeyboardInterrupt

    @property
    def complete(self) -> bool:
        """Whether there is nothing beyond these levels."""
        return self._result.complete

    @property
    def levels(self) -> list[int]:
        return self._result.levels

    @property
    def fired(self) -> NDArray[np.int64]:
        return self._search.fired

    @property
    def deadlocks(self) -> int:
        return self._search.deadlocks

    @property
    def represented(self) -> int:
        return self._result.represented or 0

    @property
    def values(self) -> list[list[Any]]:
        """The values of slots by number, for each domain."""
        return [domain.values for domain in distinct(self._search.book.domains[: len(self._search.model.slots)])]

    def found(self) -> dict[int, HeadState]:
        """The states that decide properties, by the property's number."""
        return {
            number: self._met(found, self._result.verdicts[number].trace) for number, found in self._search.found.items()
        }

    def first_deadlock(self) -> HeadState | None:
        found = self._search.first_deadlock
        return None if found is None else self._met(found, self._result.deadlock_trace)

    def _met(self, found: Any, trace: Trace | None) -> HeadState:
        return HeadState(found.level, tuple(self._search.store.numbers_at(*found.place)), trace)

    def write(self, folder: Folder, fields: Fields, layout: int, partitions: int) -> list[list[StateFile]]:
        """Write each state to its partition, in this layout with this number; returns each partition's files."""
        content: list[list[Packed]] = [[] for _ in range(partitions)]
        levels: list[list[tuple[int, int]]] = [[] for _ in range(partitions)]
        for level in range(len(self.levels)):
            packed, count = self._packed(level, fields)
            homes = np.empty(count, np.uint16)
            homes_of(fields.arrays, packed, fields.size, partitions, homes)
            rows = packed[: count * fields.size].reshape(count, fields.size)
            for home in np.unique(homes).tolist():
                own = rows[homes == home]
                content[home].append(own.reshape(-1))
                levels[home].append((level, len(own)))
        runs: list[list[StateFile]] = []
        for home in range(partitions):
            count = sum(states for _, states in levels[home])
            if count:
                name = folder.write_states("states", home, np.concatenate(content[home]), fields.size, count)
                runs.append([StateFile(name, layout, tuple(levels[home]))])
            else:
                runs.append([])
        return runs

    def _packed(self, level: int, fields: Fields) -> tuple[Packed, int]:
        """The states of a level in this layout."""
        store, start, end = self._search.store, self._search.levels[level], self._search.levels[level + 1]
        packed = np.zeros(int((end - start).sum()) * fields.size + PADDING, np.uint8)
        done = 0
        for shard in range(SHARDS):
            count = int(end[shard] - start[shard])
            if count:
                first = int(store.base[shard] + start[shard])
                repack(store.fields.arrays, fields.arrays, store.content, first, packed, done, count)
            done += count
        return packed, done


def number_values_ahead(model: Model, domains: Sequence[Domain], workers: int) -> None:
    """Give numbers to the values that random walks meet."""
    fleet = Fleet(model, [], WALKS, workers)
    with suppress(Exception):  # a rule's error counts only if the search reaches that state, and is raised again there
        fleet.take(lambda ended: None)
    if fleet.interrupted:
        raise KeyboardInterrupt
    met = distinct(fleet.book.domains[: len(model.slots)])
    for domain, other in zip(distinct(domains), met, strict=True):
        domain.number_all(other.values)
