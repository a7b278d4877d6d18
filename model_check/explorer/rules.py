"""The rules of `spec` that a step calls: found by watching the step, and told with what the releases say of them."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple, TypeVar

from kspec.model_check.models import ModelEntry
from kspec.model_check.traces.docstrings import KAFKA, docstring_of, kafka_of, meaning_of
from kspec.spec.consumer.modern.protocol import HEARTBEAT_PROTOCOLS
from kspec.spec.consumer.rules import CONSUMER_PROTOCOLS
from kspec.spec.mutation import Mutant, RuleRecord, names_of_rules
from kspec.spec.published.mutants import ISR_MUTANTS, MUTANTS
from kspec.spec.published.versions import ASYNC_ISR, KIP_101, KIP_279, KIP_320, KIP_320_FIRST_TRY, TRUNCATE_TO_HW
from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.coordinator import COORDINATOR_RELEASES
from kspec.spec.releases.group_mutants import CONSUMER_MUTANTS, COORDINATOR_MUTANTS, HEARTBEAT_MUTANTS
from kspec.spec.releases.kraft import KRAFT_RELEASES
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from kspec.spec.releases.mutants.quorum import QUORUM_MUTANTS
from kspec.spec.releases.quorum import QUORUM_RELEASES
from kspec.spec.releases.transactions.history import TRANSACTION_RELEASES
from kspec.spec.releases.transactions.mutants import TRANSACTION_MUTANTS
from kspec.spec.releases.transactions.offset_mutants import OFFSET_MUTANTS
from kspec.spec.releases.zookeeper import ZK_RELEASES

Result = TypeVar("Result")


class Family(NamedTuple):
    """Records of rules of one kind, in the order of history, and the mutants of them."""

    name: str
    records: Sequence[RuleRecord]
    mutants: Sequence[Mutant]


FAMILIES = (
    Family("broker", BROKER_RELEASES, BROKER_MUTANTS),
    Family("controller", KRAFT_RELEASES, CONTROLLER_MUTANTS),
    Family("coordinator", COORDINATOR_RELEASES, (*COORDINATOR_MUTANTS, *OFFSET_MUTANTS)),
    Family("consumer", CONSUMER_PROTOCOLS, CONSUMER_MUTANTS),
    Family("consumer, KIP-848", HEARTBEAT_PROTOCOLS, HEARTBEAT_MUTANTS),
    Family("transactions", TRANSACTION_RELEASES, TRANSACTION_MUTANTS),
    Family("quorum of controllers", QUORUM_RELEASES, QUORUM_MUTANTS),
    Family("controller on ZooKeeper", ZK_RELEASES, ()),
    Family("published", (TRUNCATE_TO_HW, KIP_101, KIP_279, KIP_320_FIRST_TRY, KIP_320), MUTANTS),
    Family("published, async-isr", (ASYNC_ISR,), ISR_MUTANTS),
)


class RuleUse(NamedTuple):
    """A place of a rule in the records of a family: the field, and the names of the records that have the rule there."""

    family: Family
    field: str
    records: tuple[str, ...]


def mutants_of(entry: ModelEntry) -> dict[str, str]:
    """The mutants that a model takes, and what each means."""
    names = next((parameter.choices for parameter in entry.parameters if parameter.name == "mutant"), ())
    known = {mutant.name: mutant.summary for family in FAMILIES for mutant in family.mutants}
    return {name: known[name] for name in names}


def watched(step: Callable[[], Result]) -> tuple[Result, list[FunctionType]]:
    """The result of a function, and the rules of `spec` that it called, in the order of their first calls.

    A rule is a function whose docstring names Kafka's class and method.
    """
    known = _rules_by_code()
    called: dict[CodeType, None] = {}

    def watch(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code in known:
            called.setdefault(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        result = step()
    finally:
        sys.setprofile(before if callable(before) else None)
    return result, [known[code] for code in called]


def _rules_by_code() -> Mapping[CodeType, FunctionType]:
    return _rules_in(tuple(name for name in sys.modules if name.startswith("kspec.spec.")))


@cache
def _rules_in(modules: tuple[str, ...]) -> Mapping[CodeType, FunctionType]:
    """The rules in these modules by their code."""
    found = {}
    for name in modules:
        for value in vars(sys.modules[name]).values():
            members = vars(value).values() if isinstance(value, type) and value.__module__ == name else (value,)
            for member in members:
                function = getattr(member, "fget", None) or getattr(member, "__func__", member)
                if isinstance(function, FunctionType) and function.__module__ == name and KAFKA in docstring_of(function):
                    found[function.__code__] = function
    return found


@cache
def uses_of(rule: Callable[..., Any]) -> tuple[RuleUse, ...]:
    """The fields of records that are this rule."""
    found = []
    for family in FAMILIES:
        for field in names_of_rules(family.records[0]):
            names = tuple(record.name for record in family.records if getattr(record, field) is rule)
            if names or any(mutant.field == field and mutant.rule is rule for mutant in family.mutants):
                found.append(RuleUse(family, field, names))
    return tuple(found)


def rule_as_json(rule: FunctionType, entry: ModelEntry) -> dict[str, Any]:
    """A rule for readers: its place, its docstring, Kafka's class and method, releases, and the mutants of this model.

    `changes` says where releases differ: the field of the record, and the releases that have this rule there.
    `weakened_by` are mutants that put a weaker rule in its place, `mutant_of` those whose weaker rule it is.
    """
    return dict(_as_json(rule, tuple(mutants_of(entry))))


@cache
def _as_json(rule: FunctionType, takes: tuple[str, ...]) -> Mapping[str, Any]:
    """A rule for readers of a model that takes these mutants."""
    weakened_by: dict[str, str] = {}
    mutant_of: dict[str, str] = {}
    for family, field, records in uses_of(rule):
        for mutant in family.mutants:
            if mutant.field == field and mutant.name in takes:
                (mutant_of if mutant.rule is rule else weakened_by if records else {})[mutant.name] = mutant.summary
    return {
        "rule": name_of(rule),
        "place": f"{rule.__module__.removeprefix('kspec.').replace('.', '/')}.py:{rule.__code__.co_firstlineno}",
        "meaning": meaning_of(rule),
        "kafka": kafka_of(rule),
        "docstring": docstring_of(rule),
        "changes": [{"of": use.family.name, "field": use.field, "releases": list(use.records)} for use in uses_of(rule)],
        "weakened_by": weakened_by,
        "mutant_of": mutant_of,
    }


def name_of(rule: FunctionType) -> str:
    """A rule by its module, without the package's own name before it, and its name."""
    return f"{rule.__module__.removeprefix('kspec.')}.{rule.__qualname__}"
