"""A model's rules as the kernels read them: programs of table look-ups, masks, and the pools that hold the entries."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kspec.model_check.core.model import Action, Effect, Local, Model, Property, State
from kspec.model_check.core.preparation import at_work
from kspec.model_check.engines.compiled.interning import CaughtError, distinct, domains_of
from kspec.model_check.engines.compiled.kernels import (
    CODE_BITS,
    FIRST_ROW,
    Layout,
    Masks,
    Programs,
    Tables,
    insert_entries,
)
from kspec.model_check.engines.compiled.layout import Fields
from kspec.model_check.engines.compiled.tables import (
    DENSE_BITS,
    KEY_BITS,
    ActionTable,
    BoundTable,
    Columns,
    CombinationTable,
    GuardTable,
    Memo,
    Rows,
    Table,
    TermTable,
    ViewTable,
    result_of,
)

SMALL = 2
"""Tables of at most this many slots are cheap to look up; only tables of the same kind, small or large, are merged."""

_Indices = NDArray[np.uint64]
_Shape = tuple[_Indices, _Indices, _Indices, _Indices, _Indices, _Indices]

MOST_PROPERTIES = 63

PREPARING = "preparing the engine's tables"

FIRST_POOL = 1 << 24
"""The number of entries that fit at first. The system gives zeroed memory only where it is touched, so this costs nothing;
growing costs a copy."""


class RuleBook:
    """Everything learned about a model, and the arrays that the kernels need of it."""

    def __init__(self, model: Model, properties: Sequence[Property], moving: bool = False) -> None:
        """With `moving`, an action may also change slots that it does not write, because brokers are renamed."""
        if len(properties) > MOST_PROPERTIES:
            raise ValueError(f"at most {MOST_PROPERTIES} properties can be explored at once")
        self.model = model
        self.properties = properties
        self.moving = moving
        self.domains = domains_of(model)
        self.columns = Columns(self.domains, model.views)
        self.rows = Rows()
        self.memo = Memo()
        self.decisions: dict[int, int] = {}
        self.tables: list[Table] = []
        self.initial = [domain.number(value) for domain, value in zip(self.domains, model.initial, strict=False)]
        self._action_tables = [self._tables_of(action) for action in model.actions]
        self._bound_tables = [self._bound_table(term) for term in model.constraint]
        self._alone: set[Local] = set()
        self._term_tables: list[Table] = []
        self._derived: dict[int, Table] = {}
        self.masks = ActionMasks(model, self)
        self.pool = Pool(self)
        self._programs: Programs | None = None
        self._fields: Fields | None = None
        self.undecided(range(len(properties)))

    @property
    def counts(self) -> list[int]:
        """The number of values of each slot."""
        return [len(domain) for domain in self.domains[: len(self.model.slots)]]

    def state_of(self, numbers: Sequence[int]) -> State:
        """The state with these value numbers."""
        return tuple(domain.values[number] for domain, number in zip(self.domains, numbers, strict=False))

    # ---- which tables there are

    def _tables_of(self, action: Action) -> list[Table]:
        """The tables of an action's effects and guards of several slots; those that read the same slots share a table."""
        at_work(PREPARING)
        guards = [guard for guard in action.guards if not 1 <= len(set(guard.reads)) <= SMALL]
        parts: list[Local | Effect] = [*guards, *action.effects]
        reads = [part.reads if isinstance(part, Local) else part.local.reads for part in parts]
        tables: list[tuple[bool, int, Table]] = []
        for columns, members in _grouped([self.columns.of_all(read) for read in reads]):
            chosen = [parts[member] for member in members]
            own_guards = [part for part in chosen if isinstance(part, Local)]
            own_effects = [part for part in chosen if isinstance(part, Effect)]
            table = self._action_table(action, columns, own_guards, own_effects)
            tables.append((not own_guards, len(columns), table))
        return [table for _, _, table in sorted(tables, key=lambda entry: entry[:2])]

    def _action_table(
        self, action: Action, columns: tuple[int, ...], guards: Sequence[Local], effects: Sequence[Effect]
    ) -> ActionTable:
        table = ActionTable(len(self.tables), columns, self.columns, action, guards, effects, self.rows)
        self.tables.append(table)
        return table

    def guard_alone(self, guard: Local, actions: int) -> None:
        """Also look this small guard up like big ones: it raised an error, which counts where an action is enabled."""
        if guard in self._alone:
            return
        self._alone.add(guard)
        concerned = [number for number in range(len(self._action_tables)) if actions >> number & 1]
        table = self._action_table(self.model.actions[concerned[0]], self.columns.of_all(guard.reads), [guard], [])
        for number in concerned:
            self._action_tables[number].insert(0, table)
        self.pool.stale = True

    def decided(self, state: State, numbers: Sequence[int]) -> int:
        """The properties that a state decides, as bits, evaluated in order: what raises an error there raises it."""
        wanted = [(number, self.properties[number]) for number in numbers]
        return sum(1 << number for number, prop in wanted if prop.bind()(state) != (prop.kind == "always"))

    def _bound_table(self, term: Local) -> Table:
        table = BoundTable(len(self.tables), self.columns.of_all(term.reads), self.columns, term)
        self.tables.append(table)
        return table

    def undecided(self, numbers: Sequence[int]) -> None:
        """Test only for these properties from now on."""
        open_ones = [(number, self.properties[number]) for number in numbers]
        terms = [(number, prop.kind == "always", term) for number, prop in open_ones for term in prop.terms]
        self._term_tables = []
        for columns, members in _grouped([self.columns.of_all(term.reads) for _, _, term in terms]):
            chosen = [terms[member] for member in members]
            tables = [table for table in self.tables if isinstance(table, TermTable)]
            known = next((table for table in tables if table.asks == columns and table.terms == chosen), None)
            table = known or TermTable(len(self.tables), columns, self.columns, chosen, self.decisions)
            if known is None:
                self.tables.append(table)
            self._term_tables.append(table)
        self.pool.stale = True

    # ---- programs

    def _program(self, tables: Sequence[Table], before: Sequence[int] = ()) -> list[int]:
        """The numbers of these tables, each after the tables that number the views and combinations in its key.

        Tables in `before` are not looked up again.
        """
        at_work(PREPARING)
        program = list(before)

        def add(table: Table) -> None:
            for column in table.columns:
                derived = self._deriving(column)
                if derived is not None and derived is not table:
                    add(derived)
            if table.number not in program:
                program.append(table.number)

        for table in tables:
            add(table)
        return program[len(before) :]

    def _deriving(self, column: int) -> Table | None:
        """The table that computes the value of this column; `None` for a slot."""
        if column not in self._derived:
            view, combination = self.columns.view(column), self.columns.combination(column)
            number = len(self.tables)
            if view is not None:
                self._derived[column] = ViewTable(number, self.columns, view)
            elif combination is not None:
                self._derived[column] = CombinationTable(number, self.columns, combination)
            else:
                return None
            self.tables.append(self._derived[column])
        return self._derived[column]

    def _views_of_actions(self) -> list[Table]:
        """The tables of the views that guards and effects read."""
        tables = [table for tables in self._action_tables for table in tables]
        columns = {column for table in [*tables, *self.masks.tables] for column in table.asks} | set(self.masks.guards)
        views = [self._deriving(column) for column in sorted(columns) if self.columns.view(column)]
        return [table for table in views if table is not None]

    def arrays(self, fields: Fields) -> tuple[Layout, Tables, Programs, Masks]:
        """All arrays that the kernels read, for states in this layout. Programs are rebuilt only if they have changed."""
        if self._programs is None or self.pool.stale or fields is not self._fields:
            self._programs, self._fields = self._programs_for(fields), fields
        tables = self.pool.arrays(fields)
        self.pool.stale = False
        assert self.masks.arrays is not None, "masks are extended before anything is explored"
        return fields.arrays, tables, self._programs, self.masks.arrays

    def _programs_for(self, fields: Fields) -> Programs:
        actions, words = self.model.actions, fields.words
        views = self._program(self._views_of_actions())
        steps = [self._program(tables, before=views) for tables in self._action_tables]
        self.pool.allocate()
        writes = [sorted(slot.position for slot in action.writes) for action in actions]
        checks = [
            self._program(
                [
                    table
                    for table in self._term_tables
                    if self.moving or not self.columns.slots_behind(table.asks).isdisjoint(written)
                ]
            )
            for written in writes
        ]
        keep = np.full(len(actions) * words, 0xFFFFFFFFFFFFFFFF, np.uint64)
        keep[words - 1 :: words] = fields.arrays.last
        for number, written in enumerate(writes):
            for slot in written:
                field = int(fields.arrays.mask[slot]) << int(fields.arrays.shift[slot])
                keep[number * words + int(fields.arrays.word[slot])] &= np.uint64(0xFFFFFFFFFFFFFFFF ^ field)
        return Programs(
            *_ragged(steps),
            keep,
            *_ragged([[step for step in program if self.pool.is_hashed(step)] for program in steps]),
            *_ragged(writes),
            *_ragged(checks),
            _indices(self._program(self._bound_tables)),
            _indices(views),
        )

    # ---- numbering

    def agree(self, values: Sequence[Sequence[Any]]) -> None:
        """Adopt a common numbering: for each domain of slots, `values` come first, in their order, then all other values.

        Learned entries are kept and use the new numbers.
        """
        moved: dict[int, NDArray[np.uint64]] = {}
        slot_domains = self.domains[: len(self.model.slots)]
        for domain, known in zip(distinct(slot_domains), values, strict=True):
            numbers = domain.renumber(known)
            if numbers is not None:
                moved |= {
                    column: np.array(numbers, np.uint64) for column, other in enumerate(slot_domains) if other is domain
                }
        if not moved:
            return
        self.initial = [int(moved[slot][number]) if slot in moved else number for slot, number in enumerate(self.initial)]
        self.columns.renumber(moved)
        for table in self.tables:
            table.renumber(moved)
        self.rows.renumber(moved)
        self.memo.results.clear()
        self.masks.forget(moved)
        self.masks.extend()
        self.pool.store_again()

    # ---- learning

    def learn(self, misses: NDArray[np.uint64]) -> None:
        """Evaluate the rules for all entries that kernels missed; each number holds (1 + table, key)."""
        asked = np.unique(misses)
        numbers = (asked >> np.uint64(KEY_BITS)).astype(np.int64) - 1
        keys = asked & np.uint64((1 << KEY_BITS) - 1)
        first = np.flatnonzero(np.diff(numbers, prepend=-1))
        batches = []
        for begin, end in zip(first, [*first[1:], asked.size], strict=True):
            table = self.tables[int(numbers[begin])]
            batches.append((table, keys[begin:end], table.learn(keys[begin:end], self.memo)))
        for table, new_keys, codes in batches:
            self.pool.add(table, new_keys, codes)
        self.masks.extend()
        self.pool.refit()


def raise_again(model: Model, state: State, number: int) -> None:
    """Raise the error that a rule, or a bound, raised when this action was taken in this state."""
    action = model.actions[number]
    successor = action.bind()(state)
    if successor is not None:
        all(bound.bind()(successor) for bound in model.constraint)
    raise AssertionError(f"{action.label} raised an error once, and not again")


def _grouped(reads: Sequence[tuple[int, ...]]) -> list[tuple[tuple[int, ...], list[int]]]:
    """Group parts that one table can serve: a part joins another of like size that has all of its slots."""
    groups: list[tuple[tuple[int, ...], list[int]]] = []
    for number in sorted(range(len(reads)), key=lambda number: (-len(reads[number]), number)):
        slots = reads[number]
        for others, members in groups:
            if set(slots) == set(others) or (set(slots) < set(others) and len(others) <= SMALL):
                members.append(number)
                break
        else:
            groups.append((slots, [number]))
    return [(slots, sorted(members)) for slots, members in groups]


def _indices(values: Sequence[int]) -> _Indices:
    return np.array(values, np.uint64)


def _ragged(lists: Sequence[Sequence[int]]) -> tuple[_Indices, _Indices]:
    """Lists of different lengths as two arrays: where each list begins, and all lists in a row."""
    first = [0, *accumulate(len(entry) for entry in lists)]
    return _indices(first), _indices([value for entry in lists for value in entry])


class ActionMasks:
    """The actions that the guards of one slot, and of two, do not rule out."""

    def __init__(self, model: Model, book: "RuleBook") -> None:
        self.book = book
        self.words = 2 * max(1, -(-len(model.actions) // 128))
        self.all_actions = (1 << len(model.actions)) - 1
        self.guards: dict[int, dict[Local, int]] = {}
        pairs: dict[tuple[int, ...], dict[Local, int]] = {}
        for number, action in enumerate(model.actions):
            for guard in action.guards:
                columns = book.columns.of_all(guard.reads)
                if len(columns) == 1:
                    by_guard = self.guards.setdefault(columns[0], {})
                elif len(columns) == SMALL:
                    by_guard = pairs.setdefault(columns, {})
                else:
                    continue
                by_guard[guard] = by_guard.get(guard, 0) | 1 << number
        self.ruled_out: dict[int, int] = {0: 0}
        self.tables = []
        for columns, guards in pairs.items():
            table = GuardTable(len(book.tables), columns, book.columns, guards, self.ruled_out, book.guard_alone)
            book.tables.append(table)
            self.tables.append(table)
        self.bits: dict[int, bytearray] = {slot: bytearray() for slot in self.guards}
        """The masks of a slot's values, one after the other, as the kernels read them."""
        self.arrays: Masks | None = None
        self._rows_written = 0

    def extend(self) -> None:
        """Evaluate the guards for new values."""
        changed = False
        for slot, guards in self.guards.items():
            values, bits = self.book.domains[slot].values, self.bits[slot]
            for value in values[len(bits) // (self.words * 8) :]:
                bits += self._bytes(self.mask_of(guards, value))
                changed = True
        if changed or self.arrays is None or self._rows_written != len(self.ruled_out):
            self._write()

    def mask_of(self, guards: dict[Local, int], value: object) -> int:
        """The actions that these guards do not rule out for this value, as bits."""
        mask = self.all_actions
        for guard, actions in guards.items():
            holds = result_of(guard.function, [value] * len(guard.reads))
            if type(holds) is CaughtError:
                self.book.guard_alone(guard, actions)
            elif not holds:
                mask &= ~actions
        return mask

    def forget(self, columns: Iterable[int]) -> None:
        """Forget the masks of these columns, whose values have new numbers: their guards are evaluated again."""
        for column in self.bits.keys() & set(columns):
            self.bits[column] = bytearray()

    def _write(self) -> None:
        slots = sorted(self.bits)
        offsets = [0, *accumulate(len(self.bits[slot]) // 8 for slot in slots)]
        self._rows_written = len(self.ruled_out)
        self.arrays = Masks(
            _indices(slots),
            _indices(offsets[:-1]),
            np.frombuffer(bytearray().join(self.bits[slot] for slot in slots), np.uint64),
            self._array([self.all_actions]),
            _indices([table.number for table in self.tables]),
            self._array([table.actions for table in self.tables]),
            self._array(list(self.ruled_out)),
        )

    def _array(self, masks: Sequence[int]) -> NDArray[np.uint64]:
        return np.frombuffer(bytearray().join(self._bytes(mask) for mask in masks), np.uint64)

    def _bytes(self, mask: int) -> bytes:
        return mask.to_bytes(self.words * 8, "little")


class Pool:
    """The entries of all tables in the arrays that the kernels read. `stale` says that programs must be rebuilt."""

    def __init__(self, book: "RuleBook") -> None:
        self.book = book
        self.stale = True
        self.dense = np.zeros(FIRST_POOL, np.uint32)
        self.hashed = np.zeros(FIRST_POOL, np.uint64)
        self.dense_used = self.hashed_used = 0
        self.offsets: list[int] = []
        self.size_masks: list[int] = []
        self.row_words = np.zeros(0, np.uint64)
        self.row_hash = np.zeros(0, np.uint64)
        self.decisions = np.zeros(16, np.uint64)
        self._room: dict[int, int] = {}
        """For each column: value numbers below this limit fit into the keys of all tables that read the column."""
        self._shape: _Shape | None = None
        self._fields: Fields | None = None
        self._written: dict[tuple[int, ...], int] = {}

    def add(self, table: Table, keys: NDArray[np.uint64], codes: NDArray[np.uint64]) -> None:
        """Store what a table has just learned."""
        self.allocate()
        number = table.number
        if self.size_masks[number] == 0:
            self.dense[self.offsets[number] + keys.astype(np.int64)] = codes.astype(np.uint32)
        elif table.keys.size * 3 > self.size_masks[number] * 2:
            self._store(table)
        else:
            insert_entries(self.hashed, self.offsets[number], np.uint64(self.size_masks[number]), keys, codes)

    def refit(self) -> None:
        """Give tables wider keys where a slot has outgrown its part of the key."""
        self.allocate()
        counts, before = self.book.columns.counts(), len(self.book.tables)
        if all(count <= self._room.get(column, count) for column, count in enumerate(counts)):
            return
        for table in [table for table in self.book.tables if not table.has_room_for(counts)]:
            old = table.columns
            table.place_fields()
            if table.columns != old:
                self.stale = True
            self._store(table)
        if len(self.book.tables) != before:
            self.stale = True
        self.allocate()
        self._room = {}
        for table in self.book.tables:
            self._note_room(table)

    def _note_room(self, table: Table) -> None:
        for column, room in zip(table.columns, table.room, strict=True):
            self._room[column] = min(room, self._room.get(column, room))

    def store_again(self) -> None:
        """Put every table into an emptied pool, because keys and rows have changed."""
        self.dense[: self.dense_used] = 0
        self.hashed[: self.hashed_used] = 0
        self.dense_used = self.hashed_used = 0
        self._room = {}
        for table in self.book.tables[: len(self.offsets)]:
            self._store(table)
            self._note_room(table)
        self._fields = None
        self.stale = True

    def is_hashed(self, number: int) -> bool:
        """Whether a table is too big to be indexed by key."""
        return self.size_masks[number] != 0

    def allocate(self) -> None:
        """Make room for new tables."""
        for table in self.book.tables[len(self.offsets) :]:
            self.offsets.append(0)
            self.size_masks.append(0)
            self._store(table)
            self._note_room(table)

    def _store(self, table: Table) -> None:
        """Put a table into a new place of its pool, big enough for the entries that it holds now and soon."""
        number = table.number
        self._shape = None
        if table.key_bits <= DENSE_BITS:
            size = 1 << table.key_bits
            if self.dense_used + size > self.dense.size:
                self.dense = _grown(self.dense, self.dense_used + size)
            self.offsets[number], self.size_masks[number] = self.dense_used, 0
            self.dense[self.dense_used + table.keys.astype(np.int64)] = table.codes.astype(np.uint32)
            self.dense_used += size
            return
        size = 1 << max(8, (table.keys.size * 2).bit_length())
        self.stale = self.stale or not self.is_hashed(number)
        if self.hashed_used + size > self.hashed.size:
            self.hashed = _grown(self.hashed, self.hashed_used + size)
        self.offsets[number], self.size_masks[number] = self.hashed_used, size - 1
        insert_entries(self.hashed, self.hashed_used, np.uint64(size - 1), table.keys, table.codes)
        self.hashed_used += size

    def arrays(self, fields: Fields) -> Tables:
        """The tables as the kernels read them, with rows for states in this layout."""
        self.allocate()
        self._write_rows(fields)
        book = self.book
        if len(book.decisions) > self.decisions.size:
            self.decisions = np.zeros(2 * len(book.decisions), np.uint64)
        for decided, number in book.decisions.items():
            self.decisions[number] = decided
        tables = book.tables
        if self._shape is None:
            reads = [list(zip(table.columns, table.shifts, strict=True)) for table in tables]
            reads = [entry * 2 if len(entry) == 1 else entry for entry in reads]
            first, slots = _ragged([[column for column, _ in entry] for entry in reads])
            shifts = np.array([shift for entry in reads for _, shift in entry], np.uint64)
            targets = _indices([table.target for table in tables])
            self._shape = first, slots, shifts, _indices(self.offsets), np.array(self.size_masks, np.uint64), targets
        return Tables(*self._shape, self.dense, self.hashed, self.row_words, self.row_hash, self.decisions)

    def _write_rows(self, fields: Fields) -> None:
        """Pack the new outcomes; for a new layout, pack all of them."""
        rows, layout, words = self.book.rows, fields.arrays, fields.words
        if rows.count + FIRST_ROW >= 1 << CODE_BITS:
            raise OverflowError("the model's effects have more outcomes than the compiled engine can number")
        if self._fields is not fields or rows.count > self.row_hash.size:
            capacity = 2 * rows.count + 64
            self.row_words, self.row_hash = np.zeros(capacity * words, np.uint64), np.zeros(capacity, np.uint64)
            self._fields = fields
            self._written = {}
        for writes, group in rows:
            done = self._written.get(writes, 0)
            if done == len(group):
                continue
            numbers = np.fromiter(islice(group.values(), done, None), np.int64)
            outcomes = np.array(list(islice(group, done, None)), np.uint64).reshape(numbers.size, len(writes))
            for place, slot in enumerate(writes):
                self.row_words[numbers * words + int(layout.word[slot])] |= outcomes[:, place] << layout.shift[slot]
                self.row_hash[numbers] += outcomes[:, place] * layout.weight[slot]
            self._written[writes] = len(group)


def _grown(array: NDArray[Any], least: int) -> NDArray[Any]:
    """The same array with more room, filled with zeros."""
    bigger = np.zeros(max(2 * array.size, least), array.dtype)
    bigger[: array.size] = array
    return bigger
