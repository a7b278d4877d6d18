"""Answers that the protocol leaves free: which cases have them, and how a runner takes them."""

import re
from typing import Any

import pytest

from kspec.conformance.wire.cases.freedoms import FREEDOMS
from kspec.conformance.wire.run.checking import differences, liberties
from kspec.impl.wire.values import Message
from tests.conformance.wire.targets import documents
from tests.places import DOCS

WHY = "the protocol says nothing of it"


def free_of(document: Any) -> set[str]:
    told = [step["free"]["why"] for step in document["steps"] if "free" in step]
    told += [one["free"]["why"] for step in document["steps"] for one in step["expect"] if "free" in one]
    return {one.name for one in FREEDOMS if one.why in told}


def test_each_freedom_is_in_some_case() -> None:
    found = [name for document in documents() for name in free_of(document)]
    assert {one.name for one in FREEDOMS} == set(found)


@pytest.mark.parametrize(
    ("case", "freedom"),
    [
        ("absent/fetch.isolation-9/unknown-server-error", "any-refusal"),
        ("received/batch.truncated/invalid-record", "corrupt-batch"),
        ("topics/create.too-many-partitions/policy-violation", "partitions-at-once"),
        ("absent/produce.no-topic.acks-0/closed", "acks-0"),
        ("frames/frame.oversized/closed", "long-request"),
        ("received/batch.checksum/corrupt-message", ""),
        ("frames/frame.negative/closed", ""),
        ("frames/frame.huge-array/closed", ""),
        ("compacted/delete-records.all/policy-violation", ""),
        ("reading/fetch.end.older/fenced-leader-epoch", ""),
    ],
)
def test_the_freedom_of_a_case(case: str, freedom: str) -> None:
    (document,) = documents(case)
    assert free_of(document) == ({freedom} if freedom else set())


def test_the_page_has_every_freedom() -> None:
    page = (DOCS / "conformance.md").read_text(encoding="utf-8")
    table = page.partition("| freedom |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([a-z0-9-]+)` \|", table, re.MULTILINE) == [one.name for one in FREEDOMS]


def test_a_sentence_says_why() -> None:
    assert all(len(one.why) > 40 and not one.why.endswith(".") for one in FREEDOMS)
    assert all((one.error is None) != (one.ending is None) for one in FREEDOMS)


@pytest.mark.parametrize(
    ("free", "code", "wrong", "taken"),
    [
        ({"one_of": [2]}, 87, False, False),
        ({"one_of": [2]}, 2, False, True),
        ({"one_of": [2]}, 3, True, False),
        ({"none_of": [0]}, 3, False, True),
        ({"none_of": [0]}, 0, True, False),
        ({"none_of": []}, 0, False, True),
    ],
)
def test_a_runner_tells_what_is_wrong_from_what_is_unlike(free: Any, code: int, wrong: bool, taken: bool) -> None:
    constraint = {"path": "error_code", "one_of": [87], "free": free | {"why": WHY}, "versions": [0, 9]}
    answer = Message(error_code=code)
    assert bool(differences([constraint], 3, answer, {})) == wrong
    told = [f"error_code: {code}, where Apache Kafka has 87: {WHY}"] if taken else []
    assert liberties([constraint], 3, answer, {}) == told
    assert liberties([constraint | {"versions": [4, 9]}], 3, answer, {}) == []
