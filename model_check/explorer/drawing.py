"""A state as a tree for drawing: brokers with their logs, the controller, clients, messages under way.

What is drawn is found by the types of values, so a model needs no drawing of its own. Every slot is told in words besides,
so nothing is missing where there is no picture of it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kspec.model_check.core.model import CONTROLLER, COORDINATOR, PRODUCER, Model, Party, Slot, State
from kspec.model_check.explorer.verdicts import records_of
from kspec.model_check.models.group.values import GroupExchange, LateRequest
from kspec.model_check.models.kafka.values import (
    AlterPartitionExchange,
    ClientKnowledge,
    Image,
    Inbox,
    LateFetch,
    Memory,
    ModelController,
    PlacedRecord,
    Process,
    RequestState,
    TopicRegistration,
    ZkCluster,
)
from kspec.model_check.models.messages.values import (
    NOT_PROPOSED,
    NOT_SENT,
    Fetch,
    FetchAnswer,
    IsrAnswer,
    IsrProposal,
    PartitionState,
)
from kspec.model_check.models.parts import Role
from kspec.model_check.models.published.board import NOT_ANNOUNCED, AcknowledgedRecord
from kspec.model_check.traces.encode import as_json, in_words
from kspec.model_check.traces.render import field_name, owner, party_name, slot_in_words
from kspec.spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr
from kspec.spec.log.epoch_history import EpochHistory
from kspec.spec.log.local_log import LocalLog
from kspec.spec.values import NO_EPOCH, NO_LEADER, BrokerId, LeaderAndIsr

Values = Mapping[str, Any]
"""A state's values by slot label."""

Ends = tuple[Party, Party]
"""Sender and receiver of a message."""

PARTITIONS = (LeaderAndIsr, PartitionIsr, PartitionState)
"""Types of what a controller holds of the partition."""


def state_as_tree(model: Model, state: State) -> dict[str, Any]:
    """A state as docs/explorer.md has it."""
    values = {slot.label: value for slot, value in zip(model.slots, state, strict=True)}
    brokers = sorted({slot.broker for slot in model.slots if slot.broker is not None})
    said: dict[Party, list[dict[str, Any]]] = {}
    for slot, value in zip(model.slots, state, strict=True):
        if not slot.bookkeeping:
            said.setdefault(owner(slot), []).append(
                {"slot": slot.label, "name": field_name(slot), "words": slot_in_words(slot, value), "value": as_json(value)}
            )
    acknowledged, read = known_to_clients(values)
    middle = COORDINATOR if COORDINATOR in said else CONTROLLER
    return {
        "brokers": [{**_broker(broker, values), "slots": said.get(broker, [])} for broker in brokers],
        "controller": {
            "party": middle,
            "partition": _partition(values),
            **_registered(values),
            "slots": said.get(middle, []),
        },
        "clients": {"acknowledged": acknowledged, "read": read, "slots": said.get(PRODUCER, [])},
        "in_flight": list(_in_flight(model, values, brokers)),
    }


# ---- a broker


def _broker(broker: int, values: Values) -> dict[str, Any]:
    own = {label: value for label, value in values.items() if label.endswith(f"[{broker}]")}
    process = next((value for value in own.values() if isinstance(value, Process)), None)
    memory = next((value for value in own.values() if isinstance(value, Memory)), Memory())
    return {
        "broker": broker,
        "party": party_name(broker),
        "up": None if process is None else process.up,
        "log": log_as_json(broker, values),
        "role": _role(broker, values),
        "waiting": [as_json(waiting) for waiting in sorted(memory.waiting)],
    }


def log_as_json(broker: int, values: Values) -> dict[str, Any] | None:
    """A log with its offsets; one of which the model has only the end has no records."""
    held = values.get(f"log[{broker}]")
    if held is None:
        end = values.get(f"endOffset[{broker}]")
        if end is None:
            return None
        return {"start": 0, "end": end, "high_watermark": None, "records": None, "epochs": None}
    log, high_watermark = held, values.get(f"highWatermark[{broker}]")
    if isinstance(held, LocalLog):
        log, high_watermark = held.log, held.high_watermark
    found = records_of(held)
    if found is None:  # of a model of somebody's own
        return None
    start, records = found
    history: EpochHistory = log.epoch_history
    return {
        "start": int(log.start_offset),
        "end": int(log.end_offset),
        "high_watermark": high_watermark,
        "records": [
            {
                "offset": offset,
                "value": record.value,
                "leader_epoch": record.leader_epoch,
                "words": in_words(record),
                "below_high_watermark": high_watermark is not None and offset < high_watermark,
            }
            for offset, record in enumerate(records, start)
        ],
        "epochs": [{"leader_epoch": epoch, "start_offset": begins} for epoch, begins in history.pairs],
    }


def _role(broker: int, values: Values) -> dict[str, Any]:
    """The leader that a broker takes for the present one; what only a leader knows is `null` in others."""
    role = values.get(f"role[{broker}]")
    isr: Any = values.get("leaderIsr") if broker == 1 and "leaderIsr" in values else None
    leader, epoch, start = NO_LEADER, NO_EPOCH, None
    if isr is not None:
        leader = BrokerId(broker)
    elif isinstance(role, Role | LeaderAndIsr):
        leader, epoch = role.leader, role.leader_epoch
        if leader == broker:
            isr = role.isr
            start = role.epoch_start if isinstance(role, Role) else None
    pending = sorted(isr.pending_isr) if isinstance(isr, LeaderIsr) and isr.pending_isr else None
    members = isr.isr if isinstance(isr, LeaderIsr) else isr
    return {
        "is": "leader" if leader == broker else "none" if leader == NO_LEADER else "follower",
        "leader": None if leader == NO_LEADER else leader,
        "leader_epoch": None if epoch == NO_EPOCH else epoch,
        "epoch_start": start,
        "isr": None if members is None else sorted(members),
        "pending_isr": pending,
    }


# ---- controller and clients


def _partition(values: Values) -> dict[str, Any] | None:
    """The controller's partition: leader, epochs, ISR and what else it has."""
    for label in ("controller", "zookeeper", "partition"):
        value = values.get(label)
        if isinstance(value, ModelController | ZkCluster):
            value = value.topic
        if isinstance(value, (TopicRegistration, *PARTITIONS)):
            told: dict[str, Any] = as_json(value)
            for field, nobody in (("leader", NO_LEADER), ("leader_epoch", NO_EPOCH)):
                told[field] = None if told.get(field, nobody) == nobody else told[field]
            return told
    return None


def _registered(values: Values) -> dict[str, list[int] | None]:
    """The brokers that are fenced, and those in controlled shutdown; `None` where a model registers none."""
    for label in ("controller", "zookeeper"):
        value = values.get(label)
        if isinstance(value, ModelController | ZkCluster):
            stopping = {entry.broker for entry in value.brokers if entry.in_controlled_shutdown} | value.leaving
            return {"fenced": sorted(entry.broker for entry in value.brokers if entry.fenced), "stopping": sorted(stopping)}
    return {"fenced": None, "stopping": None}


def known_to_clients(values: Values) -> tuple[list[dict[str, Any]] | None, list[dict[str, Any]] | None]:
    """The records that producers know to be acknowledged, and those that consumers can have read; `None`: not tracked."""
    for value in values.values():
        if isinstance(value, ClientKnowledge):
            return _placed(value.told), _placed(value.read)
    if "acknowledged" in values:
        return _placed(values["acknowledged"]), None
    return None, None


def _placed(records: frozenset[PlacedRecord] | frozenset[AcknowledgedRecord]) -> list[dict[str, Any]]:
    return [
        {"offset": offset, "value": record.value, "leader_epoch": record.leader_epoch, "words": in_words(record)}
        for offset, record in sorted(records)
    ]


# ---- messages under way


def _in_flight(model: Model, values: Values, brokers: list[int]) -> Iterator[dict[str, Any]]:
    """The messages that have been sent and not been handled, as far as the model has them: sender, receiver, words."""
    for slot in model.slots:
        value = values[slot.label]
        if slot.broker is not None:
            yield from _of_a_broker(slot, slot.broker, value)
        elif isinstance(value, LeaderAndIsr) and slot.name == "announcement" and value != NOT_ANNOUNCED:
            for broker in brokers:
                role = values.get(f"role[{broker}]")
                if isinstance(role, LeaderAndIsr) and role.leader_epoch < value.leader_epoch and value.leader != NO_LEADER:
                    yield _message((CONTROLLER, broker), in_words(value), slot)
        elif isinstance(value, frozenset) and slot.name in ("requested", "announced"):
            ends: Ends = (1, CONTROLLER) if slot.name == "requested" else (CONTROLLER, 1)
            for isr in sorted(value, key=sorted):
                yield _message(ends, f"ISR {in_words(isr)}, partition epoch {slot.key}", slot)
        else:
            yield from _numbered(slot, value, values)


def _of_a_broker(slot: Slot, broker: int, value: Any) -> Iterator[dict[str, Any]]:
    """Messages to and from a broker or a consumer that are in its slots, in the models `kafka` and `group`."""
    party = owner(slot)
    if isinstance(value, AlterPartitionExchange) and value.state != RequestState.NOTHING:
        asks: Ends = (broker, CONTROLLER)
        yield _message(asks if value.state == RequestState.SENT else (CONTROLLER, broker), slot_in_words(slot, value), slot)
    elif isinstance(value, LateFetch) and value.state != RequestState.NOTHING:
        ends = (broker, value.leader) if value.state == RequestState.SENT else (value.leader, broker)
        yield _message(ends, slot_in_words(slot, value), slot)
    elif isinstance(value, GroupExchange):
        is_asked = value.answer is None
        if not value.is_taken or not is_asked:
            yield _message((party, COORDINATOR) if is_asked else (COORDINATOR, party), in_words(value), slot)
    elif isinstance(value, LateRequest):
        yield _message((party, COORDINATOR), in_words(value), slot)
    elif isinstance(value, Inbox):
        for order in (*value.orders, *value.stray):
            yield _message((CONTROLLER, broker), in_words(order), slot)
    elif isinstance(value, tuple) and value and all(isinstance(image, Image) for image in value):
        for image in value[1:]:
            yield _message((CONTROLLER, broker), f"metadata: {in_words(image)}", slot)


def _numbered(slot: Slot, value: Any, values: Values) -> Iterator[dict[str, Any]]:
    """Messages with numbers, in the model `messages`: a request until it is answered, then its answer.

    The model lets both arrive again and late, so an answer is told for as long as the model keeps it.
    """
    if isinstance(value, Fetch) and value != NOT_SENT:
        answer = values[f"fetchAnswer[{slot.key}]"]
        assert isinstance(answer, FetchAnswer)
        if answer.given:
            yield _message((value.leader, value.follower), f"answer to fetch {slot.key}: {in_words(answer)}", slot)
        else:
            yield _message((value.follower, value.leader), f"fetch {slot.key}: {in_words(value)}", slot)
    elif isinstance(value, IsrProposal) and value != NOT_PROPOSED:
        outcome = values[f"isrAnswer[{slot.key}]"]
        assert isinstance(outcome, IsrAnswer)
        if outcome.given:
            yield _message((CONTROLLER, value.leader), f"answer to proposal {slot.key}: {in_words(outcome)}", slot)
        else:
            yield _message((value.leader, CONTROLLER), f"proposal {slot.key}: {in_words(value)}", slot)


def _message(ends: Ends, words: str, slot: Slot) -> dict[str, Any]:
    source, target = ends
    return {"from": party_name(source), "to": party_name(target), "words": words, "slot": slot.label}
