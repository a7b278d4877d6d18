"""Names that stand twice in a request are answered as by Apache Kafka 4.4.0."""

import json
from pathlib import Path

import pytest

from kspec.conformance.kafka.jars import KafkaMissingError, find_jars
from kspec.conformance.kafka.single import SingleKafka
from tests.impl.broker.process import BrokerProcess
from tests.impl.requests.twice import ask_all
from tests.places import DATA

ANSWERS = json.loads((DATA / "kafka-4.4-twice.json").read_text(encoding="utf-8"))

OTHERWISE = {
    "alter-resources": [["named-twice", 42], ["named-twice", 42]],  # Kafka does not answer
    "join-protocols": [0, "range"],  # Kafka does not answer, and the group stays in that state
    "offsets-topics": [[[[0, 0, 12], [1, 0, 22]]]],  # the partitions of one topic are together
    "offsets-topics-same": [[[[0, 0, 12], [0, 0, 12]]]],
}
"""The responses that differ from Kafka's."""


def test_each_is_answered_once_or_refused(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs", "--release", "4.4") as broker:
        assert ask_all(broker.port) == ANSWERS | OTHERWISE


@pytest.mark.slow
@pytest.mark.nightly
def test_the_answers_are_those_of_kafka_itself(tmp_path: Path) -> None:
    try:
        jars = find_jars("4.4.0")
    except KafkaMissingError as missing:
        pytest.skip(f"APACHE KAFKA IS NOT ASKED: {missing}")
    with SingleKafka(jars, tmp_path / "kafka") as kafka:
        assert ask_all(kafka.port) == ANSWERS
