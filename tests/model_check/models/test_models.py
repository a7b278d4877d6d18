"""Findings of the models beyond the published rows: the exchange against its abstraction, quirks mended, mutants killed."""

from typing import Any

import pytest

from kspec.model_check.core.exploration import Exploration, Limits
from kspec.model_check.core.model import Property, when
from kspec.model_check.engines import compiled
from kspec.model_check.engines.reference import explore
from kspec.model_check.models import MODELS
from tests.limits.marks import marked

TWO_REPLICAS = {"replicas": 2, "log_size": 2, "max_records": 2, "max_epoch": 2}
THREE_REPLICAS = {"replicas": 3, "log_size": 1, "max_records": 1, "max_epoch": 1}


def explored(name: str, **parameters: Any) -> Exploration:
    model = MODELS[name].build(parameters)
    return explore(model, model.properties, Limits(stop_at_first=False))


def trace_length(result: Exploration, name: str) -> int | None:
    verdict = next(verdict for verdict in result.verdicts if verdict.prop.name == name)
    return len(verdict.trace) if verdict.trace and verdict.violated else None


@pytest.mark.parametrize(
    "parameters",
    [
        TWO_REPLICAS,
        THREE_REPLICAS,
        pytest.param({"max_epoch": 1}, marks=pytest.mark.nightly),
        pytest.param({"replicas": 2, "log_size": 3, "max_records": 3}, marks=pytest.mark.nightly),
    ],
)
def test_in_kip_320_the_exchange_of_messages_equals_its_published_abstraction(parameters: dict[str, int]) -> None:
    exchanged = explored("kip-320", **parameters, truncation="exchange")
    at_once = explored("kip-320", **parameters, truncation="agreement")
    assert exchanged.levels == at_once.levels
    assert exchanged.actions == at_once.actions


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "at_once", "exchanged", "length"),
    [
        ("kip-279", 9027, 9029, 12),
        ("kip-320-first-try", 8429, 8431, 13),
    ],
)
def test_without_fencing_the_exchange_loses_what_the_abstraction_keeps(
    name: str, at_once: int, exchanged: int, length: int
) -> None:
    abstraction = explored(name, **TWO_REPLICAS, truncation="agreement")
    messages = explored(name, **TWO_REPLICAS, truncation="exchange")
    assert (abstraction.distinct_states, messages.distinct_states) == (at_once, exchanged)
    assert trace_length(abstraction, "StrongIsr") is None
    assert trace_length(messages, "StrongIsr") == length


@pytest.mark.parametrize("parameters", marked([TWO_REPLICAS, THREE_REPLICAS, {"max_epoch": 1}], nightly=[{"max_epoch": 1}]))
@pytest.mark.parametrize("repairs", [("kafka-epoch-lookup", "own-epoch-entry"), ("all",)])
def test_kip_320_holds_with_kafkas_own_lookup_once_leaders_note_their_epoch(
    repairs: tuple[str, ...], parameters: dict[str, int]
) -> None:
    result = explored("kip-320", **parameters, repair=repairs)
    assert result.complete
    assert not [verdict.prop.name for verdict in result.verdicts if verdict.violated and verdict.prop.by_default]


def test_kafkas_own_lookup_alone_loses_a_committed_record() -> None:
    """KAFKA-7415: a leader that has written nothing yet does not know where the epochs before its own end."""
    result = explored("kip-320", **TWO_REPLICAS, repair=("kafka-epoch-lookup",))
    assert trace_length(result, "StrongIsr") == 13


def test_the_dead_branch_of_the_published_models_comes_alive_when_mended() -> None:
    published, mended = (
        explored("kip-320", replicas=2, max_epoch=1, repair=repair) for repair in ((), ("leaderless-followers",))
    )
    assert published.distinct_states == 957
    assert mended.distinct_states > published.distinct_states
    assert trace_length(mended, "StrongIsr") is None


def test_the_controller_empties_the_isr_unless_mended() -> None:
    for repair, expected in (((), True), (("keep-last-isr",), False)):
        model = MODELS["kip-320"].build({"replicas": 2, "max_epoch": 1, "repair": repair})
        partition = next(slot for slot in model.slots if slot.name == "partition")
        empty = Property("Empty", "sometimes", (when(lambda state: not state.isr, partition),), "the ISR is empty")
        assert explore(model, [empty], Limits()).verdicts[0].holds is expected


@pytest.mark.parametrize(
    ("mutant", "prop", "length"),
    [
        ("unfenced-truncation", "StrongIsr", 14),
        ("high-watermark-without-epoch", "StrongIsr", 13),
        ("join-before-epoch-start", "StrongIsr", 12),
    ],
)
def test_mutants_of_kip_320_are_killed_by_a_shortest_counterexample(mutant: str, prop: str, length: int) -> None:
    model = MODELS["kip-320"].build({"mutant": mutant})
    claim = model.property_named(prop)
    assert claim is not None
    assert trace_length(compiled.explore(model, [claim], Limits()), prop) == length


@pytest.mark.parametrize(
    ("mutant", "lengths"), [("high-watermark-over-committed-isr", (6, 7)), ("shrink-before-confirmation", (3, 4))]
)
def test_mutants_of_async_isr_are_killed(mutant: str, lengths: tuple[int, int]) -> None:
    for replicas, length in zip((2, 3), lengths, strict=True):
        model = MODELS["async-isr"].build({"replicas": replicas, "mutant": mutant})
        claim = model.property_named("ValidHighWatermark")
        assert claim is not None
        assert trace_length(explore(model, [claim], Limits()), claim.name) == length


@pytest.mark.slow
def test_async_isr_holds_with_one_proposal_at_a_time_too() -> None:
    published, mended = (explored("async-isr", repair=repair) for repair in ((), ("one-proposal",)))
    assert mended.distinct_states < published.distinct_states == 22_456
    assert trace_length(mended, "ValidHighWatermark") is None


def test_settings_that_are_off_add_no_slots_and_no_actions() -> None:
    plain = MODELS["kip-320"].build({})
    assert {slot.name for slot in plain.slots} == {"log", "highWatermark", "role", "partition", "nextRecord", "announcement"}
    full = MODELS["kip-320"].build({"restarts": 1, "power_losses": 1, "acks": "all", "unclean": True})
    assert set(full.action_names) - set(plain.action_names) == {"Restart", "PowerLoss", "ControllerElectUncleanLeader"}
    assert {slot.name for slot in full.slots} - {slot.name for slot in plain.slots} == {
        "restarts_left",
        "power_losses_left",
        "acknowledged",
    }


def test_acks_and_min_isr_change_what_is_promised() -> None:
    lost = {
        (acks, min_isr): trace_length(
            explored("kip-320", replicas=2, max_records=1, log_size=1, unclean=True, acks=acks, min_isr=min_isr),
            "AcknowledgedOnLeader",
        )
        for acks, min_isr in (("1", 1), ("all", 1), ("all", 2))
    }
    assert lost[("1", 1)] is not None
    assert lost[("all", 1)] is not None
    assert lost[("all", 2)] is None
