"""The specification is pure: it computes values from values, and nothing else reaches into it.

What the source says is read with `ast`; each check is shown to find what it is for.
"""

import ast
import importlib.util
import types
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from kspec import spec
from kspec.spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr, propose
from kspec.spec.broker.rules.truncation import truncation_step
from kspec.spec.claims import CLAIMS
from kspec.spec.log.epoch_history import NO_ENTRY, EpochEntry, EpochHistory
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.fetch import NO_FETCH, FetchResponse
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from kspec.spec.published.mutants import MUTANTS
from kspec.spec.published.versions import ASYNC_ISR, KIP_320
from kspec.spec.values import (
    NO_EPOCH,
    NO_PARTITION_EPOCH,
    UNDEFINED_EPOCH_END,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    Instant,
    LeaderAndIsr,
    MonotonicMs,
    Offset,
    PartitionEpoch,
    Record,
    TimestampMs,
)
from tests.spec.broker_values import BROKER_VALUES
from tests.spec.controller_values import CONTROLLER_VALUES
from tests.spec.coordinator_values import COORDINATOR_VALUES
from tests.spec.published.test_versions import VERSIONS
from tests.spec.quorum.values import QUORUM_VALUES
from tests.spec.topic_values import TOPIC_VALUES
from tests.spec.transactions.values import TRANSACTION_VALUES

FOLDER = Path(spec.__path__[0])
FILES = sorted(FOLDER.rglob("*.py"))
MODULES = [
    import_module(".".join(("kspec", "spec", *file.relative_to(FOLDER).with_suffix("").parts)))
    for file in FILES
    if file.stem != "__init__"
]

PURE_MODULES = {"bisect", "collections", "dataclasses", "enum", "functools", "itertools", "math", "operator", "typing"}
"""Of the standard library: what knows no clock, chance, file, socket, thread or process."""

IMPURE_BUILTINS = {"open", "input", "print", "exec", "eval", "compile", "globals", "locals", "vars", "setattr", "delattr"}
NO_SYMBOLIC_VALUE = {"hash", "id", "isinstance", "issubclass", "type"}
"""Functions that a symbolic number or log cannot answer."""

VERSION_NAMES = {version.name for version in (*VERSIONS, ASYNC_ISR)}


def complaints(source: str) -> Iterator[str]:
    """Places in a source text that would make a specification impure, or would ask for a version by name."""
    tree = ast.parse(source)
    tree.body = [statement for statement in tree.body if not _lists_releases(statement)]
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr):
            yield from (f"{problem}: line {node.lineno}" for problem in _problems(node))


def _lists_releases(statement: ast.stmt) -> bool:
    """Whether a statement of a file collects the releases that the file defines: `X_RELEASES = …`."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name.endswith("_RELEASES")
    return False


def _problems(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (f"imports {alias.name}" for alias in names if not _is_pure(alias.name))
        case ast.ImportFrom(module=module, level=level):
            if level or not _is_pure(module or ""):
                yield f"imports {module}"
        case ast.Global() | ast.Nonlocal():
            yield "changes a variable of an outer scope"
        case ast.AsyncFunctionDef() | ast.Await() | ast.Yield() | ast.YieldFrom():
            yield "gives up control"
        case ast.Raise() | ast.Try():
            yield "refuses by exception"
        case ast.Call(func=ast.Name(id=name)) if name in IMPURE_BUILTINS | NO_SYMBOLIC_VALUE:
            yield f"calls {name}"
        case ast.Compare(left=left, ops=operators, comparators=comparators):
            yield from _problems_of_comparison(operators, [left, *comparators])
        case ast.Assign(targets=targets):
            if any(isinstance(target, ast.Attribute) for target in targets):
                yield "assigns into a value"


def _is_pure(module: str) -> bool:
    return module == "kspec.spec" or module.startswith("kspec.spec.") or module.split(".", maxsplit=1)[0] in PURE_MODULES


def _problems_of_comparison(operators: list[ast.cmpop], operands: list[ast.expr]) -> Iterator[str]:
    for operator, sides in zip(operators, pairwise(operands), strict=True):
        by_identity = isinstance(operator, ast.Is | ast.IsNot)
        if by_identity and not any(isinstance(side, ast.Constant) and side.value is None for side in sides):
            yield "compares values by identity"
    for operand in operands:
        match operand:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name.endswith("version") or name in ("protocol", "release"):
                yield f"asks for the {name}"
            case ast.Constant(value=value) if value in VERSION_NAMES:
                yield f"asks for {value}"


def test_the_rules_refuse_to_be_imported_under_a_second_name() -> None:
    described = importlib.util.spec_from_file_location("spec", FOLDER / "__init__.py")
    assert described is not None
    assert described.loader is not None
    with pytest.raises(ImportError, match=r"import kspec\.spec instead"):
        described.loader.exec_module(importlib.util.module_from_spec(described))


def test_nothing_is_impure() -> None:
    found = {str(file.relative_to(FOLDER)): list(complaints(file.read_text(encoding="utf-8"))) for file in FILES}
    refusal = found["__init__.py"].pop()  # to be imported under another name
    assert refusal.startswith("refuses by exception")
    assert {file: told for file, told in found.items() if told} == {}


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("import time", "imports time"),
        ("import kspec.spec.log, os.path", "imports os.path"),
        ("from random import choice", "imports random"),
        ("from kspec.model_check.model import Model", "imports kspec.model_check.model"),
        ("from . import log", "imports None"),
        ("def f():\n    import socket", "imports socket"),
        ("def f():\n    global count", "changes a variable of an outer scope"),
        ("async def f(): pass", "gives up control"),
        ("def f(): yield 1", "gives up control"),
        ("raise ValueError", "refuses by exception"),
        ("print(1)", "calls print"),
        ("def f():\n    A_RELEASES = vars()", "calls vars"),
        ("hash(offset)", "calls hash"),
        ("log.end = 1", "assigns into a value"),
        ("a is b", "compares values by identity"),
        ("a is not 0", "compares values by identity"),
        ("a == b is c", "compares values by identity"),
        ("if version == 3: pass", "asks for the version"),
        ("if self.protocol_version >= 3: pass", "asks for the protocol_version"),
        ("if protocol == KIP_320: pass", "asks for the protocol"),
        ("x = 1 if rules.name == 'kip-320' else 2", "asks for kip-320"),
    ],
)
def test_the_check_finds(source: str, complaint: str) -> None:
    assert [found.split(":")[0] for found in complaints(source)] == [complaint]


@pytest.mark.parametrize(
    "source",
    [
        "a is None",
        "a is not None",
        "from kspec.spec.log.algebra import Log",
        "x == 1",
        "def f(): return 1",
        "A_RELEASES = tuple(vars())",
    ],
)
def test_the_check_passes(source: str) -> None:
    assert list(complaints(source)) == []


# ---- values


def classes() -> list[type]:
    found = [value for module in MODULES for value in vars(module).values() if isinstance(value, type)]
    return sorted({cls for cls in found if cls.__module__.startswith("kspec.spec.")}, key=lambda cls: cls.__name__)


def is_interface(cls: type) -> bool:
    return getattr(cls, "_is_protocol", False)


def is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_frozen(cls: type) -> bool:
    return is_dataclass(cls) and getattr(cls, "__dataclass_params__").frozen and hasattr(cls, "__slots__")  # noqa: B009


def test_a_class_is_an_interface_an_enumeration_or_frozen() -> None:
    others = [cls for cls in classes() if not (is_interface(cls) or issubclass(cls, Enum) or is_named_tuple(cls))]
    assert [cls for cls in others if not is_frozen(cls)] == []


def test_no_field_is_of_a_kind_that_can_change() -> None:
    for cls in classes():
        kinds = {get_origin(hint) or hint for hint in get_type_hints(cls).values()}
        assert is_interface(cls) or kinds.isdisjoint({list, dict, set, bytearray}), cls


ROLE = LeaderAndIsr(BrokerId(1), NO_EPOCH, frozenset({BrokerId(1)}))
LEADER = LeaderIsr(ROLE.isr, PartitionEpoch(0), frozenset(), NO_PARTITION_EPOCH)
VALUES: tuple[Any, ...] = (
    CLAIMS[0],
    *BROKER_VALUES,
    *CONTROLLER_VALUES,
    *COORDINATOR_VALUES,
    *QUORUM_VALUES,
    *TOPIC_VALUES,
    *TRANSACTION_VALUES,
    ASYNC_ISR,
    EMPTY_LOG,
    OffsetForLeaderEpochResponse(Error.NONE, UNDEFINED_EPOCH_END),
    EpochHistory(),
    FetchResponse(Error.NONE),
    KIP_320,
    LEADER,
    Instant(MonotonicMs(1), TimestampMs(2)),
    MUTANTS[0],
    NO_ENTRY,
    NO_FETCH,
    PartitionIsr(ROLE.isr, PartitionEpoch(0)),
    ROLE,
    Record(0, NO_EPOCH),
    UNDEFINED_EPOCH_END,
    propose(LEADER, ROLE.isr),
    truncation_step(EMPTY_LOG, Offset(0), UNDEFINED_EPOCH_END),
)


def unions() -> dict[str, tuple[type, ...]]:
    """The alternatives that stand in for one another: what a party may get, answer, or ask to be done."""
    found = {}
    for module in MODULES:
        for name, value in vars(module).items():
            if get_origin(value) in (types.UnionType, Union):
                place = module.__name__.removeprefix("kspec.")
                found[f"{place}.{name}"] = tuple(get_origin(kind) or kind for kind in get_args(value))
    return found


def may_be_equal(kinds: Iterable[type]) -> list[set[type]]:
    """Those that a comparison may take for one another: tuples of the same length."""
    tuples = sorted({kind for kind in kinds if is_named_tuple(kind)}, key=lambda kind: kind.__name__)
    return [{one, other} for one, other in combinations(tuples, 2) if len(one._fields) == len(other._fields)]  # type: ignore[attr-defined]


def test_values_of_different_classes_are_never_equal() -> None:
    """Named tuples compare as tuples, whatever their classes."""
    found = {name: may_be_equal(kinds) for name, kinds in unions().items()}
    assert found
    assert {name: equal for name, equal in found.items() if equal} == {}


def test_the_check_for_equal_tuples_finds_one() -> None:
    assert may_be_equal([Record, EpochEndOffset, LeaderAndIsr]) == [{EpochEndOffset, Record}]
    record: object = Record(1, Epoch(2))
    assert record == EpochEndOffset(Epoch(1), Offset(2))


def test_an_epoch_entry_is_no_end_offset() -> None:
    entry: object = EpochEntry(Epoch(1), Offset(2))
    assert entry != EpochEndOffset(Epoch(1), Offset(2))


def test_there_is_a_value_of_every_class() -> None:
    of_values = {cls for cls in classes() if not is_interface(cls) and not issubclass(cls, Enum)}
    assert {type(value) for value in VALUES} == of_values


def test_a_value_cannot_be_changed_and_can_be_a_key() -> None:
    for value in VALUES:
        for name in getattr(value, "_fields", None) or value.__dataclass_fields__:
            try:
                setattr(value, name, getattr(value, name))
            except AttributeError:
                continue
            pytest.fail(f"{name} of {value} was changed")
        assert {value: "found"}[value] == "found"


def is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def test_nothing_in_a_module_can_change() -> None:
    """A constant that is hashable holds no list, dictionary or set."""
    constants = [
        (f"{module.__name__}.{name}", value)
        for module in MODULES
        for name, value in vars(module).items()
        if not name.startswith("__")
    ]
    assert len(constants) > 1_000
    assert [name for name, value in constants if not is_hashable(value)] == []


def test_equal_logs_made_in_different_ways_are_one_key() -> None:
    record = Record(1, NO_EPOCH)
    assert (
        len({RecordLog((record,)), EMPTY_LOG.append((record,)), EMPTY_LOG.append((record, record)).truncate_to(Offset(1))})
        == 1
    )
