"""Cases as JSON: the bytes of every version are those that the codec writes, with the holes filled."""

import json
import struct
from pathlib import Path
from typing import Any

import crc32c
import pytest
from click.testing import CliRunner

from kspec.cli.conformance.commands import conformance
from kspec.conformance.wire.cases.document import FORMAT, versions_with
from kspec.conformance.wire.cases.suite import Json
from kspec.conformance.wire.run.checking import differences
from kspec.conformance.wire.run.rendering import UnknownHoleError, filled, rendered
from kspec.impl.records.batch import header_at, is_intact
from kspec.impl.wire.apis import APIS
from kspec.impl.wire.frames import read_header
from kspec.impl.wire.reading import read_message
from kspec.impl.wire.schema import schema
from kspec.impl.wire.values import Message
from tests.conformance.wire.targets import documents
from tests.places import REPOSITORY

KNOWN: dict[str, Any] = {
    "correlation_id": 77,
    "topic": "a-topic",
    "topic_dotted": "a.topic",
    "topic_underscored": "a_topic",
    "topic_id": bytes(range(16)),
    "group": "a-group",
    "now": 1_700_000_000_000,
    "broker_id": 3,
    "producer_id": 4711,
    "producer_id_2": 4712,
    "topic_id_2": bytes(range(16, 32)),
    "internal_id": bytes(range(32, 48)),
    "former_id": bytes(range(48, 64)),
    "session_id": 99,
    "epoch_0": 8,
    "epoch_1": 10,
    "epoch_2": 12,
    "older_epoch": 7,
    "epoch": 13,
    **{f"member_{client}{number}": f"member-{client}-{number}" for client in "ABC" for number in (1, 2)},
}


def check(fields: tuple[Any, ...], message: Message, values: Any, version: int) -> None:
    for field in fields:
        if field.name not in values or version not in field.versions:
            continue
        wanted, found = values[field.name], message.__dict__[field.name]
        if field.kind == "struct" and wanted is not None:
            pairs = zip(found, wanted, strict=True) if field.is_array else [(found, wanted)]
            for one, other in pairs:
                check(field.fields, one, other, version)
        else:
            plain = bytes(found) if isinstance(found, (memoryview, bytearray)) else found
            assert plain == wanted, field.name


def test_the_bytes_of_every_version_say_what_the_fields_say() -> None:
    count = 0
    for document in documents():
        for step in (one for one in document["steps"] if not one.get("raw")):
            values = filled(step["request"], KNOWN)
            for version, parts in step["bytes"].items():
                frame = memoryview(rendered(parts, KNOWN))
                header = read_header(frame, APIS)
                assert (header.key, header.version, header.correlation) == (step["key"], int(version), 77)
                message, end = read_message(f"{step['api']}Request", int(version), frame, header.body)
                assert end == len(frame)
                check(schema(f"{step['api']}Request").fields, message, values, int(version))
                count += 1
    assert count > 10_000


def test_bytes_that_are_no_request_are_sent_as_they_are() -> None:
    (document,) = documents("frames/frame.unknown-tag/answered")
    step = document["steps"][0]
    frame = rendered(step["bytes"]["9"], KNOWN)
    assert (step["raw"], step["api"]) == (True, "Metadata")
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header = read_header(memoryview(frame)[4:], APIS)
    assert (header.key, header.version, header.correlation) == (3, 9, 77)


def test_a_topic_can_be_made_by_metadata_if_it_has_no_settings_of_its_own() -> None:
    (plain,) = documents("reading/fetch.end/nothing")
    first = plain["steps"][0]
    assert (first["api"], first["otherwise"]["api"], first["otherwise"]["versions"][0]) == ("CreateTopics", "Metadata", 4)
    assert first["otherwise"]["request"]["allow_auto_topic_creation"] is True
    (limited,) = documents("limits/batch.too-large/message-too-large")
    assert "otherwise" not in limited["steps"][0]


def test_what_a_group_has_become_is_looked_at_where_that_is_possible() -> None:
    (document,) = documents("offsets/offsets.of-partition/an-offset")
    assert [step["api"] for step in document["steps"] if step.get("optional")] == ["DescribeGroups"]


def test_a_batch_is_intact_once_its_holes_are_filled() -> None:
    (document,) = documents("producing/idempotent.again/duplicate")
    step = [one for one in document["steps"] if one["api"] == "Produce"][-1]
    records = filled(step["request"], KNOWN)["topic_data"][0]["partition_data"][0]["records"]
    header = header_at(records)
    assert is_intact(records, header)
    assert (header.producer_id, header.max_timestamp) == (4711, 1_700_000_000_001)


def test_what_nobody_has_told_is_an_error() -> None:
    with pytest.raises(UnknownHoleError, match="no answer has told the producer id"):
        rendered([{"hole": "producer_id", "as": "int64"}], {})


def test_parts_by_hand() -> None:
    number, text = {"hole": "n", "plus": 2, "as": "int16"}, {"hole": "t", "as": "string"}
    parts: list[str | Json] = ["00ff", number, text, {"crc32c": ["6162"]}]
    wanted = b"\x00\xff\x00\x05\x00\x02hi" + struct.pack(">I", crc32c.crc32c(b"ab")) + b"ab"
    assert rendered(parts, {"n": 3, "t": "hi"}) == wanted
    assert rendered([{"hole": "t", "as": "compact_string"}], {"t": "hi"}) == b"\x03hi"


def test_the_versions_that_have_a_field() -> None:
    assert versions_with("ListOffsets", "topics[0].partitions[0].leader_epoch")[0] == 4
    assert versions_with("Fetch", "responses[#]")[0] == schema("FetchResponse").versions.first


ANSWER = Message(error_code=3, names=["a", "b"], inside=None)


@pytest.mark.parametrize(
    ("constraint", "wrong"),
    [
        ({"path": "error_code", "one_of": [3]}, []),
        ({"path": "error_code", "one_of": [0, {"hole": "n"}]}, ["error_code: 3, not 0 or 5"]),
        ({"path": "error_code", "one_of": [0], "versions": [5, 9]}, []),
        ({"path": "names[#]", "one_of": [2]}, []),
        ({"path": "names[2]", "one_of": ["c"]}, ["names[2]: there is none"]),
        ({"path": "inside.epoch", "one_of": [7]}, ["inside.epoch: there is none"]),
        ({"path": "inside.epoch", "one_of": [-1]}, ["inside.epoch: there is none"]),
        ({"path": "tagged.epoch", "one_of": [-1]}, []),
        ({"path": "tagged.epoch", "one_of": [7]}, ["tagged.epoch: there is none"]),
        ({"path": "error_code", "not_empty": True}, []),
        ({"path": "inside", "not_empty": True}, ["inside: None, not something of its own"]),
        ({"path": "error_code", "at_least": 4, "reason": ""}, ["error_code: 3, not at least 4"]),
    ],
)
def test_constraints(constraint: Any, wrong: list[str]) -> None:
    assert differences([constraint], 4, ANSWER, {"n": 5}) == wrong


def test_generate_writes_a_file_for_each_case(tmp_path: Path) -> None:
    done = CliRunner().invoke(conformance, ["generate", "--out", str(tmp_path / "cases")])
    assert done.exit_code == 0, done.output
    index = json.loads((tmp_path / "cases" / "index.json").read_text(encoding="utf-8"))
    assert (index["format"], len(index["cases"])) == (FORMAT, len(documents()))
    assert len({one["file"] for one in index["cases"]}) == len(documents())
    one = json.loads((tmp_path / "cases" / index["cases"][0]["file"]).read_text(encoding="utf-8"))
    assert one["name"] == index["cases"][0]["name"]


def test_the_bytes_on_the_page_of_the_format_are_those_of_the_parts_above_them() -> None:
    page = "".join((REPOSITORY / "docs" / "conformance-format.md").read_text(encoding="utf-8").split())
    probe = rendered(["00120000", {"hole": "correlation_id", "as": "int32"}, "00056b73706563"], {"correlation_id": 1})
    assert f"sent{len(probe):08x}{probe.hex()}" in page
    now = {"hole": "now", "as": "int64"}
    inside = ["000000000000", now, now, "ffffffffffffffffffffffffffff00000001", "16000000026b086174203000"]
    head = "00000000000000000000003dffffffff02"
    batch = rendered([head, {"crc32c": inside}], {"now": 1_700_000_000_000}).hex()
    assert f"bytes{head}{batch[len(head) :][:8]}" in page
    assert batch[len(head) + 8 : -24] in page
    assert f"{batch[-24:]}therecord" in page
