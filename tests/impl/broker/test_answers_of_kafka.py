"""The same requests as Apache Kafka 4.4.0 was sent, and the same answers, field by field.

`tests/data/kafka-4.4-answers.json` has what was sent and answered. Names, ids and times differ from run to run; they are
matched with each other. What one broker cannot show, and what is answered otherwise, is listed with its reason.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from kspec.impl.records.record import new_batch
from kspec.impl.wire.schema import Field, schema
from kspec.impl.wire.values import Message
from kspec.spec.values import Error
from tests.impl.broker import test_frames as frames
from tests.impl.broker.process import BrokerClient, BrokerProcess
from tests.places import DATA

CASES = {case["id"]: case for case in json.loads((DATA / "kafka-4.4-answers.json").read_text(encoding="utf-8"))}

NEEDS_OTHER_BROKERS = {
    "delete.recreate_epoch": "moves the leadership to another broker",
    "fetch.nonleader.v10": "asks a follower",
    "follower.at_nonleader": "asks a follower",
    "follower.older_epoch": "fetches as another replica",
    "follower.stale_broker_epoch": "fetches as another replica",
    "group.wrong_coordinator": "asks a broker that does not coordinate the group",
    "ofle.before_first": "moves the leadership to another broker",
    "ofle.nonleader": "asks a follower",
    "produce.nonleader": "asks a follower",
    "zz.hw_frozen": "stops another replica",
}
NO_TRANSACTIONS = {
    "lo.read_committed_open_txn": "reads beside an open transaction",
    "pid.end_without_begin": "ends a transaction that was not begun",
    "pid.txn_bump": "initializes a transactional id again",
    "pid.txn_produce_without_add": "writes to a partition that is not in the transaction",
    "pid.zombie_end_txn": "ends a transaction by an old epoch",
    "pid.zombie_produce": "writes in a transaction by an old epoch",
}
"""There is no coordinator of transactions, and its APIs are not offered."""

BY_HAND: dict[str, object] = {
    "alter_partition.at_broker": frames.test_bytes_that_are_no_request_close_the_connection_and_no_other,
    "create.errors": frames.test_topics_that_cannot_be,
    "create.validate_only": frames.test_topics_that_cannot_be,
    "frame.apiversions_v99": frames.test_api_versions_of_an_unknown_version_is_answered_as_version_0_with_an_error,
    "frame.garbage_body": frames.test_bytes_that_are_no_request_close_the_connection_and_no_other,
    "frame.huge_array": frames.test_bytes_that_are_no_request_close_the_connection_and_no_other,
    "frame.null_client_id": frames.test_a_client_may_have_no_name,
    "frame.oversized": frames.test_bytes_that_are_no_request_close_the_connection_and_no_other,
    "frame.pipelined": frames.test_answers_come_in_the_order_of_the_requests,
    "frame.short_header": frames.test_bytes_that_are_no_request_close_the_connection_and_no_other,
    "frame.truncated_closed": frames.test_a_frame_that_ends_early_leaves_nothing_behind,
    "meta.invalid_name": frames.test_topics_that_cannot_be,
    "meta.unknown": frames.test_topics_that_cannot_be,
    "produce.acks_0": frames.test_acks_0_gets_no_answer_and_an_error_closes_the_connection,
    "produce.acks_0_error": frames.test_acks_0_gets_no_answer_and_an_error_closes_the_connection,
}
"""Told in words, or not an exchange of whole messages: the test that does the same."""

REPLAYED = [case for case in CASES if case not in {*NEEDS_OTHER_BROKERS, *NO_TRANSACTIONS, *BY_HAND}]

WITH_RECORDS, WITH_EPOCHS, COMPACTED = "c9fc91949", "c08fef058", "c8c4a8266"
NOT_COMPARED = {"throttle_time", "error_message", "record_errors", "records", "log_append_time", "metadata"}
RECORDED = {call["api"] for case in CASES.values() for call in case["calls"]}
APIS = {name: "".join(word.capitalize() for word in name.split("_")) for name in RECORDED}


class AnswerReplay:
    """A broker with topics like those that Kafka had, and how names and numbers correspond."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.epochs: list[int] = []
        self.ids: dict[str, bytes] = {}

    def prepare(self) -> None:
        """Topics with records; one of them with four leader epochs, in the third of which nothing is written."""
        with BrokerClient(self.broker.port) as client:
            client.create(WITH_EPOCHS)
        for count in (3, 2, 0, 1):
            with BrokerClient(self.broker.port) as client:
                self.epochs.append(self._leader_epoch(client))
                if count:
                    stamp = 1_000_000 * len([epoch for epoch in self.epochs if epoch]) + 1_000_000
                    client.produce(WITH_EPOCHS, new_batch([(min(stamp, 3_000_000), b"k", b"v")] * count))
            if len(self.epochs) < 4:
                self.broker.restart()
        with BrokerClient(self.broker.port) as client:
            client.create(WITH_RECORDS)
            client.produce(WITH_RECORDS, new_batch([(1, b"k", b"v")] * 3))
            client.create(COMPACTED, cleanup_policy="compact")
            for _ in range(2):
                client.call("FindCoordinator", 4, key_type=0, coordinator_keys=["any"])
            for topic in sorted(_topics() - {WITH_EPOCHS, WITH_RECORDS, COMPACTED}):
                client.create(topic)

    def _leader_epoch(self, client: BrokerClient) -> int:
        answer = client.call("Metadata", 12, topics=[Message(name=WITH_EPOCHS)], allow_auto_topic_creation=False)
        return int(answer.topics[0].partitions[0].leader_epoch)

    def epoch(self, topic: str, epoch: int) -> int:
        """Kafka's leader epoch of a topic, as it is here."""
        return self.epochs[epoch] if topic == WITH_EPOCHS and 0 <= epoch < 4 else epoch + (96 if epoch >= 4 else 0)


def _topics() -> set[str]:
    text = json.dumps([call["request"] for case in REPLAYED for call in CASES[case]["calls"]])
    return set(re.findall(r'"(?:name|topic)": "(c[0-9a-f]{8})"', text))


def test_every_case_is_replayed_or_has_its_reason() -> None:
    listed = [REPLAYED, NEEDS_OTHER_BROKERS, NO_TRANSACTIONS, BY_HAND]
    assert sorted(case for some in listed for case in some) == sorted(CASES)
    assert [len(some) for some in listed] == [58, 10, 6, 15]


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnswerReplay]:
    with BrokerProcess(tmp_path_factory.mktemp("kafka") / "logs", "--release", "4.4") as broker:
        found = AnswerReplay(broker)
        found.prepare()
        yield found


EPOCH_FIELDS = {"current_leader_epoch", "last_fetched_epoch", "leader_epoch", "epoch"}


def built(
    replay: AnswerReplay, fields: tuple[Field, ...], values: dict[str, Any], known: dict[str, Any], topic: str = ""
) -> Message:
    """A recorded request with the names and numbers of this run."""
    found: dict[str, Any] = {}
    topic = values.get("topic") or values.get("name") or topic
    for field in fields:
        name = field.name if field.name in values else field.name.removesuffix("_ms")
        if name not in values:
            continue
        value = values[name]
        if field.kind == "struct" and value is not None:
            listed = [built(replay, field.fields, one, known, topic) for one in (value if field.is_array else [value])]
            value = listed if field.is_array else listed[0]
        elif isinstance(value, str) and value.startswith("hex:"):
            value = bytes.fromhex(value[4:])
        elif field.name in EPOCH_FIELDS and isinstance(value, int):
            value = replay.epoch(topic, value)
        elif isinstance(value, str) and value in known:
            value = known[value]
        elif isinstance(value, int) and field.name in {"session_id", "producer_id"}:
            value = known.get(str(value), value)
        elif field.kind == "uuid" and isinstance(value, str):
            value = bytes.fromhex(value.replace("-", ""))
        found[field.name] = value
    return Message(**found)


def compare(
    replay: AnswerReplay, recorded: Any, message: Any, known: dict[str, Any], path: str, topic: str = ""
) -> Iterator[str]:
    """Differences of an answer from the recorded one. What a broker makes up is noted, to be used in later requests."""
    if isinstance(recorded, dict):
        topic = recorded.get("topic") or recorded.get("name") or topic
        for name, value in recorded.items():
            if name in NOT_COMPARED:
                continue
            there = message.__dict__
            ours = there[name] if name in there else there[f"{name}_ms"]
            yield from compare(replay, value, ours, known, f"{path}.{name}", str(topic))
    elif isinstance(recorded, list):
        if len(recorded) != len(message or ()):
            yield f"{path}: {len(recorded)} entries, not {len(message or ())}"
        for number, (one, ours) in enumerate(zip(recorded, message or (), strict=False)):
            yield from compare(replay, one, ours, known, f"{path}[{number}]", topic)
    else:
        yield from _compare_value(replay, recorded, message, known, path, topic)


def _compare_value(
    replay: AnswerReplay, recorded: Any, ours: Any, known: dict[str, Any], path: str, topic: str
) -> Iterator[str]:
    name = path.rpartition(".")[2].partition("[")[0]
    made_up = name in {"session_id", "producer_id"} and recorded not in (0, -1)
    if made_up or (isinstance(recorded, str) and re.search(r"[0-9a-f]{8}-[0-9a-f]{4}", recorded)):
        if recorded in known.values() or str(recorded) in known:
            if known[str(recorded)] != ours and name != "topic_id":
                yield f"{path}: {known[str(recorded)]!r}, not {ours!r}"
        elif ours is None or ours == "":
            yield f"{path}: something made up, not {ours!r}"
        elif name != "topic_id":
            known[str(recorded)] = ours
        return
    wanted: Any = recorded
    if name == "error_code":
        wanted = Error[recorded.upper()].value
    elif isinstance(recorded, str) and recorded.startswith("hex:"):
        wanted, ours = bytes.fromhex(recorded[4:]), bytes(ours)
    elif name in EPOCH_FIELDS and isinstance(recorded, int):
        wanted = replay.epoch(topic, recorded)
    elif recorded is None and ours == -1:
        return
    if wanted != ours:
        yield f"{path}: {wanted!r}, not {ours!r}"


@pytest.mark.parametrize("case", REPLAYED)
def test_the_answers_are_kafkas(replay: AnswerReplay, case: str) -> None:
    known: dict[str, Any] = {}
    differences: list[str] = []
    with BrokerClient(replay.broker.port) as client:
        for number, call in enumerate(CASES[case]["calls"]):
            name = APIS[call["api"]]
            request = built(replay, schema(f"{name}Request").fields, call["request"], known)
            client.send(name, call["version"], request, "cfm")
            answer = client.receive(name, call["version"])
            differences += compare(replay, call["response"], answer, known, f"{number}:{name}")
    assert differences == []
