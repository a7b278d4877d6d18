"""The compiled core in a worker process of Spark: it expands packed states, and tests them, with tables of its own.

Every process learns the rules by itself and so meets values in its own order. Data sent between processes contains the
numbers that the driver has given to values (`Numbering`). A value that is new to a process first has a local number there,
above all given ones. A state whose successor holds such a value is set aside until the driver has given it a number.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kspec.model_check.core.model import Model, Property
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.compiled import kernels
from kspec.model_check.engines.compiled.interning import distinct
from kspec.model_check.engines.compiled.layout import Fields, fields_at, wide_fields
from kspec.model_check.engines.compiled.orbits import OrbitBook, canonicalize, represented
from kspec.model_check.engines.compiled.rulebook import RuleBook
from kspec.model_check.engines.compiled.search import CHUNK, CHUNK_OUTPUT, MISSES, RECENT
from kspec.model_check.engines.spark.worker.kernels import sift

PADDING = 8
"""Bytes behind packed states: kernels read whole words."""

Packed = NDArray[np.uint8]
"""Packed states, one right after another, and `PADDING`."""

Numbers = tuple[int, ...]
"""A state by the numbers of its values."""

ChosenLayout = tuple[tuple[int, ...], tuple[int, ...]]
"""Bits of each slot, and its word."""

_NONE = np.zeros(0, np.int64)


class Numbering(NamedTuple):
    """The common numbering of all processes: the values of slots by number, for each domain, and how states are packed.

    `layouts` are all layouts that have been used; new files and messages use the last one.
    """

    version: int
    values: list[list[Any]]
    layouts: list[ChosenLayout]

    def fields(self, layout: int = -1) -> Fields:
        """A layout by its number; by default the current one."""
        widths, words = self.layouts[layout]
        return fields_at(list(widths), list(words))


class RuleError(NamedTuple):
    """A rule raised an error in a state, when this action was taken; no action: a term of a property did."""

    state: Numbers
    action: int | None


class Expansion(NamedTuple):
    """Successors of some states: `linear` holds `size` of them, each with a word of hash and action behind it."""

    linear: NDArray[np.uint64]
    size: int
    positions: NDArray[np.int64]
    degrees: NDArray[np.int64]


class Core:
    """A model's tables, as far as this process has learned them."""

    def __init__(self, model: Model, properties: Sequence[Property], symmetric: bool) -> None:
        self.model = model
        self.symmetry = Symmetry(model) if symmetric else None
        self.book = RuleBook(model, properties, moving=True)
        self.version = -1
        self.open: tuple[int, ...] = tuple(range(len(properties)))
        self.wire = self.fields = wide_fields(self.book.counts)
        self.limits = np.zeros(len(model.slots), np.uint64)
        self.orbits: OrbitBook | None = None
        self.orbit_arrays: Any = None
        self.arrays: Any = None
        self.fired = np.zeros(max(1, len(model.actions)), np.int64)
        self.deadlocks = 0
        self.first_deadlock: Numbers | None = None
        self._recent = np.empty(RECENT, np.uint64)

    # ---- numbers that all agree on

    def agree(self, numbering: Numbering, undecided: tuple[int, ...]) -> None:
        """Adopt this numbering and its layout, which all use from now on; test for these properties."""
        if numbering.version != self.version:
            self.version = numbering.version
            self.book.agree(numbering.values)
            self._slot_domains = distinct(self.book.domains[: len(self.model.slots)])
            sizes = {id(domain): len(known) for domain, known in zip(self._slot_domains, numbering.values, strict=True)}
            self._given = [sizes[id(domain)] for domain in self._slot_domains]
            self.limits = np.array([sizes[id(domain)] for domain in self.book.domains[: len(self.model.slots)]], np.uint64)
            if self.symmetry:
                self.orbits = OrbitBook(self.symmetry, self.book.domains)
                self.orbit_arrays = None
            self.wire = numbering.fields()
            self._take_what_was_learned()
            self.book.masks.extend()
            self.book.pool.refit()
        if undecided != self.open:
            self.open = undecided
            self.book.undecided(undecided)
        self._refresh()

    def new_values(self) -> list[list[Any]]:
        """For each domain, the values that only this process has numbered."""
        return [domain.values[given:] for domain, given in zip(self._slot_domains, self._given, strict=True)]

    @property
    def _agreed(self) -> bool:
        """Whether every value has a number that all know."""
        return all(len(domain) == given for domain, given in zip(self._slot_domains, self._given, strict=True))

    # ---- expanding

    def expand(
        self, packed: Packed, states: int, take: Callable[[Expansion, bool], None], sifted: bool = True
    ) -> NDArray[np.int64]:
        """Expand these states and hand their successors to `take`, some at a time; return the positions that were set aside.

        Successors come in the layout that all share. Without `sifted`, no state is set aside, and successors come in this
        process's own layout. Raises `RaisedError` where a rule raises an error.
        """
        set_aside: list[NDArray[np.int64]] = []
        content, fields = self._in_own_layout(packed, states, self.wire), self.fields
        for low in range(0, states, CHUNK):
            listed, use_list, begin, end = _NONE, False, low, min(states, low + CHUNK)
            while begin < end:
                if self.fields is not fields:
                    content, fields = self._in_own_layout(packed, states, self.wire), self.fields
                expanded, waiting, misses = self._expand(content, states, listed, use_list, begin, end)
                if sifted:
                    expanded, aside = self._sifted(expanded)
                    set_aside.append(aside)
                take(expanded, sifted)
                self._learn(misses)
                listed, use_list = waiting, True
                begin, end = 0, listed.size
        return np.sort(np.concatenate([_NONE, *set_aside]))

    def _in_own_layout(self, packed: Packed, states: int, layout: Fields) -> Packed:
        return packed if self.fields is layout else repacked(packed, states, layout, self.fields)

    def _expand(
        self, content: Packed, states: int, listed: NDArray[np.int64], use_list: bool, begin: int, end: int
    ) -> tuple[Expansion, NDArray[np.int64], NDArray[np.uint64]]:
        words = self.fields.words
        linear = np.empty(max(CHUNK_OUTPUT, len(self.model.actions) + 1) * (words + 1), np.uint64)
        misses, postponed = np.empty(MISSES, np.uint64), np.empty(end - begin, np.int64)
        degrees, outcome = np.full(end - begin, -1, np.int64), np.zeros(7, np.int64)
        layout, tables, programs, masks = self.arrays
        kernels.expand(
            layout,
            tables,
            programs,
            masks,
            words,
            content,
            np.zeros(1, np.int64),
            np.zeros(1, np.int64),
            np.array([0, states], np.int64),
            listed,
            use_list,
            begin,
            end,
            np.zeros(kernels.BATCH * len(self.book.columns), np.uint64),
            linear,
            self.fired,
            misses,
            self._recent,
            postponed,
            degrees,
            outcome,
        )
        if outcome[5] >= 0:
            raise RaisedError(RuleError(self.numbers_at(content, int(outcome[5]), self.fields), int(outcome[6])))
        self.deadlocks += int(outcome[3])
        if outcome[4] >= 0 and self.first_deadlock is None:
            self.first_deadlock = self.numbers_at(content, int(outcome[4]), self.fields)
        count = int(outcome[0])
        if self.orbits is not None:
            canonicalize(self.fields.arrays, self.orbit_arrays, words, linear, count)
        positions = listed[begin:end] if use_list else np.arange(begin, end)
        return Expansion(linear, count, positions, degrees), postponed[: outcome[2]].copy(), misses[: outcome[1]]

    def _sifted(self, expanded: Expansion) -> tuple[Expansion, NDArray[np.int64]]:
        """The successors that all processes can read, and the positions of states that have other successors."""
        if self.fields is self.wire and self._agreed:
            return expanded, _NONE
        out = np.empty(max(1, expanded.size) * (self.wire.words + 1), np.uint64)
        aside = np.zeros(expanded.degrees.size, np.uint8)
        count = sift(
            self.fields.arrays,
            self.wire.arrays,
            self.fields.words,
            self.wire.words,
            self.limits,
            expanded.linear,
            expanded.degrees,
            out,
            self.fired,
            aside,
        )
        degrees = np.where(aside != 0, 0, expanded.degrees)
        return expanded._replace(linear=out, size=count, degrees=degrees), expanded.positions[aside != 0]

    # ---- testing

    def test(self, packed: Packed, states: int, each_state: bool = False) -> list[tuple[int, int]]:
        """Pairs of properties (as bits) and the state that decides them: the first such state for each property, or all."""
        layout = self.wire.arrays
        undecided = np.array([sum(1 << number for number in self.open) | int(kernels.ASK)], np.uint64)
        found: list[tuple[int, int]] = []
        for low in range(0, states, 8 * CHUNK):
            listed = np.arange(low, min(states, low + 8 * CHUNK), dtype=np.int64) << 22
            while listed.size:
                again, decided = np.empty(listed.size, np.int64), np.empty(3 * listed.size, np.int64)
                counts, misses = np.zeros(3, np.int64), np.empty(MISSES, np.uint64)
                _, tables, programs, _ = self.arrays
                kernels.check(
                    layout,
                    tables,
                    programs,
                    packed,
                    np.zeros(1, np.int64),
                    listed,
                    np.zeros(kernels.BATCH * len(self.book.columns), np.uint64),
                    undecided,
                    each_state,
                    misses,
                    self._recent,
                    again,
                    decided,
                    counts,
                )
                for bits, _, number in decided[: counts[2] * 3].reshape(-1, 3).tolist():
                    found.append((self._decided(packed, number) if bits < 0 else bits, number))
                self._learn(misses[: counts[0]])
                listed = again[: counts[1]]
        return found

    def _decided(self, packed: Packed, number: int) -> int:
        """The open properties that a state decides, if a term has raised an error there."""
        numbers = self.numbers_at(packed, number)
        try:
            return self.book.decided(self.book.state_of(numbers), self.open)
        except Exception as error:
            raise RaisedError(RuleError(numbers, None)) from error

    def represented(self, packed: Packed, states: int) -> int:
        """The number of states that these stand for."""
        return int(represented(self.wire.arrays, self.orbit_arrays, packed, 0, states)) if self.orbits else states

    def numbers_at(self, packed: Packed, number: int, fields: Fields | None = None) -> Numbers:
        """A state by the numbers of its values."""
        fields = fields or self.wire
        content = np.zeros(8 * fields.words, np.uint8)
        content[: fields.size] = packed[number * fields.size : (number + 1) * fields.size]
        layout = fields.arrays
        return tuple(((content.view(np.uint64)[layout.word] >> layout.shift) & layout.mask).tolist())

    # ---- learning

    def _learn(self, misses: NDArray[np.uint64]) -> None:
        if misses.size:
            self.book.learn(misses)
            self._take_what_was_learned()
            self._refresh()

    def _take_what_was_learned(self) -> None:
        if self.orbits is not None and (self.orbits.extend() or self.orbit_arrays is None):
            self.orbit_arrays = self.orbits.arrays()
            self.book.masks.extend()
            self.book.pool.refit()
        fields = self.wire if self.wire.has_room(self.book.counts) else self.fields
        if not fields.has_room(self.book.counts):
            fields = wide_fields(self.book.counts)
        self.fields = fields

    def _refresh(self) -> None:
        """Hand what was learned to the kernels."""
        self.arrays = self.book.arrays(self.fields)


class RaisedError(Exception):
    """Carries a `RuleError` out of an expansion."""

    def __init__(self, error: RuleError) -> None:
        super().__init__(error)
        self.error = error


def repacked(packed: Packed, states: int, old: Fields, new: Fields) -> Packed:
    """The same states in another layout."""
    out = np.zeros(states * new.size + PADDING, np.uint8)
    kernels.repack(old.arrays, new.arrays, packed, 0, out, 0, states)
    return out


def pack(numbers: Sequence[int], fields: Fields) -> NDArray[np.uint64]:
    """The words of one state."""
    packed, layout = np.zeros(fields.words, np.uint64), fields.arrays
    for slot, number in enumerate(numbers):
        packed[layout.word[slot]] |= np.uint64(number) << layout.shift[slot]
    return packed
