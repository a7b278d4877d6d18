"""Parts that tests of engines share: models small enough for every engine, and the comparison of two explorations."""

from itertools import pairwise
from typing import Any

from kspec.model_check.core.exploration import Exploration, Trace
from kspec.model_check.core.model import Model
from kspec.model_check.models import MODELS

OTHERS = ("async-isr", "kafka", "messages", "controller", "shutdown", "group", "transactions", "delivery", "quorum")

SMALL_MODELS: list[tuple[str, dict[str, Any]]] = [
    *((name, {"replicas": 2, "max_epoch": 1}) for name in MODELS if name not in OTHERS),
    ("truncate-to-hw", {"replicas": 2, "max_epoch": 2}),
    ("kip-101", {"replicas": 2, "max_epoch": 2}),
    ("kip-320", {"replicas": 3, "max_epoch": 0}),
    ("kip-320", {"replicas": 3, "log_size": 1, "max_records": 1, "max_epoch": 1}),
    ("kip-320", {"replicas": 2, "max_epoch": 1, "restarts": 1, "power_losses": 1}),
    ("kip-320", {"replicas": 2, "max_epoch": 1, "acks": "all", "min_isr": 2}),
    ("kip-320", {"replicas": 2, "max_epoch": 1, "acks": "1", "unclean": True}),
    ("kip-320", {"replicas": 2, "max_epoch": 1, "repair": ("leaderless-followers", "keep-last-isr", "own-epoch-entry")}),
    ("kip-279", {"replicas": 2, "max_epoch": 1, "truncation": "exchange", "repair": ("kafka-epoch-lookup",)}),
    ("kip-320-first-try", {"replicas": 2, "max_epoch": 1, "truncation": "exchange"}),
    ("async-isr", {"replicas": 2, "max_offset": 2, "max_partition_epoch": 2}),
    ("async-isr", {"replicas": 2, "max_offset": 3, "max_partition_epoch": 5}),
    ("async-isr", {"replicas": 3, "max_offset": 1, "max_partition_epoch": 1, "repair": ("one-proposal",)}),
    ("controller", {"release": "next", "brokers": 3, "replicas": 2, "reassignments": 1, "fencings": 1}),
    ("shutdown", {"release": "3.3", "brokers": 2, "lag": 1}),
    ("group", {}),
    ("group", {"disconnects": 1}),
    ("transactions", {"late_requests": 1}),
    ("transactions", {"transaction_version": "0", "late_requests": 1}),
    ("transactions", {"inputs": 1, "transactions": 1, "moves": 1}),
    ("delivery", {"retries": True, "commits": "after", "disconnects": 1, "rebalances": 1, "crashes": 1}),
    ("quorum", {"servers": 2, "resignations": 1}),
    ("quorum", {"servers": 2, "release": "3.9", "power_losses": 1, "late_answers": 1}),
    ("messages", {"fetches": 2, "max_epoch": 0, "max_partition_epoch": 0}),
    (
        "messages",
        {"min_isr": 2, "unclean_shutdowns": 1, "fetches": 1, "values": 0, "max_epoch": 0, "max_partition_epoch": 0},
    ),
    ("kafka", {"release": "next", "brokers": 2, "min_isr": 1, "elections": 2}),
    ("kafka", {"release": "4.4", "brokers": 2, "min_isr": 1, "isr_shrinks": 1}),
    ("kafka", {"brokers": 2, "release": "2.0,2.1", "min_isr": 1, "elections": 1, "acks": "1"}),
]

ONE_OF_EACH = list({name: (name, parameters) for name, parameters in reversed(SMALL_MODELS)}.values())[::-1]
"""The first of each name, where all are compared by night."""

OTHERS_OF_EACH = [one for one in SMALL_MODELS if one not in ONE_OF_EACH]


def model_of(name: str, parameters: dict[str, Any]) -> Model:
    return MODELS[name].build(parameters)


def numbers_of(exploration: Exploration) -> dict[str, Any]:
    """Everything that engines must agree on."""
    return {
        "distinct": exploration.distinct_states,
        "transitions": exploration.transitions,
        "levels": exploration.levels,
        "actions": exploration.actions,
        "deadlocks": exploration.deadlocks,
        "first deadlock": length_of(exploration.deadlock_trace),
        "complete": exploration.complete,
        "verdicts": {verdict.prop.name: (verdict.holds, length_of(verdict.trace)) for verdict in exploration.verdicts},
    }


def length_of(trace: Trace | None) -> int | None:
    return None if trace is None else len(trace)


def assert_replays(model: Model, trace: Trace) -> None:
    """Each step's action is enabled where it is taken, and gives the next state."""
    assert trace[0].action is None
    assert trace[0].state == model.initial
    for before, step in pairwise(trace):
        assert step.action is not None
        assert step.action in model.actions
        assert step.action.bind()(before.state) == step.state
