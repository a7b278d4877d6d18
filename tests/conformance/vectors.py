"""Test vectors: what Apache Kafka's own unit tests expect, as data, replayed against this specification.

A file of vectors is a JSON list. A vector names a component, the operations to carry out on it in order (`setup`), and
what its state must be at the end (`expect`); an operation may carry the answer that it must give (`expect`). A pair is
a list, an absent value is null, an undefined epoch or offset is -1.

A component is a class here with one method per operation. Run a file with `python -m tests.conformance.vectors FILE`: one
line for each vector, and exit status 1 if any fails. What no class or method here can do, or what has another form than they
know, is reported as unsupported: not passed over, and no exception. `tests.conformance.vocabulary` has the other names and
forms that are known.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from tests.conformance.components import UNDEFINED, ById, VectorAnswer, in_pairs
from tests.conformance.components.cluster import ClusterOfVectors
from tests.conformance.components.controller import ControllerOfVectors
from tests.conformance.components.epochs import EpochCache, OffsetForLeaderEpochApi
from tests.conformance.components.fetcher import Fetcher
from tests.conformance.components.leader_partition import LeaderPartition
from tests.conformance.components.logs import CheckpointFile, LogOfVectors, ProducerStateOfVectors, ReplicaState
from tests.conformance.controller_vectors import CONTROLLER_COMPONENTS
from tests.conformance.outcomes import MismatchError, UnsupportedError
from tests.conformance.vocabulary import bind, error_name, field_of, in_snake_case, is_error_name, operation_of

Vector = dict[str, Any]

DATA = Path(__file__).parent / "data"
KAFKA_VECTORS = DATA / "kafka-vectors.json"


class Component(Protocol):
    """Something that vectors operate on: a method for each operation, which returns its answer as JSON has it."""

    def final_state(self) -> dict[str, Any]:
        """Values that a vector may expect at its end, by name."""


COMPONENTS: dict[str, type[Component]] = {
    "epoch_cache": EpochCache,
    "offset_for_leader_epoch_api": OffsetForLeaderEpochApi,
    "log": LogOfVectors,
    "replica_state": ReplicaState,
    "producer_state": ProducerStateOfVectors,
    "checkpoint_file": CheckpointFile,
    "leader_partition": LeaderPartition,
    "fetcher": Fetcher,
    "cluster": ClusterOfVectors,
    "controller": ControllerOfVectors,
    **CONTROLLER_COMPONENTS,
}


class VectorOutcome(NamedTuple):
    """The outcome of a vector, with the reason unless it passed."""

    vector: str
    verdict: Literal["pass", "fail", "unsupported"]
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.verdict:11} {self.vector}" + (f": {self.reason}" if self.reason else "")


def load(file: Path) -> list[Vector]:
    """The vectors of a file. Raises `ValueError` if it is no JSON list, `OSError` if it cannot be read."""
    vectors: list[Vector] = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(vectors, list):
        raise ValueError("not a list of vectors")
    return vectors


UNREADABLE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
"""Exceptions for a vector of an unknown form."""


def replay(vector: Vector) -> VectorOutcome:
    """Carry out one vector, in every mode that it names, and compare."""
    try:
        outcomes = [_replay(variant) for variant in _in_each_mode(vector)]
        return next((outcome for outcome in outcomes if outcome.verdict != "pass"), outcomes[0])
    except UNREADABLE as gap:
        return VectorOutcome(_id_of(vector), "unsupported", f"not in the vocabulary: {type(gap).__name__}: {gap}")


def _in_each_mode(vector: Vector) -> Iterator[Vector]:
    """An operation `mode` lists values of settings; the vector holds for each combination of them."""
    setup = vector.get("setup", [])
    modes = [operation for operation in setup if operation.get("op") == "mode"]
    others = [operation for operation in setup if operation.get("op") != "mode"]
    choices = {name: _listed(values) for mode in modes for name, values in mode.items() if name != "op"}
    for chosen in product(*choices.values()):
        mode = [{"op": "mode"} | dict(zip(choices, chosen, strict=True))] if modes else []
        yield vector | {"setup": mode + others}


def _listed(values: Any) -> list[Any]:
    return values if isinstance(values, list) else [values]


def _replay(vector: Vector) -> VectorOutcome:
    try:
        component = _component_of(vector["component"])()
        for number, operation in enumerate(vector["setup"], start=1):
            _carry_out(component, operation, f"operation {number}, {operation['op']}")
        _compare_state("final", vector.get("expect") or {}, component.final_state())
    except UnsupportedError as gap:
        return VectorOutcome(_id_of(vector), "unsupported", str(gap))
    except MismatchError as failure:
        return VectorOutcome(_id_of(vector), "fail", str(failure))
    except AssertionError as failure:
        return VectorOutcome(_id_of(vector), "fail", f"our own bug, or a state that no broker is in: {failure}")
    return VectorOutcome(_id_of(vector), "pass")


def _component_of(name: str) -> type[Component]:
    """The component of this name; whatever runs on a cluster runs on the same one."""
    known = COMPONENTS.get("cluster" if str(name).startswith("cluster") else name)
    if known is None:
        raise UnsupportedError(f"component {name}")
    return known


def _id_of(vector: Vector) -> str:
    return str(vector.get("id", "a vector without id")) if isinstance(vector, dict) else "a vector of another form"


def _carry_out(component: Component, operation: dict[str, Any], which: str) -> None:
    """Carry out one operation, and compare its error, its answer, and whatever else the vector expects by name.

    What the answer does not have under that name is looked up in the state after the operation.
    """
    arguments = {name: value for name, value in operation.items() if name != "op" and not name.startswith("expect")}
    expected = {in_snake_case(name): value for name, value in operation.items() if name.startswith("expect")}
    if operation["op"] == "state":
        _compare_state(which, (expected.get("expect") or {}) | arguments, component.final_state())
        return
    method = operation_of(component, operation["op"])
    if method is None:
        raise UnsupportedError(which)
    try:
        answered = method(**bind(method, arguments))
    except UnsupportedError as gap:
        raise UnsupportedError(f"{which}, {gap}") from gap
    answer = answered if isinstance(answered, VectorAnswer) else VectorAnswer(value=answered)
    _compare(f"{which}, error", _expected_error(expected, answer), answer.error)
    if "expect" in expected:
        _compare_answer(which, expected.pop("expect"), answer)
    for field, value in expected.items():
        name = field.removeprefix("expect_")
        there = answer.named if field_of(answer.named, name) is not None else component.final_state()
        _compare_named(which, name, value, there)


ERROR_FIELDS = ("error", "status", "exception", "throws", "error_code", "error_name")


def _expected_error(expected: dict[str, Any], answer: VectorAnswer) -> str:
    """The error that an operation must give: none, unless the vector names one; it is taken out of `expected`."""
    named = [expected.pop(f"expect_{field}") for field in ERROR_FIELDS if f"expect_{field}" in expected]
    whole = expected.get("expect")
    if isinstance(whole, dict) and not isinstance(answer.value, dict):
        named += [whole[field] for field in ERROR_FIELDS if field in whole]
        expected["expect"] = {field: value for field, value in whole.items() if field not in ERROR_FIELDS}
    elif is_error_name(whole):
        named.append(expected.pop("expect"))
    errors = {_any_error(answer) if error is True else error_name(error) for error in named}
    if len(errors) > 1:
        raise UnsupportedError(f"several errors: {', '.join(sorted(errors))}")
    return errors.pop() if errors else "NONE"


def _any_error(answer: VectorAnswer) -> str:
    return "an error" if answer.error == "NONE" else answer.error


def _compare_answer(which: str, expected: Any, answer: VectorAnswer) -> None:
    """Compare with the whole answer: its value, or what it has by name."""
    if isinstance(expected, dict) and isinstance(answer.value, dict) and not hasattr(answer.value, "matches"):
        _compare_state(which, expected, answer.value)
    elif isinstance(expected, dict) and answer.named and not hasattr(answer.value, "matches"):
        for name, value in expected.items():
            _compare_named(which, name, value, answer.named)
    else:
        _compare(which, expected, answer.value)


def _compare_named(which: str, name: str, expected: Any, named: dict[str, Any]) -> None:
    field = field_of(named, name)
    if field is None:
        raise UnsupportedError(f"{which}, expect_{name}")
    _compare(f"{which}, {name}", expected, named[field])


def _compare_state(what: str, expected: dict[str, Any], state: dict[str, Any]) -> None:
    """Compare the part of a state that a vector speaks of."""
    for name, value in expected.items():
        field = field_of(state, name)
        if field is None and not isinstance(state, ById):
            raise UnsupportedError(f"{what} {name}")
        actual = None if field is None else state[field]
        if isinstance(value, dict) and isinstance(actual, dict):
            _compare_state(f"{what} {name}", value, actual)
        else:
            _compare(f"{what} {name}", value, actual)


def _compare(what: str, expected: Any, actual: Any) -> None:
    """Compare two values; a pair may be written as an object, in which the epoch comes first.

    A value that an expectation may have in several forms knows them itself (`matches`).
    """
    if hasattr(actual, "matches"):
        if not actual.matches(expected):
            raise MismatchError(f"{what}: expected {json.dumps(expected)}, got {json.dumps(actual)}")
        return
    if isinstance(expected, dict) and isinstance(actual, list) and len(expected) == len(actual):
        expected = in_pairs(expected)
    if actual != expected and not (actual in UNDEFINED and expected in UNDEFINED):
        raise MismatchError(f"{what}: expected {json.dumps(expected)}, got {json.dumps(actual, default=repr)}")


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tests.conformance.vectors FILE", file=sys.stderr)
        return 2
    try:
        vectors = load(Path(arguments[0]))
    except (OSError, ValueError) as wrong:
        print(f"{arguments[0]}: no file of vectors, which is a JSON list: {wrong}", file=sys.stderr)
        return 2
    outcomes = [replay(vector) for vector in vectors]
    for outcome in outcomes:
        print(outcome)
    counts = Counter(outcome.verdict for outcome in outcomes)
    print(f"{len(outcomes)} vectors: {counts['pass']} pass, {counts['fail']} fail, {counts['unsupported']} unsupported")
    return 1 if counts["fail"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
