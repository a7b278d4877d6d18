"""Kafka's history: neighbouring versions differ in exactly what the KIPs between them changed; mutants in one rule."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.broker.rules.isr.proposal import (
    LeaderIsr,
    PartitionIsr,
    committed_isr,
    maximal_isr,
    propose,
    propose_as_if_granted,
)
from kspec.spec.log.record_log import RecordLog
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.mutation import Mutant, changed_rules, weaken
from kspec.spec.published import versions
from kspec.spec.published.mutants import ISR_MUTANTS, MUTANTS
from kspec.spec.published.versions import (
    ASYNC_ISR,
    KIP_101,
    KIP_279,
    KIP_320,
    KIP_320_FIRST_TRY,
    TRUNCATE_TO_HW,
    IsrProtocol,
    Protocol,
)
from kspec.spec.values import BrokerId, Epoch, Error, LeaderAndIsr, Offset, PartitionEpoch
from tests.spec.strategies import brokers, epochs_or_none, fetches, isrs, offsets, record_logs, roles

VERSIONS = (TRUNCATE_TO_HW, KIP_101, KIP_279, KIP_320_FIRST_TRY, KIP_320)
RULES = [field.name for field in fields(Protocol) if field.name != "name"]
ISR_RULES = [field.name for field in fields(IsrProtocol) if field.name != "name"]


def rules_of(protocol: Protocol | IsrProtocol) -> dict[str, Any]:
    return {field.name: getattr(protocol, field.name) for field in fields(protocol) if field.name != "name"}


# ---- versions


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        pytest.param(
            TRUNCATE_TO_HW,
            KIP_101,
            {"truncation": ("truncate_to_high_watermark", "truncate_to_epoch_end")},
            id="KIP-101",
        ),
        pytest.param(
            KIP_101,
            KIP_279,
            {
                "truncation": ("truncate_to_epoch_end", "truncate_to_common_epoch"),
                "epoch_lookup": ("look_up_in_records", "look_up_as_designed"),
            },
            id="KIP-279",
        ),
        pytest.param(
            KIP_279,
            KIP_320_FIRST_TRY,
            {
                "truncation": ("truncate_to_common_epoch", "none"),
                "truncation_when_refused": ("none", "truncate_to_common_epoch"),
                "fetch_fencing": ("fetch_without_fencing", "fetch_fenced_by_last_epoch"),
                "has_replicated": ("replicated_by_offset", "replicated_by_last_epoch"),
                "may_join": ("join_at_high_watermark", "join_after_epoch_start"),
            },
            id="KIP-320, first draft",
        ),
        pytest.param(
            KIP_279,
            KIP_320,
            {
                "truncation_fencing": ("answer_anyone", "check_serves"),
                "fetch_fencing": ("fetch_without_fencing", "fetch_fenced_by_leader_epoch"),
                "has_replicated": ("replicated_by_offset", "replicated_by_leader_epoch"),
                "may_join": ("join_at_high_watermark", "join_after_epoch_start"),
            },
            id="KIP-320",
        ),
    ],
)
def test_a_version_changes_what_its_kip_changed(before: Protocol, after: Protocol, changes: dict[str, Any]) -> None:
    assert changed_rules(before, after) == changes
    assert changed_rules(after, before) == {field: (new, old) for field, (old, new) in changes.items()}


def test_isr_changes_by_request_wait_for_whoever_may_be_in_sync() -> None:
    assert rules_of(ASYNC_ISR) == {"counted_isr": maximal_isr, "propose": propose}


def test_versions_have_the_names_of_the_models() -> None:
    names = [version.name for version in (*VERSIONS, ASYNC_ISR)]
    assert names == ["truncate-to-hw", "kip-101", "kip-279", "kip-320-first-try", "kip-320", "async-isr"]


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_a_renamed_version_has_the_same_rules(version: Protocol) -> None:
    assert changed_rules(version, replace(version, name="another name")) == {}


@pytest.mark.parametrize("version", [*VERSIONS, ASYNC_ISR], ids=lambda version: version.name)
def test_a_version_is_a_value_made_of_functions_of_the_specification(version: Protocol | IsrProtocol) -> None:
    assert version == replace(version)
    assert len({version, replace(version)}) == 1
    for rule in filter(None, rules_of(version).values()):
        assert rule.__module__.startswith("kspec.spec.")
        assert rule.__qualname__ == rule.__name__
    with pytest.raises(FrozenInstanceError):
        version.name = "changed"  # type: ignore[misc]


@pytest.mark.parametrize("kind", [Protocol, IsrProtocol])
def test_every_rule_is_explained_where_it_is_declared(kind: type) -> None:
    explained = [line.split("`")[1] for line in str(kind.__doc__).splitlines() if line.strip().startswith("- `")]
    assert explained == (RULES if kind == Protocol else ISR_RULES)


def test_every_version_of_the_module_is_tested_here() -> None:
    declared = [value for value in vars(versions).values() if isinstance(value, Protocol | IsrProtocol)]
    assert declared == [*VERSIONS, ASYNC_ISR]


# ---- mutants

MUTATED: list[tuple[Any, Mutant]] = [
    *((KIP_320, mutant) for mutant in MUTANTS),
    *((ASYNC_ISR, mutant) for mutant in ISR_MUTANTS),
]


@pytest.mark.parametrize(("base", "mutant"), MUTATED, ids=[mutant.name for _, mutant in MUTATED])
def test_a_mutant_differs_in_one_rule_and_its_name(base: Any, mutant: Mutant) -> None:
    weakened = weaken(base, mutant)
    before, after = rules_of(base), rules_of(weakened)
    assert before[mutant.field] != mutant.rule
    assert after == before | {mutant.field: mutant.rule}
    assert weakened.name == f"{base.name} with {mutant.name}"
    assert type(weakened) is type(base)


def test_mutants_have_names_and_summaries_of_their_own() -> None:
    mutants = [mutant for _, mutant in MUTATED]
    assert len({mutant.name for mutant in mutants}) == len({mutant.summary for mutant in mutants}) == len(mutants)


def test_all_that_kip_320_changed_has_a_mutant_that_takes_it_back() -> None:
    taken_back = {mutant.field: mutant.rule for mutant in MUTANTS}
    assert taken_back == {field: getattr(KIP_279, field) for field in changed_rules(KIP_279, KIP_320)}


def mutated(name: str) -> Callable[..., Any]:
    (rule,) = [mutant.rule for _, mutant in MUTATED if mutant.name == name]
    weaker: Callable[..., Any] = rule
    return weaker


@given(brokers, roles(), epochs_or_none)
def test_unfenced_truncation_refuses_less(self_id: BrokerId, role: LeaderAndIsr, claimed: Epoch) -> None:
    weaker = mutated("unfenced-truncation")(self_id, role, claimed, True)
    assert weaker in (Error.NONE, KIP_320.truncation_fencing(self_id, role, claimed, True))


@given(roles(), record_logs(), fetches())
def test_unfenced_fetch_refuses_less(role: LeaderAndIsr, log: RecordLog, fetch: FetchPosition) -> None:
    weaker = mutated("unfenced-fetch")(role, log, fetch)
    assert weaker in (Error.NONE, KIP_320.fetch_fencing(role, log, fetch))


@given(roles(), record_logs(), fetches(), offsets)
def test_a_high_watermark_without_epoch_counts_more(
    role: LeaderAndIsr, log: RecordLog, fetch: FetchPosition, offset: Offset
) -> None:
    weaker = mutated("high-watermark-without-epoch")(role, log, fetch, offset)
    assert weaker >= KIP_320.has_replicated(role, log, fetch, offset)


@given(roles(), record_logs(), offsets)
def test_joining_before_the_epoch_start_admits_more(role: LeaderAndIsr, log: RecordLog, high_watermark: Offset) -> None:
    weaker = mutated("join-before-epoch-start")(role, log, high_watermark)
    assert weaker >= KIP_320.may_join(role, log, high_watermark)


leaders = st.builds(LeaderIsr, isrs, st.just(PartitionEpoch(3)), isrs, st.just(PartitionEpoch(3)))


@given(leaders)
def test_the_committed_isr_waits_for_fewer(leader: LeaderIsr) -> None:
    assert mutated("high-watermark-over-committed-isr") == committed_isr
    assert committed_isr(leader) <= ASYNC_ISR.counted_isr(leader)


@given(leaders, isrs)
def test_both_ways_of_proposing_send_the_same_request(leader: LeaderIsr, isr: frozenset[BrokerId]) -> None:
    assert mutated("shrink-before-confirmation") == propose_as_if_granted
    requests = {rule(leader, isr).request for rule in (propose, propose_as_if_granted)}
    assert requests == {PartitionIsr(isr, PartitionEpoch(3))}
