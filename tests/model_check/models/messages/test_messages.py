"""The model `messages` within bounds: counts, properties, weakened rules, and brokers that change places."""

from typing import Any

import pytest

from kspec.model_check.core.exploration import Exploration, Limits
from kspec.model_check.core.model import Model
from kspec.model_check.core.parameters import ParameterError
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines import compiled
from kspec.model_check.engines.explorer import explorer
from kspec.model_check.models import MODELS
from kspec.model_check.models.messages.values import NOT_REMEMBERED, KnownFollower
from kspec.spec.broker.rules.followers import FollowerState
from tests.counts import count_of
from tests.limits.marks import marked

POWER_LOSS = {"min_isr": 2, "unclean_shutdowns": 1}


def model_of(**given: Any) -> Model:
    return MODELS["messages"].build(given)


def verdicts_of(found: Exploration) -> dict[str, tuple[bool | None, int | None]]:
    """Of each property: whether it holds, and how long the trace is that shows it."""
    return {verdict.prop.name: (verdict.holds, len(verdict.trace) if verdict.trace else None) for verdict in found.verdicts}


@pytest.mark.slow
@pytest.mark.parametrize(
    "bounds",
    marked(
        [{"fetches": 1, "max_epoch": 0}, POWER_LOSS | {"fetches": 1, "values": 0, "max_epoch": 0}],
        nightly=[POWER_LOSS | {"fetches": 1, "values": 0, "max_epoch": 0}],
    ),
    ids=str,
)
def test_both_engines_find_the_same_states(bounds: dict[str, int]) -> None:
    model = model_of(**bounds)
    found = [explorer(name)(model, model.properties, Limits(True)) for name in ("reference", "compiled")]
    assert [(result.distinct_states, result.transitions, result.depth) for result in found] == [
        count_of("messages", **bounds)
    ] * 2
    assert verdicts_of(found[0]) == verdicts_of(found[1])


def test_all_properties_hold_within_the_default_bounds() -> None:
    model = model_of()
    found = compiled.explore(model, model.properties, Limits(stop_at_first=False))
    assert found.complete
    assert (found.distinct_states, found.transitions, found.depth) == count_of("messages")
    assert all(verdict.holds for verdict in found.verdicts)
    assert [name for name, times in found.actions.items() if not times] == ["Unfence"]


def test_with_one_fetch_there_are_as_many_states_as_ever() -> None:
    model = model_of(fetches=1)
    found = compiled.explore(model, model.properties, Limits(True))
    assert (found.distinct_states, found.transitions, found.depth) == count_of("messages", fetches=1)


def test_symmetry_halves_the_states_of_two_brokers() -> None:
    """Slots about another broker change places with it: all states have a mirror image but two: none or both are fenced."""
    model = model_of(fetches=1)
    found = compiled.explore(model, model.properties, Limits(True), symmetry=Symmetry(model))
    all_of_them, depth = count_of("messages", fetches=1).states, count_of("messages", fetches=1).depth
    assert (found.distinct_states, found.depth) == ((all_of_them + 2) // 2, depth)
    assert (found.distinct_states, found.transitions, found.depth) == count_of("messages", symmetry=True, fetches=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "states"), [(None, None), ("unclean-replica-keeps-its-place", 12), ("advance-below-min-isr", 5)]
)
def test_losses_of_power_are_survived_unless_a_rule_is_weakened(mutant: str | None, states: int | None) -> None:
    """Within bounds that are explored to the end; what fails is that members of ISR and ELR have what was committed."""
    model = model_of(fetches=2, **POWER_LOSS, mutant=mutant)
    found = compiled.explore(model, model.properties, Limits(True))
    by_name = verdicts_of(found)
    assert by_name["CommittedOnNextLeader"] == (states is None, states)
    if mutant is None:
        assert [name for name, (holds, _) in by_name.items() if not holds] == ["TwoReplicasKnowOfCommit"]
        assert found.complete
        assert (found.distinct_states, found.transitions, found.depth) == count_of("messages", fetches=2, **POWER_LOSS)


@pytest.mark.parametrize(
    ("mutant", "bounds", "broken"),
    [
        ("shrink-before-confirmation", {"fetches": 1}, "QuorumSuperset"),
        ("no-divergence-check", {"fetches": 2, "values": 2, "proposals": 1}, "LogMatching"),
    ],
)
def test_a_weakened_rule_breaks_a_property(mutant: str, bounds: dict[str, int], broken: str) -> None:
    sound, weak = model_of(**bounds), model_of(**bounds, mutant=mutant)
    claim = [prop for prop in weak.properties if prop.name == broken]
    assert verdicts_of(compiled.explore(sound, claim, Limits(True)))[broken][0]
    assert not verdicts_of(compiled.explore(weak, claim, Limits(True)))[broken][0]


def test_min_isr_is_at_most_the_number_of_brokers() -> None:
    with pytest.raises(ParameterError, match="--min-isr 3: must be 2 or less, the number of brokers"):
        model_of(min_isr=3)


def test_every_field_of_a_follower_is_kept_or_left_out_on_purpose() -> None:
    """A field that the model drops by oversight would keep its default, and whoever reads it would never see another."""
    assert {*KnownFollower._fields, *NOT_REMEMBERED} == set(FollowerState._fields)
    assert not set(KnownFollower._fields) & set(NOT_REMEMBERED)
