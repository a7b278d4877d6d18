"""The symbolic log obeys the laws of the algebra: what the prover does not assume of it, Z3 proves."""

from inspect import signature
from typing import Any

import pytest
import z3

from kspec.proofs.effort import Effort
from kspec.proofs.laws import LAWS, Law
from kspec.proofs.symbolic.log import ASSUMED, SymbolicLog, in_order
from kspec.proofs.symbolic.paths import Path, explore
from kspec.proofs.symbolic.shapes import LogShape
from kspec.proofs.symbolic.values import SymbolicBool, SymbolicInt, number, truth
from kspec.spec.log.batch import Batch
from kspec.spec.values import NO_EPOCH, Record

EFFORT = 15_000_000
"""The limit of Z3 to prove a law, in its own units."""

ASSUMED_NAMES = {law.__name__ for laws in ASSUMED.values() for law in laws}

NOT_PROVED = {
    "opened_epoch_starts_at_the_end": "speaks of logs out of order too, of whose answers the prover assumes less",
    "both_answers_end_alike": "speaks of logs out of order too, of whose answers the prover assumes less",
    "exchange_finds_the_agreement": "a loop: proved round by round, see proofs.induction.exchange",
    "released_exchange_finds_the_agreement": "a loop; no theorem uses it",
}


def unknown_log(name: str) -> SymbolicLog:
    log = LogShape().unknown(name, 0)()
    assert isinstance(log, SymbolicLog)
    return log


def is_log(log: SymbolicLog) -> z3.BoolRef:
    """The law of every log: it ends at or after its start, its epochs are epochs, and an opened epoch is above the last."""
    at = z3.Int("any offset")
    epochs = z3.ForAll([at], z3.Implies(log.holds(at), log.epoch(at) >= 0))
    last = z3.If(log.end > log.start, log.epoch(log.end - 1), NO_EPOCH)
    return z3.And(log.start >= 0, log.start <= log.end, epochs, z3.Or(log.opened == NO_EPOCH, log.opened > last))


def record(name: str) -> Any:
    return Record(SymbolicInt(z3.Int(f"{name}.value")), SymbolicInt(z3.Int(f"{name}.epoch")))  # type: ignore[arg-type]


def batch(name: str, record_count: Any) -> Any:
    return Batch(record_count, SymbolicInt(z3.Int(f"{name}.epoch")), SymbolicInt(z3.Int(f"{name}.payload")))  # type: ignore[arg-type]


def arguments(law: Law, limit: int) -> dict[str, Any]:
    made: dict[str, Any] = {
        "log": unknown_log("log"),
        "other": unknown_log("other"),
        "batches": (record("first"), batch("second", 2)),
        "more": (record("third"),),
        "batch": batch("batch", SymbolicInt(z3.Int("batch.count"))),
        "next_batch": batch("next", SymbolicInt(z3.Int("next.count"))),
        "limit": limit,
    }
    return {name: made.get(name, SymbolicInt(z3.Int(name))) for name in law.parameters}


def counterexamples(law: Law, limit: int) -> list[Any]:
    """Paths through a law on which Z3 does not prove it."""
    values = arguments(law, limit)
    logs = [value for value in values.values() if isinstance(value, SymbolicLog)]
    known = [is_log(log) for log in logs]
    known += [
        value.term >= (NO_EPOCH if name in ("epoch", "later") else 0)
        for name, value in values.items()
        if isinstance(value, SymbolicInt)
    ]
    batches = [*values.get("batches", ()), *values.get("more", ())]
    batches += [values[name] for name in ("batch", "next_batch") if name in values]
    known += [entry.leader_epoch.term >= 0 for entry in batches]
    known += [number(entry.record_count) >= 1 for entry in batches]
    if "part" in values:
        known += [values["part"].term >= 1, values["part"].term < values["batch"].record_count.term]
    if law.in_order:
        known += [in_order(log) for log in logs]

    def called(function: Any) -> Any:
        return function(*(values[name] for name in signature(function).parameters))

    def stated() -> Any:
        return called(law.holds) if called(law.given) else True

    def unproved(path: Path) -> bool:
        solver = z3.Solver()
        value = path.value if isinstance(path.value, SymbolicBool) else bool(path.value)
        solver.add(*known, path.condition, path.facts, z3.Not(truth(value)))
        return bool(Effort(EFFORT).ask(solver) != z3.unsat)

    return [path for path in explore(stated, known) if unproved(path)]


@pytest.mark.parametrize("law", [law for law in LAWS if law.name not in NOT_PROVED], ids=lambda law: law.name)
def test_a_symbolic_log_obeys(law: Law) -> None:
    for limit in (0, 1, 2) if "limit" in law.parameters else (1,):
        assert counterexamples(law, limit) == []


@pytest.mark.parametrize("law", [law for law in LAWS if law.name in ASSUMED_NAMES], ids=lambda law: law.name)
def test_what_is_assumed_does_not_follow_from_nothing(law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    """The assumed laws say something: without them, nothing is known of the answer."""
    for operation in ASSUMED:
        monkeypatch.setitem(ASSUMED, operation, ())
    assert counterexamples(law, 1)


def test_the_exceptions_are_laws() -> None:
    assert NOT_PROVED.keys() | ASSUMED_NAMES <= {law.name for law in LAWS}
