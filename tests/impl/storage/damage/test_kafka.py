"""Damaged files of Apache Kafka 4.4.0: its answers are kept, and asked for again in part."""

import json

import pytest

from kspec.conformance.kafka.jars import KafkaMissingError, find_jars
from tests.impl.storage.damage.kafka import ask, cases, without_log
from tests.places import DATA

ANSWERS = json.loads((DATA / "kafka-4.4-damaged-files.json").read_text(encoding="utf-8"))


def test_each_cell_has_an_answer_and_what_is_not_damaged_is_whole() -> None:
    names = {f"{one.file} {one.kind}" for one in cases()}
    for answers in ANSWERS.values():
        assert names | {"NOTHING INTACT"} == set(answers)
        assert answers["NOTHING INTACT"].startswith("log 0..72 of 0..72; 0..72 as written; epochs kept; producer kept")


@pytest.mark.slow
@pytest.mark.nightly
def test_the_answers_are_those_of_kafka_itself() -> None:
    try:
        jars = find_jars("4.4.0")
    except KafkaMissingError as missing:
        pytest.skip(f"APACHE KAFKA IS NOT ASKED: {missing}")
    found = ask(jars, "EPOCHS", alone_too=False)
    for how, answers in found.items():
        assert len(answers) == 12
        for name, told in answers.items():
            assert without_log(told) == ANSWERS[how][name], (how, name)
