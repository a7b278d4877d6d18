"""Requests that nobody would send: frames of every API, with random fields, cut, stretched, and with wrong bytes."""

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

import crc32c

from kspec.impl.records.record import new_batch
from kspec.impl.wire.apis import APIS, Api
from kspec.impl.wire.schema import Field, schema
from kspec.impl.wire.values import Message
from kspec.impl.wire.writing import write_message

TOPICS = ("fuzzed", "other", "compacted", "missing", "__consumer_offsets", "a/b", "", "x" * 250)
NAMES = ("group", "member", "range", "consumer", "retention.ms", "cleanup.policy", "1", "")
NUMBERS = (0, 0, 0, 0, 1, 1, 2, 3, 5, -1, -1, -2, 100, 1000)
EXTREMES = (2**7 - 1, 2**15 - 1, 2**31 - 1, 2**63 - 1, -(2**31), -(2**63), 2**31, 2**32)
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
CRC_AT, CRC_FROM = 17, 21
LONGEST_WAIT_MS = 50
ALL = tuple(APIS.values())
NOT_A_TEXT = b"\xff\xfe"


class Fuzzer:
    """Makes frames. `offered`: the keys of the APIs that the broker has said it offers."""

    def __init__(self, seed: int, offered: Sequence[int]) -> None:
        self.random = random.Random(seed)
        self.offered = offered
        self.ids = [bytes(16)]
        """Ids of topics that requests may name."""

    # ---- requests

    def frame(self) -> bytes:
        """A request as it is sent: with luck a valid one. Now and then its length is wrong."""
        api = self.random.choice(ALL)
        version = self.random.randint(*api.known)
        body = self._body(api, version, self._request(api, version), self.random.choice((b"fuzz", b"", NOT_A_TEXT)))
        for _ in range(self.random.choice((0, 0, 1, 1, 2, 4))):
            body = self.random.choice(self._changes)(body)
        length = len(body)
        if self.random.random() < 0.02:
            length = self.random.choice((length - 1, length + 1, 0, -1, 2**31 - 1, 1 << 20))
        return struct.pack(">i", length) + body

    def readable_frame(self) -> bytes:
        """A request that a broker can read and so has to answer, with whichever error: only what it asks for is random.

        A producer that wants no answer (acks=0) learns of an error by the end of its connection: this one wants one.
        """
        api = APIS[self.random.choice(self.offered)]
        version = self.random.randint(*api.known)
        message = self._request(api, version)
        if api.name == "Produce" and vars(message)["acks"] == 0:
            vars(message)["acks"] = -1
        body = self._body(api, version, message, b"fuzz")
        return struct.pack(">i", len(body)) + body

    def _request(self, api: Api, version: int) -> Message:
        name = f"{api.name}Request"
        return self._message(name, schema(name).fields, version)

    def _body(self, api: Api, version: int, message: Message, client: bytes) -> bytes:
        head = struct.pack(">hhih", api.key, version, self.random.getrandbits(31), len(client)) + client
        return head + (b"\0" if version in api.flexible else b"") + write_message(f"{api.name}Request", version, message)

    def _message(self, name: str, fields: tuple[Field, ...], version: int) -> Message:
        return Message(**{field.name: self._value(name, field, version) for field in fields if version in field.versions})

    def _value(self, name: str, field: Field, version: int) -> Any:
        if version in field.nullable and self.random.random() < 0.1:
            return None
        if field.is_array:
            return [self._one(name, field, version) for _ in range(self.random.choice((0, 1, 1, 1, 2, 3)))]
        return self._one(name, field, version)

    def _one(self, name: str, field: Field, version: int) -> Any:
        chance = self.random
        if field.kind == "struct":
            return self._message(name, field.fields, version)
        if field.kind == "bool":
            return chance.random() < 0.5
        if field.kind == "uuid":
            return chance.choice(self.ids)
        if field.kind == "records":
            return self.batch()
        if field.kind == "bytes":
            return chance.randbytes(chance.randrange(20))
        if field.kind == "float64":
            return chance.random()
        if field.kind == "string":
            return chance.choice(TOPICS if field.name in {"name", "topic"} else NAMES + TOPICS)
        if field.name in {"max_wait_ms", "timeout_ms"}:
            return chance.randrange(LONGEST_WAIT_MS)
        return self._number(field.kind)

    def _number(self, kind: str) -> int:
        number = self.random.choice(NUMBERS if self.random.random() < 0.9 else EXTREMES)
        bits = BITS.get(kind)
        if bits is None:
            return abs(number) % (2**16 if kind == "uint16" else 2**32)
        half = 1 << (bits - 1)
        return (number + half) % (2 * half) - half

    # ---- batches

    def batch(self) -> bytes:
        """A batch with a few wrong bytes; its checksum is then mostly made right again."""
        chance = self.random
        count = chance.randint(1, 5)
        numbered = {"producer_id": chance.randrange(3), "producer_epoch": 0, "base_sequence": chance.randrange(20)}
        records = [(chance.randrange(2**41), chance.choice((None, b"k")), chance.randbytes(chance.randrange(50)))] * count
        found = bytearray(new_batch(records, codec=0, **(numbered if chance.random() < 0.3 else {})))
        for _ in range(chance.choice((0, 0, 1, 2, 3))):
            place = chance.randrange(len(found))
            found[place] = chance.getrandbits(8)
        if chance.random() < 0.8:
            found[CRC_AT:CRC_FROM] = struct.pack(">I", crc32c.crc32c(bytes(found[CRC_FROM:])))
        if chance.random() < 0.1:
            found = found[: chance.randrange(len(found))]
        return bytes(found) * chance.choice((1, 1, 1, 1, 2))

    # ---- wrong bytes

    @property
    def _changes(self) -> tuple[Callable[[bytes], bytes], ...]:
        return (self._flip, self._overwrite, self._cut, self._repeat, self._insert)

    def _place(self, frame: bytes) -> int:
        """Rather behind the header: a wrong API or version ends at once."""
        return min(self.random.randrange(len(frame) + 1) if self.random.random() < 0.2 else 10, len(frame))

    def _within(self, frame: bytes) -> int:
        return self.random.randrange(self._place(frame), len(frame) + 1)

    def _flip(self, frame: bytes) -> bytes:
        place = self._within(frame)
        return (
            frame[:place]
            + bytes(one ^ (1 << self.random.randrange(8)) for one in frame[place : place + 1])
            + frame[place + 1 :]
        )

    def _overwrite(self, frame: bytes) -> bytes:
        place = self._within(frame)
        number = self.random.choice(EXTREMES) % 2**64
        size = self.random.choice((1, 2, 4, 8))
        return frame[:place] + number.to_bytes(8, "big")[-size:] + frame[place + size :]

    def _cut(self, frame: bytes) -> bytes:
        return frame[: self._within(frame)]

    def _repeat(self, frame: bytes) -> bytes:
        first, last = sorted((self._within(frame), self._within(frame)))
        return frame[:last] + frame[first:last] * self.random.randint(1, 3) + frame[last:]

    def _insert(self, frame: bytes) -> bytes:
        place = self._within(frame)
        return frame[:place] + self.random.randbytes(self.random.randint(1, 12)) + frame[place:]
