"""A log of any length: the third carrier of the log algebra.

Its records are two functions from offsets to numbers (a record's leader epoch and its value). Only the offsets from start to
end have a meaning. This defines what an operation does, except if its answer is a search through the log. Then the answer is
a fresh value for which the laws of the algebra are assumed: the same functions that tests check on the other carriers
(`ASSUMED`).
"""

from collections.abc import Callable
from inspect import signature
from typing import Any

import z3

from kspec.proofs import laws
from kspec.proofs.symbolic.paths import assume, decide, fresh, fresh_function, remembered
from kspec.proofs.symbolic.terms import choice, conjunction, disjunction
from kspec.proofs.symbolic.values import Kind, SymbolicBool, SymbolicInt, formula, number
from kspec.spec.log.batch import Batches
from kspec.spec.log.record_log import RecordLog
from kspec.spec.values import NO_EPOCH, NO_VALUE, Epoch, EpochEndOffset, Offset, Record

Column = Callable[[Any], z3.ArithRef]
"""A number for each offset."""

ASSUMED: dict[str, tuple[Callable[..., bool], ...]] = {
    "agreement_end": (
        laws.agreement_is_bounded,
        laws.agreement_ends_after_a_common_record,
        laws.agreement_is_maximal,
    ),
    "first_above": (
        laws.first_above_is_bounded,
        laws.first_above_is_above,
        laws.before_first_above_nothing_is_above,
    ),
    "end_offset_for_epoch": (
        laws.no_end_above_the_latest_epoch,
        laws.latest_epoch_ends_with_the_log,
        laws.epochs_up_to_the_latest_have_an_end,
        laws.end_offset_parts_the_log,
        laws.end_offset_names_the_epoch_before_it,
    ),
    "largest_epoch_up_to": (
        laws.largest_epoch_is_always_defined,
        laws.largest_epoch_parts_the_log,
        laws.largest_epoch_is_that_of_the_record_before,
        laws.whole_log_up_to_the_latest_epoch,
    ),
}
"""For each operation that searches the log: the laws that the prover assumes of its answers, and nothing else."""

_LAWS = {law.name: law for law in laws.LAWS}

NAMED_EPOCH, ITS_END = "named epoch", "its end"
"""The functions that stand for the answers to questions about an epoch: each gives a number for each epoch."""

FRESH_FUNCTIONS: dict[str, tuple[Kind, ...]] = {NAMED_EPOCH: (Epoch,), ITS_END: (Epoch,)}
"""The kinds of their arguments."""


class SymbolicLog:
    """A log of any length."""

    __slots__ = ("end", "epoch", "opened", "start", "value")

    def __init__(self, start: Any, end: Any, epoch: Column, value: Column, opened: Any) -> None:
        self.start, self.end, self.epoch, self.value, self.opened = start, end, epoch, value, opened

    @classmethod
    def of(cls, log: Any) -> "SymbolicLog":
        """A log as a symbolic one."""
        if isinstance(log, SymbolicLog):
            return log
        made = cls(number(log.start_offset), number(log.start_offset), _nothing, _nothing, number(NO_EPOCH)).append(
            log.records
        )
        return cls(made.start, made.end, made.epoch, made.value, number(log.opened_epoch))

    def holds(self, offset: Any) -> z3.BoolRef:
        """A formula: the log holds a record at `offset`."""
        return z3.And(self.start <= offset, offset < self.end)

    def same_at(self, other: "SymbolicLog", offset: Any) -> z3.BoolRef:
        """A formula: if both logs hold a record at `offset`, it is the same record."""
        return z3.And(self.epoch(offset) == other.epoch(offset), self.value(offset) == other.value(offset))

    # ---- the algebra

    @property
    def start_offset(self) -> SymbolicInt:
        return SymbolicInt(self.start)

    @property
    def end_offset(self) -> SymbolicInt:
        return SymbolicInt(self.end)

    @property
    def latest_epoch(self) -> SymbolicInt:
        last = z3.If(self.end > self.start, self.epoch(self.end - 1), NO_EPOCH)
        return SymbolicInt(choice(z3.simplify(self.opened != NO_EPOCH), self.opened, last))

    def epoch_at(self, offset: Any) -> SymbolicInt:
        return SymbolicInt(z3.If(self.holds(number(offset)), self.epoch(number(offset)), NO_EPOCH))

    def end_offset_for_epoch(self, epoch: Any) -> EpochEndOffset:
        return self._search("end_offset_for_epoch", epoch)

    def largest_epoch_up_to(self, epoch: Any) -> EpochEndOffset:
        return self._search("largest_epoch_up_to", epoch)

    def first_above(self, epoch: Any) -> SymbolicInt:
        asked = number(epoch)

        def search() -> tuple[SymbolicInt, Any]:
            return SymbolicInt(fresh("first above")), (self, asked)

        def learn() -> None:
            _assume_laws("first_above", {"log": self, "epoch": SymbolicInt(asked)})

        found: SymbolicInt = remembered(("first_above", id(self), asked.get_id()), search, learn)[0]
        return found

    def read(self, start: Any, limit: int) -> tuple[Record, ...]:
        """The records in batches of one. Forks at every record that may or may not be there, so `limit` must be known."""
        records: list[Any] = []
        for offset in (number(start) + position for position in range(limit)):
            if not decide(self.holds(offset)):
                break
            records.append(Record(SymbolicInt(self.value(offset)), SymbolicInt(self.epoch(offset))))  # type: ignore[arg-type]
        return tuple(records)

    def append(self, batches: Batches) -> "SymbolicLog":
        """A batch may have any number of records. The value of each is the payload of the batch."""
        if not batches:
            return self
        end, epoch, value = self.end, self.epoch, self.value
        for batch in batches:
            payload = batch.value if isinstance(batch, Record) else batch.payload
            base, end = end, z3.simplify(end + number(batch.record_count))
            epoch, value = _with(epoch, base, end, number(batch.leader_epoch)), _with(value, base, end, number(payload))
        return SymbolicLog(self.start, end, epoch, value, number(NO_EPOCH))

    def append_at(self, base_offset: Any, batches: Batches) -> "SymbolicLog":
        base = number(base_offset)
        if z3.is_true(z3.simplify(base == self.end)):
            return self.append(batches)
        latest, end, epoch, value = self.latest_epoch.term, self.end, self.epoch, self.value
        filled = SymbolicLog(
            self.start,
            base,
            lambda offset: choice(z3.simplify(z3.And(end <= offset, offset < base)), latest, epoch(offset)),
            lambda offset: choice(z3.simplify(z3.And(end <= offset, offset < base)), number(NO_VALUE), value(offset)),
            choice(z3.simplify(base == end), self.opened, number(NO_EPOCH)),
        )
        return filled.append(batches)

    def without_values(self) -> "SymbolicLog":
        return SymbolicLog(self.start, self.end, self.epoch, _nothing, self.opened)

    def start_at(self, offset: Any) -> "SymbolicLog":
        start = number(offset)
        opened = choice(z3.simplify(start < self.end), self.opened, self.latest_epoch.term)
        return SymbolicLog(start, self.end, self.epoch, self.value, opened)

    def restart_at(self, offset: Any) -> "SymbolicLog":
        return SymbolicLog(number(offset), number(offset), _nothing, _nothing, number(NO_EPOCH))

    def truncate_to(self, offset: Any) -> "SymbolicLog":
        cut = number(offset)
        start, end = z3.If(cut < self.start, cut, self.start), z3.If(cut < self.end, cut, self.end)
        return SymbolicLog(start, end, self.epoch, self.value, number(NO_EPOCH))

    def open_epoch(self, epoch: Any) -> "SymbolicLog":
        latest = self.latest_epoch.term
        opened = choice(z3.simplify(number(epoch) == latest), self.opened, number(epoch))
        return SymbolicLog(self.start, self.end, self.epoch, self.value, opened)

    def holds_as(self, other: Any, offset: Any) -> SymbolicBool:
        right, at = SymbolicLog.of(other), number(offset)
        return SymbolicBool(conjunction([self.holds(at), right.holds(at), self.same_at(right, at)]))

    def agrees_below(self, other: Any, end: Any) -> SymbolicBool:
        right = SymbolicLog.of(other)
        at = z3.Int("offset below the end")
        return SymbolicBool(z3.ForAll([at], z3.Implies(z3.And(at >= 0, at < number(end)), self.holds_as(right, at).term)))

    def agreement_end(self, other: Any) -> SymbolicInt:
        right = SymbolicLog.of(other)

        def search() -> tuple[SymbolicInt, Any]:
            return SymbolicInt(fresh("agreement")), (self, right)

        def learn() -> None:
            _assume_laws("agreement_end", {"log": self, "other": right})

        found: SymbolicInt = remembered(("agreement_end", id(self), id(right)), search, learn)[0]
        return found

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, SymbolicLog | RecordLog):
            return NotImplemented
        right, at = SymbolicLog.of(other), z3.Int("offset within")
        alike = z3.ForAll([at], z3.Implies(self.holds(at), self.same_at(right, at)))
        return SymbolicBool(
            conjunction([self.start == right.start, self.end == right.end, self.opened == right.opened, alike])
        )

    def __hash__(self) -> int:
        raise TypeError("a rule must not hash a log: it may stand for many")

    def _search(self, operation: str, epoch: Any) -> EpochEndOffset:
        """The answer to a question about an epoch: always the same answer for the same epoch."""
        asked = number(epoch)

        def functions() -> tuple[Any, ...]:
            named, end = fresh_function(NAMED_EPOCH), fresh_function(ITS_END)
            return named, end, self

        def learn() -> None:
            _assume_laws(operation, {"log": self, "epoch": SymbolicInt(asked)})

        named, end, _ = remembered((operation, id(self)), functions)
        remembered((operation, id(self), asked.get_id()), lambda: asked, learn)
        answer: Any = (SymbolicInt(named(asked)), SymbolicInt(end(asked)))
        return EpochEndOffset(*answer)


def in_order(log: SymbolicLog) -> z3.BoolRef:
    """A formula: epochs never go back along a log. It is the premise of the laws that are stated `in_order`."""
    one, later = z3.Int("offset in order"), z3.Int("later offset in order")
    premise = z3.And(log.start <= one, one <= later, later < log.end)
    rising = z3.ForAll([one, later], z3.Implies(premise, z3.And(log.epoch(one) >= 0, log.epoch(one) <= log.epoch(later))))
    opened = disjunction(
        [log.opened == NO_EPOCH, z3.And(log.opened >= 0, log.end == log.start), z3.And(log.opened > log.epoch(log.end - 1))]
    )
    return z3.And(rising, opened)


def _any(name: str) -> str:
    """The name of a variable that a law quantifies over."""
    return f"any {name}"


def kinds_in_laws() -> dict[str, Kind]:
    """The kinds of the variables of laws that are offsets or epochs, by name."""
    found: dict[str, Kind] = {}
    for law in laws.LAWS:
        for parameter in signature(law.holds).parameters.values():
            if parameter.annotation in (Offset, Epoch):
                name, kind = _any(parameter.name), parameter.annotation
                assert found.setdefault(name, kind) is kind, f"{law.name} has another kind of {name}"
    return found


def law_as_formula(law: laws.Law, arguments: dict[str, Any]) -> z3.BoolRef:
    """A law's statement about these values, and about all values of its other parameters."""
    bound = [name for name in sorted(law.parameters) if name not in arguments]
    variables = {name: z3.Int(_any(name)) for name in bound}
    values = arguments | {name: SymbolicInt(variable) for name, variable in variables.items()}

    def called(function: Callable[..., Any]) -> z3.BoolRef:
        return formula(lambda: function(*(values[name] for name in signature(function).parameters)))

    domain = [variable >= 0 for name, variable in variables.items() if name in ("offset", "position")]
    stated = z3.Implies(conjunction([*domain, called(law.given)]), called(law.holds))
    if variables:
        stated = z3.ForAll(list(variables.values()), stated)
    if law.in_order:
        ordered = [in_order(value) for value in arguments.values() if isinstance(value, SymbolicLog)]
        stated = z3.Implies(conjunction(ordered), stated)
    return stated


def _assume_laws(operation: str, arguments: dict[str, Any]) -> None:
    for function in ASSUMED[operation]:
        assume(law_as_formula(_LAWS[function.__name__], arguments))


def _nothing(offset: Any) -> z3.ArithRef:
    return z3.IntVal(NO_VALUE)


def _with(column: Column, base: Any, end: Any, value: Any) -> Column:
    """The column with `value` from `base` to `end`, which is exclusive."""
    if z3.is_true(z3.simplify(end == base + 1)):
        return lambda offset: choice(z3.simplify(offset == base), value, column(offset))
    return lambda offset: choice(z3.simplify(z3.And(base <= offset, offset < end)), value, column(offset))
