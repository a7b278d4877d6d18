"""Learned tables: the results of a rule for every combination of value numbers for which it was evaluated.

A table answers for one or more `Local`s at once. Python code adds an entry when a kernel has met a key that the table
does not hold; from then on the kernels read it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspec.model_check.core.model import REFUSED, Action, Effect, Local, Slot, View
from kspec.model_check.engines.compiled.interning import CaughtError, Domain
from kspec.model_check.engines.compiled.kernels import ASK, DISABLED, FIRST_ROW, HOLDS, NO_TARGET, RAISED
from kspec.model_check.engines.compiled.layout import bits_for

KEY_BITS = 40
"""A key must leave room for the code beside it (`kernels.CODE_BITS`)."""

DENSE_BITS = 18
"""A table whose keys have at most this many bits is an array indexed by key."""


class Combination:
    """A virtual slot: the combinations of two columns, numbered, for tables whose key would be too long."""

    def __init__(self, column: int, parts: tuple[int, int]) -> None:
        self.column = column
        self.parts = parts
        self.members: list[tuple[int, int]] = []
        self.numbers: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.members)

    def number(self, pair: tuple[int, int]) -> int:
        number = self.numbers.get(pair)
        if number is None:
            number = self.numbers[pair] = len(self.members)
            self.members.append(pair)
        return number


class Columns:
    """The columns of keys: slots by position, views after them, and then combinations."""

    def __init__(self, domains: list[Domain], views: Sequence[View]) -> None:
        self.domains = domains
        self.views = views
        self.first_view = len(domains) - len(views)
        self.combinations: list[Combination] = []
        self._by_parts: dict[tuple[int, int], Combination] = {}
        self._of_view = {view: self.first_view + number for number, view in enumerate(views)}

    def __len__(self) -> int:
        return len(self.domains) + len(self.combinations)

    def of(self, read: Slot | View) -> int:
        """The column of a slot or a view."""
        return read.position if isinstance(read, Slot) else self._of_view[read]

    def of_all(self, reads: Sequence[Slot | View]) -> tuple[int, ...]:
        """The columns of what a function reads; the first slot for one that reads nothing, since every table has a key."""
        return tuple(sorted({self.of(read) for read in reads})) or (0,)

    def view(self, column: int) -> View | None:
        """The view of this column, if it is one."""
        return self.views[column - self.first_view] if self.first_view <= column < len(self.domains) else None

    def slots_behind(self, columns: Sequence[int]) -> frozenset[int]:
        """The positions of the slots that slots and views depend on."""
        views = [(column, self.view(column)) for column in columns]
        return frozenset(
            position for column, view in views for position in ([slot.position for slot in view.reads] if view else [column])
        )

    def count(self, column: int) -> int:
        values = len(self.domains)
        return len(self.domains[column]) if column < values else len(self.combinations[column - values])

    def counts(self) -> list[int]:
        """The number of values of each column."""
        return [self.count(column) for column in range(len(self))]

    def combination(self, column: int) -> Combination | None:
        values = len(self.domains)
        return None if column < values else self.combinations[column - values]

    def combine(self, first: int, second: int) -> Combination:
        """The virtual slot of two columns, which tables share."""
        parts = (first, second)
        if parts not in self._by_parts:
            combination = Combination(len(self), parts)
            self.combinations.append(combination)
            self._by_parts[parts] = combination
        return self._by_parts[parts]

    def renumber(self, moved: Mapping[int, NDArray[np.uint64]]) -> None:
        """Translate the combinations to the new value numbers of these columns."""
        for combination in self.combinations:
            first, second = (moved.get(part) for part in combination.parts)
            combination.members = [
                (a if first is None else int(first[a]), b if second is None else int(second[b]))
                for a, b in combination.members
            ]
            combination.numbers = {pair: number for number, pair in enumerate(combination.members)}

    def spread(self, column: int, numbers: list[int], into: dict[int, list[int]]) -> None:
        """Add to `into` the value numbers of every slot and view behind a column."""
        combination = self.combination(column)
        if combination is None:
            into[column] = numbers
            return
        pairs = [combination.members[number] for number in numbers]
        for place, part in enumerate(combination.parts):
            self.spread(part, [pair[place] for pair in pairs], into)


class Rows:
    """The outcomes of effects: for each row, which slots get which value numbers. A row's number is unique in a model."""

    def __init__(self) -> None:
        self.count = 0
        self.groups: dict[tuple[int, ...], dict[tuple[int, ...], int]] = {}

    def numbers_of(self, writes: tuple[int, ...], outcomes: Sequence[tuple[int, ...]]) -> list[int]:
        group = self.groups.setdefault(writes, {})
        numbers = []
        for outcome in outcomes:
            number = group.get(outcome)
            if number is None:
                number = group[outcome] = self.count
                self.count += 1
            numbers.append(number)
        return numbers

    def renumber(self, moved: Mapping[int, NDArray[np.uint64]]) -> None:
        """Translate the outcomes to the new value numbers of these slots. Rows keep their numbers."""
        for writes, group in self.groups.items():
            if not moved.keys().isdisjoint(writes) and group:
                outcomes = np.array(list(group), np.uint64).reshape(len(group), len(writes))
                for place, slot in enumerate(writes):
                    if slot in moved:
                        outcomes[:, place] = moved[slot][outcomes[:, place]]
                self.groups[writes] = dict(zip(map(tuple, outcomes.tolist()), group.values(), strict=True))

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], dict[tuple[int, ...], int]]]:
        return iter(self.groups.items())


class Memo:
    """The results of each `Local` that is evaluated together with slots that it does not read."""

    def __init__(self) -> None:
        self.results: dict[Local, dict[tuple[int, ...], Any]] = {}


class Table:
    """One learned table. `asks` are the slots and views that it answers for. `columns` are the parts of its key: these slots
    and views, or combinations of them, each with `bits` in the key from `shifts` on."""

    def __init__(self, number: int, columns: tuple[int, ...], space: Columns) -> None:
        self.number = number
        self.asks = columns
        self.space = space
        self.columns = columns
        self.keys = np.empty(0, np.uint64)
        self.codes = np.empty(0, np.uint64)
        self.bits: list[int] = []
        self.shifts: list[int] = []
        self.place_fields()

    @property
    def key_bits(self) -> int:
        return sum(self.bits)

    @property
    def target(self) -> int:
        """The column whose value is the table's answer; `NO_TARGET` for a table that numbers nothing."""
        return int(NO_TARGET)

    def has_room_for(self, counts: Sequence[int]) -> bool:
        """Whether every value number that may come up has room in the key: numbers below these counts, by column."""
        return all(counts[column] <= room for column, room in zip(self.columns, self.room, strict=True))

    def place_fields(self) -> None:
        """Give each column room for twice the values that it has now, and move the learned entries to new keys."""
        old = list(zip(self.shifts, self.bits, strict=True))
        counts = [self.space.count(column) for column in self.columns]
        self.bits = [bits_for(count) + (1 if count > 8 else 0) for count in counts]
        if self.key_bits > KEY_BITS:
            self.bits = [bits_for(count) for count in counts]
        while self.key_bits > KEY_BITS:
            # Too long: the two columns with the most values become one. Learned entries are evaluated again.
            first, second = sorted(sorted(range(len(self.bits)), key=lambda place: -self.bits[place])[:2])
            combination = self.space.combine(self.columns[first], self.columns[second])
            rest = [column for place, column in enumerate(self.columns) if place not in (first, second)]
            self.columns = (combination.column, *rest)
            self.bits = [bits_for(self.space.count(column) + 1) for column in self.columns]
            self.keys, self.codes, old = np.empty(0, np.uint64), np.empty(0, np.uint64), []
        self.shifts = [sum(self.bits[:place]) for place in range(len(self.bits))]
        self.room = [1 << bits for bits in self.bits]
        if old and self.keys.size:
            keys = np.zeros_like(self.keys)
            for (shift, bits), new_shift in zip(old, self.shifts, strict=True):
                mask = np.uint64((1 << bits) - 1)
                keys |= ((self.keys >> np.uint64(shift)) & mask) << np.uint64(new_shift)
            self.keys = keys

    def renumber(self, moved: Mapping[int, NDArray[np.uint64]]) -> None:
        """Translate the keys of learned entries to the new value numbers of these columns."""
        self.place_fields()
        for column, shift, bits in zip(self.columns, self.shifts, self.bits, strict=True):
            if column in moved and self.keys.size:
                mask = np.uint64((1 << bits) - 1)
                numbers = moved[column][(self.keys >> np.uint64(shift)) & mask]
                self.keys = (self.keys & ~(mask << np.uint64(shift))) | (numbers << np.uint64(shift))

    def numbers_in(self, keys: NDArray[np.uint64]) -> list[list[int]]:
        """The value numbers in some keys, column by column."""
        return [
            ((keys >> np.uint64(shift)) & np.uint64((1 << bits) - 1)).tolist()
            for shift, bits in zip(self.shifts, self.bits, strict=True)
        ]

    def learn(self, keys: NDArray[np.uint64], memo: Memo) -> NDArray[np.uint64]:
        """Evaluate the rules for new keys; keep and return their codes."""
        by_column: dict[int, list[int]] = {}
        for column, numbers in zip(self.columns, self.numbers_in(keys), strict=True):
            self.space.spread(column, numbers, by_column)
        codes = np.array(self.codes_for(_KeyBatch(self.space, by_column, keys.size, memo)), np.uint64)
        self.keys = np.concatenate([self.keys, keys])
        self.codes = np.concatenate([self.codes, codes])
        return codes

    def codes_for(self, asked: "_KeyBatch") -> list[int]:
        raise NotImplementedError


class ActionTable(Table):
    """Some guards and effects of an action, looked up together."""

    def __init__(
        self,
        number: int,
        columns: tuple[int, ...],
        space: Columns,
        action: Action,
        guards: Sequence[Local],
        effects: Sequence[Effect],
        rows: Rows,
    ) -> None:
        super().__init__(number, columns, space)
        self.action, self.guards, self.effects, self.rows = action, guards, effects, rows
        self.writes = tuple(slot.position for effect in effects for slot in effect.writes)

    def codes_for(self, asked: "_KeyBatch") -> list[int]:
        codes = [HOLDS] * asked.size
        alive = list(range(asked.size))
        for guard in self.guards:
            going_on = []
            for place, answer in zip(alive, asked.results(guard, alive), strict=True):
                if answer:
                    going_on.append(place)
                    if type(answer) is CaughtError:
                        codes[place] = RAISED
                else:
                    codes[place] = DISABLED
            alive = going_on
        if not self.effects:
            return codes
        columns: list[list[int]] = []
        results = [self._results(effect, asked, alive) for effect in self.effects]
        taken = []
        for turn, place in enumerate(alive):
            if any(result[turn] is REFUSED for result in results):
                codes[place] = DISABLED
            elif any(type(result[turn]) is CaughtError for result in results):
                codes[place] = RAISED
            elif codes[place] != RAISED:
                taken.append(turn)
        for effect, result in zip(self.effects, results, strict=True):
            values = result if len(taken) == len(result) else [result[turn] for turn in taken]
            for place, slot in enumerate(effect.writes):
                column = values if len(effect.writes) == 1 else [value[place] for value in values]
                columns.append(asked.domains[slot.position].number_all(column))
        outcomes = list(zip(*columns, strict=True)) if columns else [()] * len(taken)
        for turn, row in zip(taken, self.rows.numbers_of(self.writes, outcomes), strict=True):
            codes[alive[turn]] = FIRST_ROW + row
        return codes

    def _results(self, effect: Effect, asked: "_KeyBatch", places: list[int]) -> list[Any]:
        """The results of an effect at these places."""
        results, size = asked.results(effect.local, places), len(effect.writes)
        if size == 1:
            return results
        return [
            value if value is REFUSED or (isinstance(value, tuple) and len(value) == size) else self._misfit(effect, value)
            for value in results
        ]

    def _misfit(self, effect: Effect, value: Any) -> CaughtError:
        return value if type(value) is CaughtError else CaughtError(self.action.misfit(effect, value))


class GuardTable(Table):
    """All actions' guards of two slots. A row is a mask: the actions that these guards do not rule out."""

    def __init__(
        self,
        number: int,
        columns: tuple[int, ...],
        space: Columns,
        guards: dict[Local, int],
        masks: dict[int, int],
        alone: Callable[[Local, int], None],
    ) -> None:
        super().__init__(number, columns, space)
        self.guards, self.masks, self.alone = guards, masks, alone
        self.actions = 0
        for actions in guards.values():
            self.actions |= actions

    def codes_for(self, asked: "_KeyBatch") -> list[int]:
        ruled_out = [0] * asked.size
        everything = list(range(asked.size))
        for guard, actions in self.guards.items():
            answers = asked.results(guard, everything)
            if CaughtError in map(type, answers):
                self.alone(guard, actions)
            for place, answer in enumerate(answers):
                if not answer:
                    ruled_out[place] |= actions
        masks = self.masks
        return [FIRST_ROW + masks.setdefault(mask, len(masks)) for mask in ruled_out]


class TermTable(Table):
    """Terms of properties over some slots. A row says which properties a state with these values decides.

    Where a term raises an error it says `ASK` besides.
    """

    def __init__(
        self,
        number: int,
        columns: tuple[int, ...],
        space: Columns,
        terms: Sequence[tuple[int, bool, Local]],
        decisions: dict[int, int],
    ) -> None:
        super().__init__(number, columns, space)
        self.terms = terms
        self.decisions = decisions

    def codes_for(self, asked: "_KeyBatch") -> list[int]:
        decided = [0] * asked.size
        everything = list(range(asked.size))
        for bit, always, term in self.terms:
            for place, answer in enumerate(asked.results(term, everything)):
                if type(answer) is CaughtError:
                    decided[place] |= int(ASK)
                elif bool(answer) != always:
                    decided[place] |= 1 << bit
        decisions = self.decisions
        return [FIRST_ROW + decisions.setdefault(some, len(decisions)) if some else HOLDS for some in decided]


class BoundTable(Table):
    """A term of the model's constraint."""

    def __init__(self, number: int, columns: tuple[int, ...], space: Columns, term: Local) -> None:
        super().__init__(number, columns, space)
        self.term = term

    def codes_for(self, asked: "_KeyBatch") -> list[int]:
        answers = asked.results(self.term, list(range(asked.size)))
        return [RAISED if type(answer) is CaughtError else HOLDS if answer else DISABLED for answer in answers]


class ViewTable(Table):
    """The number of a view's value."""

    def __init__(self, number: int, space: Columns, view: View) -> None:
        self.view = view
        super().__init__(number, space.of_all(view.reads), space)

    @property
    def target(self) -> int:
        return self.space.of(self.view)

    def codes_for(self, asked: "_KeyBatch") -> list[int]:
        values = asked.results(Local(self.view.function, self.view.reads), list(range(asked.size)))
        return [FIRST_ROW + number for number in self.space.domains[self.target].number_all(values)]


class CombinationTable(Table):
    """The number of a combination of two columns."""

    def __init__(self, number: int, space: Columns, combination: Combination) -> None:
        self.combination = combination
        super().__init__(number, combination.parts, space)

    def place_fields(self) -> None:
        if sum(bits_for(self.space.count(column)) for column in self.columns) > KEY_BITS:
            raise OverflowError("a rule reads more different values than the compiled engine can number")
        super().place_fields()

    @property
    def target(self) -> int:
        return self.combination.column

    def learn(self, keys: NDArray[np.uint64], memo: Memo) -> NDArray[np.uint64]:
        pairs = list(zip(*self.numbers_in(keys), strict=True))
        codes = np.array([FIRST_ROW + self.combination.number((pair[0], pair[1])) for pair in pairs], np.uint64)
        self.keys = np.concatenate([self.keys, keys])
        self.codes = np.concatenate([self.codes, codes])
        return codes


class _KeyBatch:
    """A batch of keys for which a table is evaluated, as value numbers and as values."""

    def __init__(self, space: Columns, numbers: dict[int, list[int]], size: int, memo: Memo) -> None:
        self.space = space
        self.domains = space.domains
        self.numbers = numbers
        self.size = size
        self.memo = memo
        self.values = {
            column: list(map(self.domains[column].values.__getitem__, those)) for column, those in numbers.items()
        }

    def results(self, local: Local, places: list[int]) -> list[Any]:
        """A function's results at these places of the batch, `CaughtError` where it raises."""
        reads = [self.space.of(read) for read in local.reads]
        distinct = len(set(reads))
        if distinct == len(self.numbers) or not distinct:
            return self._call(local.function, reads, places)
        known = self.memo.results.setdefault(local, {})
        whole = len(places) == self.size
        columns = [self.numbers[column] if whole else [self.numbers[column][place] for place in places] for column in reads]
        keys = list(zip(*columns, strict=True))
        fresh = {key: place for key, place in zip(keys, places, strict=True) if key not in known}
        known.update(zip(fresh, self._call(local.function, reads, list(fresh.values())), strict=True))
        return [known[key] for key in keys]

    def _call(self, function: Callable[..., Any], reads: list[int], places: list[int]) -> list[Any]:
        whole = len(places) == self.size
        columns = [self.values[column] if whole else [self.values[column][place] for place in places] for column in reads]
        if not any(self.domains[column].raised for column in reads):
            with suppress(Exception):
                results = list(map(function, *columns)) if columns else [function() for _ in places]
                if len(results) == len(places):  # `map` takes a function's StopIteration for the end
                    return results
        argument_lists = zip(*columns, strict=True) if columns else repeat((), len(places))
        return [result_of(function, arguments) for arguments in argument_lists]


def result_of(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """The function's result; `CaughtError` where it raises an error, or where the value of a view that it reads is that."""
    for argument in arguments:
        if type(argument) is CaughtError:
            return argument
    try:
        return function(*arguments)
    except Exception as error:
        return CaughtError(error)
