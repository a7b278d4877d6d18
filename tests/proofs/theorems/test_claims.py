"""A name is a claim's own: whatever model or theorem has it, it says the same there."""

import re
from collections import defaultdict

from kspec.model_check.models import MODELS
from kspec.proofs.theorems import THEOREMS

AS_PUBLISHED = {"TypeOk", "LeaderInIsr"}
"""Names that the published modules have, of claims about their own states."""


def said_briefly(meaning: str) -> str:
    """A claim without what is said about it besides: in brackets, after a colon, or after another sentence has begun."""
    first = re.sub(r" \([^)]*\)", "", meaning).partition(". ")[0].partition(": ")[0].rstrip(".")
    return first[:1].lower() + first[1:]


def meanings() -> dict[str, set[str]]:
    """The meanings of each name, in any model or theorem."""
    found: dict[str, set[str]] = defaultdict(set)
    for entry in MODELS.values():
        for prop in entry.build({}).properties:
            found[prop.name].add(said_briefly(prop.meaning))
    for theorem in THEOREMS.values():
        for conjunct in (*theorem.conjuncts, *theorem.consequences):
            found[conjunct.name].add(said_briefly(conjunct.because))
    return found


def test_no_name_claims_two_things() -> None:
    assert {name: said for name, said in meanings().items() if len(said) > 1 and name not in AS_PUBLISHED} == {}


def test_no_claim_has_two_names() -> None:
    names = defaultdict(set)
    for name, said in meanings().items():
        for meaning in said:
            names[meaning].add(name)
    assert {meaning: known for meaning, known in names.items() if len(known) > 1} == {}
