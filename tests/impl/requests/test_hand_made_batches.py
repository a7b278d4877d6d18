"""Batches that no client sends are answered as by Apache Kafka 4.4.0, and leave the same in the log."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kspec.conformance.kafka.jars import KafkaMissingError, find_jars
from kspec.conformance.kafka.single import SingleKafka
from kspec.impl.records import reading
from kspec.impl.records.batch import HEADER_SIZE, Buffer, header_at
from kspec.spec.log.found_records import ReaderEnding
from tests.impl.broker.process import BrokerClient, BrokerProcess
from tests.impl.requests.hand_made import CASES, TOGETHER, ask, ask_together, create_topics, places
from tests.limits.marks import marked
from tests.places import DATA

ANSWERS: dict[str, dict[str, Any]] = json.loads((DATA / "kafka-4.4-batches.json").read_text(encoding="utf-8"))
PLACES = places()


def test_each_case_has_the_answer_of_kafka() -> None:
    assert set(ANSWERS) == {*CASES, *(f"together.{name}" for name in TOGETHER)}
    errors = {one["error"] for answer in ANSWERS.values() for one in answer["answers"] if isinstance(one, dict)}
    assert errors == {-1, 0, 2, 10, 18, 32, 45, 47, 53, 76, 87}


class AllAside(BrokerProcess):
    """A broker that looks into each compressed batch in a thread, however small it is."""

    begins_with = "import kspec.impl.requests.produce as produce; produce.READ_AT_ONCE = 0; "


@pytest.fixture(scope="module", params=marked([BrokerProcess, AllAside], nightly=[AllAside]))
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with request.param(tmp_path_factory.mktemp("made") / "logs", "--release", "4.4") as running:
        with BrokerClient(running.port) as client:
            create_topics(client)
        yield running


@pytest.mark.slow
def test_alone_in_a_request(broker: BrokerProcess) -> None:
    found = {name: ask(broker.port, name, partition) for name, partition in PLACES.items()}
    assert [name for name, answer in found.items() if answer != ANSWERS[name]] == []
    broker.restart()  # what is in the logs does not trouble the next start
    assert ask(broker.port, "good.none", PLACES["good.none"])["answers"][0]["error"] == 0


def test_several_in_a_request(broker: BrokerProcess) -> None:
    found = {f"together.{name}": ask_together(broker.port, name) for name in TOGETHER}
    assert [name for name, answer in found.items() if answer != ANSWERS[name]] == []


@pytest.mark.slow
@pytest.mark.nightly
def test_the_answers_are_those_of_kafka_itself(tmp_path: Path) -> None:
    try:
        jars = find_jars("4.4.0")
    except KafkaMissingError as missing:
        pytest.skip(f"APACHE KAFKA IS NOT ASKED: {missing}")
    with SingleKafka(jars, tmp_path / "kafka") as kafka:
        with BrokerClient(kafka.port) as client:
            create_topics(client)
        found = {name: ask(kafka.port, name, partition) for name, partition in PLACES.items()}
        found |= {f"together.{name}": ask_together(kafka.port, name) for name in TOGETHER}
    assert [name for name, answer in found.items() if answer != ANSWERS[name]] == []


def _sent() -> Iterator[tuple[str, Buffer]]:
    now = int(time.time() * 1000)
    for name, case in CASES.items():
        for build in case.steps:
            data = build(now)
            if len(data) >= HEADER_SIZE and HEADER_SIZE <= header_at(data).size <= len(data):
                yield name, data


@pytest.mark.slow
def test_the_compiled_reader_finds_what_the_plain_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    reading.load()
    assert reading.is_loaded()
    for name, data in _sent():
        header = header_at(data)
        for skims in (False, True) if header.compression else (False,):
            compiled = reading.read_records(data, header, skims)
            is_complete = compiled.reading is ReaderEnding.COMPLETE
            facts = list(reading.records_in(data, header, skims)) if is_complete else []
            with monkeypatch.context() as patched:
                patched.setattr(reading, "_compiled", reading.AbsentReader())
                assert reading.read_records(data, header, skims) == compiled, name
                if is_complete:
                    assert list(reading.records_in(data, header, skims)) == facts, name
