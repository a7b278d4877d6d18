"""A mutant differs from its release in its rule, and with that rule as the release has it, it is the release again."""

from dataclasses import replace

import pytest

from kspec.spec.mutation import Mutant, differing_fields, weaken, with_field_of
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS


@pytest.mark.parametrize("mutant", BROKER_MUTANTS, ids=lambda one: one.name)
def test_a_mutant_differs_in_its_rule_and_its_traits_alone(mutant: Mutant) -> None:
    weakened = weaken(BROKER_NEXT, mutant)
    names = differing_fields(weakened, BROKER_NEXT)
    assert mutant.field in names
    assert set(names) <= {mutant.field, *dict(mutant.traits)}
    for name in names:
        weakened = with_field_of(weakened, name, BROKER_NEXT)
    assert replace(weakened, name=BROKER_NEXT.name) == BROKER_NEXT
