"""The messages of one release of Kafka as bytes and back, by the schemas that its own jars carry.

The wire codec of `impl` is put together from tables of fields; here the table comes from the jars, so that a new release
needs no new code. Fields have the names of `impl`'s codec: Kafka's, in snake case.
"""

import struct
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

from kspec.conformance.kafka.jars import Jars
from kspec.impl.records.batch import BatchHeader, headers
from kspec.impl.records.record import StoredRecord, new_batch, records_of
from kspec.impl.wire.from_jars import KEPT, schemas_in
from kspec.impl.wire.reading import Reader, read_unsigned_varint, reader_for, skip_tagged_fields
from kspec.impl.wire.schema import Schema, Versions, schema_of
from kspec.impl.wire.values import DecodeError, Message
from kspec.impl.wire.writing import Parts, Writer, joined, unsigned_varint, writer_for

REQUEST_HEADER = struct.Struct(">hhih")
LENGTH = struct.Struct(">i")
API_VERSIONS = "ApiVersions"
FRAME_VERSION = 1
"""Of a record of the metadata log. Kafka: `MetadataRecordSerde`."""

CONTROL = 0x20
"""The attribute of a control batch. Kafka: `DefaultRecordBatch.CONTROL_FLAG_MASK`."""

LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS = 2, 3, 4, 5, 6
"""Kinds of control records. Kafka: `ControlRecordType`."""


class DecodedRequest(NamedTuple):
    """A request as it has arrived."""

    api: str
    version: int
    correlation: int
    client_id: str | None
    message: Message


class MetadataRecord(NamedTuple):
    """A record of the metadata log: its type, such as `PartitionRecord`, its version, its fields, its offset."""

    name: str
    version: int
    message: Message
    offset: int = -1


class Codec:
    """The messages of one release."""

    def __init__(self, jars: Jars) -> None:
        self.release = jars.release
        found: dict[str, dict[str, Any]] = {}
        for artifact in ("kafka-clients", "kafka-metadata", "kafka-raft"):
            found |= schemas_in(jars.named(artifact), (*KEPT, "data"))
        self._entries = found
        self.schema = cache(self._schema)
        self._reader = cache(self._new_reader)
        self._writer = cache(self._new_writer)

    def _schema(self, name: str) -> Schema:
        return schema_of(self._entries[name])

    def _new_reader(self, name: str, version: int) -> Reader:
        return reader_for(self.schema(name), version)

    def _new_writer(self, name: str, version: int) -> Writer:
        return writer_for(self.schema(name), version)

    @cached_property
    def apis(self) -> dict[str, int]:
        """The keys of all requests, by the names of their APIs."""
        names = [name for name in self._entries if name.endswith("Request")]
        return {name.removesuffix("Request"): self.schema(name).key for name in names if self.schema(name).key >= 0}

    @cached_property
    def _api_names(self) -> dict[int, str]:
        return {key: name for name, key in self.apis.items()}

    @cached_property
    def _record_names(self) -> dict[int, str]:
        ends = ("Record", "Record_V0")
        names = [name for name in self._entries if name.endswith(ends) and self.schema(name).key >= 0]
        return {self.schema(name).key: name for name in names}

    def versions(self, api: str) -> Versions:
        """The versions of a request."""
        return self.schema(f"{api}Request").versions

    def read(self, name: str, version: int, data: bytes | memoryview, position: int = 0) -> Message:
        """A message, such as `FetchRequest`. Raises: `DecodeError`."""
        try:
            message, _ = self._reader(name, version)(memoryview(data), position)
        except (struct.error, IndexError) as error:
            raise DecodeError(f"{name} version {version} is truncated") from error
        assert isinstance(message, Message)
        return message

    def write(self, name: str, version: int, message: Message) -> bytes:
        """The bytes of a message."""
        parts = Parts()
        self._writer(name, version)(parts, message)
        return joined(parts.finish())

    # ---- requests and answers

    def read_request(self, frame: bytes) -> DecodedRequest:
        """A request without its length. Raises: `DecodeError`.

        An ApiVersions request of a version that is not known is read as one without fields.
        """
        try:
            key, version, correlation, length = REQUEST_HEADER.unpack_from(frame)
            api = self._api_names[key]
        except (struct.error, KeyError):
            raise DecodeError(f"a request of {len(frame)} bytes that Kafka {self.release} does not know") from None
        end = REQUEST_HEADER.size + max(length, 0)
        client_id = None if length < 0 else frame[REQUEST_HEADER.size : end].decode("utf-8", "replace")
        schema = self.schema(f"{api}Request")
        if version not in schema.versions:
            if api != API_VERSIONS:
                raise DecodeError(f"Kafka {self.release} has no {api} version {version}")
            return DecodedRequest(api, version, correlation, client_id, Message())
        view = memoryview(frame)
        if version in schema.flexible:
            end = skip_tagged_fields(view, end)
        return DecodedRequest(api, version, correlation, client_id, self.read(schema.name, version, view, end))

    def request(self, api: str, version: int, correlation: int, client_id: str, message: Message) -> bytes:
        """A request with its length before it."""
        name = f"{api}Request"
        client = client_id.encode()
        header = REQUEST_HEADER.pack(self.apis[api], version, correlation, len(client)) + client
        if version in self.schema(name).flexible:
            header += b"\0"
        body = header + self.write(name, version, message)
        return LENGTH.pack(len(body)) + body

    def read_response(self, api: str, version: int, frame: bytes) -> Message:
        """An answer without its length. Raises: `DecodeError`."""
        view, name = memoryview(frame), f"{api}Response"
        end = skip_tagged_fields(view, 4) if self._has_tags(api, version) else 4
        return self.read(name, version, view, end)

    def response(self, api: str, version: int, correlation: int, message: Message) -> bytes:
        """An answer with its length before it."""
        body = LENGTH.pack(correlation) + (b"\0" if self._has_tags(api, version) else b"")
        body += self.write(f"{api}Response", version, message)
        return LENGTH.pack(len(body)) + body

    def _has_tags(self, api: str, version: int) -> bool:
        return api != API_VERSIONS and version in self.schema(f"{api}Response").flexible

    # ---- the metadata log

    def metadata_record(self, name: str, message: Message, version: int | None = None) -> bytes:
        """The value of a record of the metadata log; by default in the latest version. Kafka: `MetadataRecordSerde`."""
        schema = self.schema(name)
        version = schema.versions.last if version is None else min(version, schema.versions.last)
        frame = unsigned_varint(FRAME_VERSION) + unsigned_varint(schema.key) + unsigned_varint(version)
        return frame + self.write(name, version, message)

    def read_metadata_record(self, value: bytes, offset: int = -1) -> MetadataRecord:
        """A record of the metadata log. Raises: `DecodeError`."""
        view = memoryview(value)
        position = 0
        numbers = []
        for _ in range(3):
            number, position = read_unsigned_varint(view, position)
            numbers.append(number)
        _, key, version = numbers
        if key not in self._record_names:
            raise DecodeError(f"Kafka {self.release} has no metadata record of type {key}")
        name = self._record_names[key]
        return MetadataRecord(name, version, self.read(name, version, view, position), offset)

    def metadata_in(self, batches: bytes) -> list[MetadataRecord]:
        """The records in batches of the metadata log, without control batches. The last batch may be cut off."""
        return [
            self.read_metadata_record(record.value or b"", record.offset)
            for header, records in batches_in(batches)
            if not header.control
            for record in records
        ]

    def metadata_batch(self, base_offset: int, epoch: int, now_ms: int, values: Sequence[bytes]) -> bytes:
        """One batch of records of the metadata log, given as their values."""
        return new_batch([(now_ms, None, value) for value in values], base_offset=base_offset, leader_epoch=epoch)

    def control_batch(self, base_offset: int, epoch: int, now_ms: int, *told: tuple[int, bytes]) -> bytes:
        """A batch of control records, each with its kind and its value. Kafka: `MemoryRecords.writeLeaderChangeMessage`."""
        records = [(now_ms, struct.pack(">hh", 0, kind), value) for kind, value in told]
        return new_batch(records, base_offset=base_offset, leader_epoch=epoch, attributes=CONTROL)


def batches_in(data: bytes) -> Iterator[tuple[BatchHeader, list[StoredRecord]]]:
    """The batches in bytes, and their records. What is behind the last whole batch is left out."""
    whole = len(data)
    position = 0
    while position + 12 <= len(data):
        size = 12 + struct.unpack_from(">i", data, position + 8)[0]
        if position + size > len(data):
            whole = position
            break
        position += size
    else:
        whole = position
    for header in headers(data[:whole]):
        yield header, list(records_of(data[header.position : header.position + header.size]))
