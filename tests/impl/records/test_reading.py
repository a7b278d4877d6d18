"""The reader of records: the compiled one beside the plain one, on any bytes."""

import gzip
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.impl.records import reading
from kspec.impl.records.batch import HEADER_SIZE, BatchHeader, header_at
from kspec.impl.records.compression import CompressionError, compress
from kspec.impl.records.pieces import PIECE, decompress, pieces
from kspec.impl.records.record import RecordError, new_batch, records_of
from kspec.spec.log.found_records import ReaderEnding, RecordsFound
from tests.limits.turns import Turns

TIMES = st.sampled_from([-(2**63), -5, -1, 0, 1_700_000_000_000, 2**63 - 1])
RECORDS = st.lists(
    st.tuples(st.integers(0, 2**40), st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=300)),
    min_size=1,
    max_size=6,
)


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    reading.load()
    assert reading.is_loaded()


def header_of(body: bytes, count: int, codec: int, base_time: int) -> tuple[bytes, BatchHeader]:
    """A batch of any body."""
    header = header_at(new_batch([(0, None, None)]))
    header = header._replace(
        length=HEADER_SIZE - 12 + len(body), record_count=count, attributes=codec, base_timestamp=base_time
    )
    return bytes(HEADER_SIZE) + body, header


def both(batch: bytes, header: BatchHeader, skims: bool) -> tuple[RecordsFound, RecordsFound]:
    """Findings of the compiled and of the plain reader; of each record, too."""
    found = reading.read_records(batch, header, skims)
    each = list(reading.records_in(batch, header, skims)) if found.reading is ReaderEnding.COMPLETE else []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reading, "_compiled", reading.AbsentReader())
        plain = reading.read_records(batch, header, skims)
        each_plain = list(reading.records_in(batch, header, skims)) if plain.reading is ReaderEnding.COMPLETE else []
    assert each == each_plain
    return found, plain


def changed(data: bytes, places: list[tuple[int, int]]) -> bytes:
    found = bytearray(data)
    for place, value in places:
        if found:
            found[place % len(found)] = value
    return bytes(found)


CHANGES = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3)


@given(st.binary(max_size=60), st.integers(1, 5), st.integers(0, 4), TIMES, st.booleans())
def test_any_bytes(body: bytes, count: int, codec: int, base_time: int, compressed: bool) -> None:
    data = compress(codec, body) if compressed else body
    batch, header = header_of(data, count, codec, base_time)
    for skims in (False, True) if codec else (False,):
        found, plain = both(batch, header, skims)
        assert found == plain


@given(RECORDS, CHANGES, st.integers(-1, 1), st.integers(0, 4), TIMES, st.integers(0, 3))
def test_records_with_some_bytes_changed(
    records: list[tuple[int, bytes | None, bytes | None]],
    changes: list[tuple[int, int]],
    more: int,
    codec: int,
    base_time: int,
    cut: int,
) -> None:
    body = changed(new_batch(records)[HEADER_SIZE:], changes)
    batch, header = header_of(compress(codec, body[: len(body) - cut]), max(len(records) + more, 1), codec, base_time)
    for skims in (False, True) if codec else (False,):
        found, plain = both(batch, header, skims)
        assert found == plain


@given(RECORDS, CHANGES, st.integers(1, 4), st.integers(0, 12))
def test_compressed_data_with_some_bytes_changed(
    records: list[tuple[int, bytes | None, bytes | None]], changes: list[tuple[int, int]], codec: int, cut: int
) -> None:
    data = changed(compress(codec, new_batch(records)[HEADER_SIZE:]), changes)
    batch, header = header_of(data[: len(data) - cut], len(records), codec, 0)
    found, plain = both(batch, header, True)
    assert found == plain


@given(RECORDS, st.integers(0, 4))
def test_what_producers_make_is_whole(records: list[tuple[int, bytes | None, bytes | None]], codec: int) -> None:
    batch = new_batch(records, codec=codec)
    header = header_at(batch)
    times = [time for time, _, _ in records]
    for skims in (False, True) if codec else (False,):
        found, plain = both(batch, header, skims)
        assert found == plain
        assert (found.reading, found.record_count, found.consecutive) == (ReaderEnding.COMPLETE, len(records), True)
        assert (found.oldest, found.newest) == (min(times), max(times))
        assert found.without_key == sum(key is None for _, key, _ in records)


def in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_a_record_may_lie_in_many_pieces(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = new_batch([(number, b"key", bytes(50)) for number in range(9)], codec=1)
    header = header_at(batch)
    whole = both(batch, header, True)
    body = decompress(1, memoryview(batch)[HEADER_SIZE:])
    monkeypatch.setattr(reading, "pieces", lambda codec, data, most: in_pieces(bytes(body), size))
    assert both(batch, header, True) == whole
    monkeypatch.setattr(reading, "pieces", lambda codec, data, most: in_pieces(bytes(body) + b"\0", size))
    assert {one.reading for one in both(batch, header, True)} == {ReaderEnding.MALFORMED}
    monkeypatch.setattr(reading, "pieces", lambda codec, data, most: in_pieces(bytes(body)[:-1], size))
    assert {one.reading for one in both(batch, header, True)} == {ReaderEnding.MALFORMED}


def test_gzip_that_becomes_large_comes_in_small_pieces() -> None:
    data = memoryview(gzip.compress(bytes(64 << 20)))
    sizes = [len(piece) for piece in pieces(1, data)]
    assert (sum(sizes), max(sizes)) == (64 << 20, PIECE)


def test_a_snappy_block_that_claims_gigabytes_is_refused() -> None:
    with pytest.raises(CompressionError, match="block of snappy"):
        decompress(2, b"\xff\xff\xff\xff\x07\x00a")


def test_records_of_reads_what_a_broker_takes() -> None:
    """A batch that is taken in spite of its length cannot be read thoroughly, and that is an error, not a crash."""
    batch = bytearray(new_batch([(1, b"k", b"v")]))
    batch[HEADER_SIZE] += 2
    with pytest.raises(RecordError):
        list(records_of(batch))


@given(st.lists(RECORDS, max_size=4), CHANGES)
def test_places_of_records(
    batches: list[list[tuple[int, bytes | None, bytes | None]]], changes: list[tuple[int, int]]
) -> None:
    """Places of records are told only if all can be read, and then they are right."""
    content = changed(b"".join(map(new_batch, batches)), changes)
    found = reading.record_places(content)
    if not changes:
        assert found is not None
    if found is None:
        return
    position, read = 0, []
    turns = Turns()
    while position < len(content):
        turns.go()
        header = header_at(content, position)
        read += list(records_of(content[position : position + header.size]))
        position += header.size
    assert [(one[0], *_cut(content, one)) for one in found] == [(one.offset + 1, one.key, one.value) for one in read]


def _cut(content: bytes, place: list[int]) -> tuple[bytes | None, bytes | None]:
    _, key, key_size, value, value_size = place
    return (
        content[key : key + key_size] if key_size >= 0 else None,
        content[value : value + value_size] if value_size >= 0 else None,
    )


@pytest.mark.parametrize("attributes", [1, 2, 4, 0x10, 0x20, 0x30])
def test_places_are_told_of_plain_batches_alone(attributes: int) -> None:
    assert reading.record_places(new_batch([(0, b"k", b"v")])) is not None
    assert reading.record_places(new_batch([(0, b"k", b"v")], attributes=attributes)) is None


def test_a_broker_loads_the_compiled_reader_when_much_has_been_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_compiled", reading.CompiledReader())
    batch = new_batch([(0, None, bytes(1_000))])

    def read(times: int) -> None:
        for _ in range(times):
            assert reading.read_records(batch, header_at(batch), skims=False).reading is ReaderEnding.COMPLETE

    many = reading.WORTH_IT_BYTES // len(batch) + 1
    read(many)
    assert not reading.is_loaded()
    reading.load_when_worth_it()
    read(many - 1)
    assert not reading.is_loaded()
    read(1)
    turns = Turns()
    while not reading.is_loaded():
        turns.go()
        read(1)


def test_a_large_batch_waits_for_the_compiled_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_compiled", reading.CompiledReader())
    batch = new_batch([(0, None, bytes(reading.PLAIN_BYTES))])
    assert reading.read_records(batch, header_at(batch), skims=False).reading is ReaderEnding.COMPLETE
    assert reading.is_loaded()
