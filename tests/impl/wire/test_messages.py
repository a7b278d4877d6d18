"""Messages as bytes and back; the table of fields beside the schemas in Kafka's jars."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kspec.impl.wire.apis import APIS
from kspec.impl.wire.frames import read_header
from kspec.impl.wire.from_jars import table_of
from kspec.impl.wire.reading import read_message
from kspec.impl.wire.schema import TABLE, Field, names, schema, snake_case, versions_of
from kspec.impl.wire.values import DecodeError, Message
from kspec.impl.wire.writing import write_message

MAVEN = Path.home() / ".m2" / "repository" / "org" / "apache" / "kafka"
JARS = [MAVEN / name / "4.4.0" / f"{name}-4.4.0.jar" for name in ("kafka-clients", "kafka-metadata")]

ALL = [(name, version) for name in names() for version in range(schema(name).versions.first, schema(name).versions.last + 1)]


def test_the_table_is_what_the_jars_say() -> None:
    missing = [str(jar) for jar in JARS if not jar.exists()]
    if missing:
        pytest.skip(f"the table is not compared with Kafka's schemas: {', '.join(missing)} is not there")
    assert table_of(JARS) == TABLE.read_text(encoding="utf-8")


def test_every_message_of_every_version_comes_back() -> None:
    assert len(ALL) > 600
    for name, version in ALL:
        written = write_message(name, version, Message())
        _, end = read_message(name, version, memoryview(written))
        assert end == len(written), (name, version)


NUMBERS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}


def values_of(field: Field, version: int) -> st.SearchStrategy[object]:
    one: st.SearchStrategy[object]
    if field.kind == "struct":
        one = messages(field.fields, version)
    elif field.kind in NUMBERS:
        one = st.integers(*NUMBERS[field.kind])
    else:
        one = {
            "bool": st.booleans(),
            "float64": st.floats(allow_nan=False),
            "uuid": st.binary(min_size=16, max_size=16),
            "string": st.text(max_size=5),
            "bytes": st.binary(max_size=5),
            "records": st.binary(max_size=5),
        }[field.kind]
    found = st.lists(one, max_size=2) if field.is_array else one
    return st.none() | found if version in field.nullable else found


def messages(fields: tuple[Field, ...], version: int) -> st.SearchStrategy[Message]:
    present = {field.name: values_of(field, version) for field in fields if version in field.versions}
    return st.fixed_dictionaries(present).map(lambda given: Message(**given))


def agree(fields: tuple[Field, ...], version: int, one: Message, other: Message) -> bool:
    def same(field: Field, left: object, right: object) -> bool:
        if field.kind == "struct" and isinstance(left, Message) and isinstance(right, Message):
            return agree(field.fields, version, left, right)
        if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
            return len(left) == len(right) and all(same(field, *pair) for pair in zip(left, right, strict=True))
        return left == right

    given = one.__dict__
    return all(same(field, given[field.name], other.__dict__[field.name]) for field in fields if field.name in given)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_what_is_written_is_read(data: st.DataObject) -> None:
    name, version = data.draw(st.sampled_from(ALL))
    fields = schema(name).fields
    message = data.draw(messages(fields, version))
    written = write_message(name, version, message)
    read, end = read_message(name, version, memoryview(written))
    assert end == len(written)
    assert agree(fields, version, message, read), (name, version, message, read)


@given(st.sampled_from([one for one in ALL if one[0].endswith("Request")]), st.binary(max_size=200))
@settings(max_examples=600, deadline=None)
def test_any_bytes_are_a_message_or_a_decode_error(wanted: tuple[str, int], frame: bytes) -> None:
    with suppress(DecodeError):
        message, end = read_message(*wanted, memoryview(frame))
        assert end <= len(frame)
        assert isinstance(message, Message)


@given(st.sampled_from(sorted(APIS)), st.integers(0, 20), st.binary(max_size=60))
@settings(max_examples=500, deadline=None)
def test_any_bytes_are_a_header_or_a_decode_error(key: int, version: int, rest: bytes) -> None:
    frame = key.to_bytes(2, "big") + version.to_bytes(2, "big") + rest
    with suppress(DecodeError):
        assert read_header(memoryview(frame)).body <= len(frame)


def test_a_field_that_no_version_has_is_our_mistake() -> None:
    with pytest.raises(TypeError, match="MetadataRequest has no field topicks"):
        write_message("MetadataRequest", 9, Message(topicks=[]))
    with pytest.raises(TypeError, match="must not be null"):
        write_message("MetadataRequest", 0, Message(topics=None))


def test_names_and_ranges_are_kafkas_ways_of_writing() -> None:
    assert snake_case("TransactionalId") == "transactional_id"
    assert snake_case("throttleTimeMs") == "throttle_time_ms"
    assert [3 in versions_of(text) for text in ("3", "0-2", "2+", "none")] == [True, False, True, False]
