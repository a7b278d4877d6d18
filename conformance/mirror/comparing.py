"""Comparison of what the specification expects with what a real controller did; and the rule that a difference is about."""

from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

from kspec.conformance.mirror.taking import MirroredAnswer, MirroredRequest, handler_of
from kspec.conformance.mirror.translation import OtherRecord
from kspec.spec.controller.protocol import ControllerProtocol
from kspec.spec.messages.alter_partition import AlterPartitionRequest
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest
from kspec.spec.metadata import BrokerRegistrationChangeRecord, MetadataRecord, PartitionChangeRecord, RegisterBrokerRecord
from kspec.spec.values import Error


class Difference(NamedTuple):
    """An expected and an observed value, and the rule that says so: its name in `ControllerProtocol`, or its handler."""

    what: str
    expected: str
    observed: str
    rule: str


RULES_OF_FIELDS = {
    "isr": "complete_reassignment",
    "leader": "elect",
    "replicas": "complete_reassignment",
    "removing": "complete_reassignment",
    "adding": "complete_reassignment",
    "recovery": "marks_recovering",
    "elr": "eligible_leaders",
    "last_known_elr": "remembers_leader",
    "fenced": "caught_up",
    "in_controlled_shutdown": "marks_shutdown",
    "registration": "register_again",
}
"""The rule that decides a field of a record, where releases or mutants differ in one."""

TELLING = ("replicas", "removing", "adding", "leader", "elr", "last_known_elr", "recovery", "isr")
"""The fields of a change, those that tell most of the rule behind it first."""

RULES_OF_ERRORS = {
    Error.NOT_CONTROLLER: "check_controller_ahead",
    Error.FENCED_LEADER_EPOCH: "check_proposer",
    Error.INVALID_UPDATE_VERSION: "check_proposer",
    Error.INELIGIBLE_REPLICA: "eligible_for_isr",
    Error.NEW_LEADER_ELECTED: "moved_away",
}
"""The rule behind an answer to AlterPartition."""


def in_words(value: object) -> str:
    """A value by its fields, without those that say nothing."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, frozenset):
        return "{" + ", ".join(map(str, sorted(value))) + "}"
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        defaults: dict[str, Any] = getattr(type(value), "_field_defaults", {})
        shown = {
            name: field
            for name, field in value._asdict().items()
            if field is not None and not (name in defaults and defaults[name] == field) and name != "partition_id"
        }
        return f"{type(value).__name__}({', '.join(f'{name}={in_words(field)}' for name, field in shown.items())})"
    if isinstance(value, tuple):
        return "(" + ", ".join(in_words(part) for part in value) + ")"
    return str(value)


def records_in_words(records: tuple[Any, ...]) -> str:
    """Records, one after the other."""
    return "; ".join(map(in_words, records)) or "no record"


def first_difference(
    rules: ControllerProtocol,
    request: MirroredRequest,
    expected: tuple[MirroredAnswer, tuple[MetadataRecord, ...]],
    observed: tuple[MirroredAnswer, tuple[MetadataRecord | OtherRecord, ...]],
) -> Difference | None:
    """The first difference in the records, else in the answer; `None` if there is none."""
    rule = _records_rule(request, expected, observed)
    if rule is not None:
        words = records_in_words(expected[1]), records_in_words(observed[1])
        return Difference("records", *words, _named(rules, rule))
    if _compared(expected[0]) != _compared(observed[0]):
        rule = _answer_rule(request, expected[0], observed[0])
        return Difference("answer", in_words(expected[0]), in_words(observed[0]), _named(rules, rule))
    return None


def _compared(answer: MirroredAnswer) -> object:
    """The compared part of an answer: a refusal has nothing but its error."""
    return answer if answer.error == Error.NONE else answer.error


def _named(rules: ControllerProtocol, rule: str) -> str:
    """A rule with the function that states it."""
    function = getattr(rules, rule, None)
    return rule if function is None else f"{rule}: {function.__name__}"


def _answer_rule(request: MirroredRequest, expected: MirroredAnswer, observed: MirroredAnswer) -> str:
    handler = handler_of(request).__name__
    match request:
        case AlterPartitionRequest():
            by_error = (RULES_OF_ERRORS.get(error) for error in (expected.error, observed.error))
            return next((rule for rule in by_error if rule is not None), handler)
        case BrokerRegistrationRequest() if expected.error == observed.error == Error.NONE:
            return "register_again"
        case BrokerHeartbeatRequest() if expected.error == observed.error == Error.NONE:
            return "caught_up"
        case _:
            return handler


def _records_rule(
    request: MirroredRequest,
    expected: tuple[MirroredAnswer, tuple[MetadataRecord, ...]],
    observed: tuple[MirroredAnswer, tuple[MetadataRecord | OtherRecord, ...]],
) -> str | None:
    """The rule behind the first difference of the records, `None` if there is none."""
    ours, theirs = expected[1], observed[1]
    if ours == theirs:
        return None
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            return _field_rule(request, one, other)
    handler = handler_of(request).__name__
    longer = ours[len(theirs) :] or theirs[len(ours) :]
    if isinstance(request, AlterPartitionRequest):
        if expected[0].error == observed[0].error != Error.NONE:
            return "ends_refused"
        return _answer_rule(request, expected[0], observed[0])
    if isinstance(request, BrokerRegistrationRequest):
        return "departure" if any(isinstance(record, PartitionChangeRecord) for record in longer) else handler
    if isinstance(longer[0], PartitionChangeRecord):
        return next((RULES_OF_FIELDS[name] for name in _fields_set(longer[0])), handler)
    return "caught_up" if isinstance(request, BrokerHeartbeatRequest) else handler


def _fields_set(record: PartitionChangeRecord) -> Iterator[str]:
    defaults = type(record)(record.partition_id)
    return (name for name in TELLING if getattr(record, name) != getattr(defaults, name))


def _field_rule(request: MirroredRequest, one: MetadataRecord, other: MetadataRecord | OtherRecord) -> str:
    """The rule that decides the first field in which two records differ."""
    handler = handler_of(request).__name__
    if isinstance(request, BrokerRegistrationRequest) and PartitionChangeRecord in (type(one), type(other)):
        return "departure"
    if type(one) is not type(other):
        return handler
    if isinstance(one, PartitionChangeRecord) and isinstance(other, PartitionChangeRecord):
        differing = [name for name in PartitionChangeRecord._fields if getattr(one, name) != getattr(other, name)]
        if differing == ["leader"] and -2 in (one.leader, other.leader):
            return "opens_epoch"
        return next((RULES_OF_FIELDS[name] for name in TELLING if name in differing), handler)
    if isinstance(one, RegisterBrokerRecord):
        return "register_again"
    if isinstance(one, BrokerRegistrationChangeRecord):
        differing = [name for name in one._fields if getattr(one, name) != getattr(other, name)]
        return RULES_OF_FIELDS.get(differing[0], handler)
    return handler
