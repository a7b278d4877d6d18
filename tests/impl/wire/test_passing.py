"""A message that stays in the process is what decoding would make of its bytes."""

from typing import Any

import pytest

from kspec.impl.wire.passing import passer_of
from kspec.impl.wire.reading import read_message
from kspec.impl.wire.schema import Field, names, schema
from kspec.impl.wire.values import Message
from kspec.impl.wire.writing import write_message

SAMPLES = {"bool": True, "string": "text", "bytes": b"some", "records": b"batches", "uuid": bytes(range(16)), "float64": 1.5}
MESSAGES = [name for name in names() if name.endswith(("Request", "Response"))]


def filled(fields: tuple[Field, ...], version: int) -> Message:
    """A message with a value for each field that the version has."""
    return Message(**{one.name: sample(one, version) for one in fields if version in one.versions})


def sample(field: Field, version: int) -> Any:
    one = filled(field.fields, version) if field.kind == "struct" else SAMPLES.get(field.kind, 7)
    return [one, one] if field.is_array else one


def decoded(name: str, version: int, message: Message) -> Message:
    return read_message(name, version, memoryview(write_message(name, version, message)))[0]


@pytest.mark.parametrize("name", MESSAGES)
def test_a_passed_message_is_the_decoded_one(name: str) -> None:
    facts = schema(name)
    for version in range(facts.versions.first, facts.versions.last + 1):
        message = filled(facts.fields, version)
        assert passer_of(name, version)(message) == decoded(name, version, message)


def test_fields_that_are_not_given_have_what_their_version_says() -> None:
    message = Message(topics=[Message(topic="a", partitions=[Message(partition=1, fetch_offset=3)])])
    for version in (4, 11):
        assert passer_of("FetchRequest", version)(message) == decoded("FetchRequest", version, message)


def test_a_list_is_the_receivers_own() -> None:
    message = Message(topics=[Message(name="a", partitions=[])], timeout_ms=1)
    passed = passer_of("CreateTopicsRequest", 7)(message)
    assert passed.topics is not message.topics
