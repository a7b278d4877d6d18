"""Claims stand once: properties of models and promises of simulated clusters have their sentences from `spec/claims.py`."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from kspec.model_check.core.model import Model
from kspec.model_check.models import MODELS
from kspec.model_check.models.messages.properties import MEANINGS
from kspec.spec.claims import CLAIMS, Subject, claim
from kspec.trials.simulated.history import PROMISES
from tests.places import REPOSITORY

FOLDERS = ("spec", "model_check", "impl", "trials", "conformance", "proofs", "kspec/cli", "tests", "benchmarks")
TABLE = REPOSITORY / "spec" / "claims.py"
SHORT = 30
"""Sentences of fewer letters may come about by chance: "a record is acknowledged"."""

ALL_DISTURBANCES: dict[str, Any] = {
    **dict.fromkeys(("elections", "fencings", "isr_shrinks", "clean_shutdowns", "unclean_shutdowns", "retries"), 1),
    "brokers": 2,
}
OF_KAFKA: list[dict[str, Any]] = [{**ALL_DISTURBANCES, "release": release} for release in ("2.6", "4.4")]
OF_KAFKA.append({"brokers": 2, "elections": 0, "reassignments": 1})
OF_KAFKA.append({**ALL_DISTURBANCES, "release": "next", "log": "epochs"})


MORE_PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "kafka": OF_KAFKA,
    "group": [{"protocol": "consumer"}, {"moves": 1, "zombies": 1}],
    "transactions": [{"inputs": 1}],
    "quorum": [{"voter_changes": 1}, {"fair_timers": True, "strangers": 1}],
}
"""By model: the parameters with which it has properties that it has not by default."""

SUBJECTS: tuple[Subject, ...] = get_args(Subject)


def subject_of(name: str) -> Subject:
    """The subject that a model belongs to."""
    return next((subject for subject in SUBJECTS if subject == name), "published")


def built() -> Iterator[tuple[Subject, Model]]:
    """Every model, with parameters that add all its properties."""
    for name, entry in MODELS.items():
        acks = [{"acks": "all"}] if any(parameter.name == "acks" for parameter in entry.parameters) else []
        for parameters in [{}, *acks, *MORE_PARAMETERS.get(name, [])]:
            yield subject_of(name), entry.build(parameters)


@pytest.fixture(scope="module")
def asked() -> set[tuple[Subject, str, str]]:
    """Subject, name and sentence of every property of every model."""
    found: set[tuple[Subject, str, str]] = set()
    for subject, model in built():
        found |= {(subject, one.name, one.meaning) for one in model.properties}
        found |= {(subject, one.name, one.meaning) for one in model.liveness}
    return found


def test_every_property_has_the_sentence_of_its_claim(asked: set[tuple[Subject, str, str]]) -> None:
    assert [(name, said) for subject, name, said in asked if said != claim(name, subject)] == []
    assert all(said == claim(name, "clusters") for name, said in PROMISES.items())


def test_every_claim_is_made_by_somebody(asked: set[tuple[Subject, str, str]]) -> None:
    made = {(name, said) for _, name, said in asked} | set(PROMISES.items()) | set(MEANINGS.items())
    assert [one for one in CLAIMS if (one.name, one.sentence) not in made] == []


def test_a_claim_stands_once_for_all_and_once_for_a_subject_that_says_it_otherwise() -> None:
    keys = [(one.name, one.subject) for one in CLAIMS]
    assert len(keys) == len(set(keys))
    for one in CLAIMS:
        if one.subject:
            assert one.subject in SUBJECTS
            assert one.sentence not in {other.sentence for other in CLAIMS if other != one}


def strings(path: Path) -> Iterator[str]:
    """The texts in a source; pieces that follow one another are one."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield " ".join(node.value.split()).rstrip(".")


def test_no_sentence_of_a_claim_stands_elsewhere() -> None:
    sentences = {one.sentence for one in CLAIMS if len(one.sentence) >= SHORT}
    copies = []
    for folder in FOLDERS:
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            if path != TABLE:
                copies += [f"{path.relative_to(REPOSITORY)}: {text}" for text in strings(path) if text in sentences]
    assert copies == []


def test_a_copy_would_be_found(tmp_path: Path) -> None:
    copy = tmp_path / "copy.py"
    copy.write_text('MEANING = (\n    "an acknowledged record is on "\n    "every possible next leader"\n)\n')
    assert claim("AcknowledgedOnNextLeader", "kafka") in set(strings(copy))


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(KeyError):
        claim("Nothing", "kafka")
