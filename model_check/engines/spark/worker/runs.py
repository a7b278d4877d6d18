"""Packed states in Parquet files, in a folder that driver and executors all reach: a path, or a URL such as `hdfs://…`.

A file is written once, under a name of its own, and never changed. So a task that is retried, or runs twice, does no
harm: only the files that are reported to the driver count.
"""

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow
import pyarrow.fs
import pyarrow.parquet

from kspec.model_check.engines.spark.worker.core import PADDING, Packed

ROWS_PER_GROUP = 1 << 20
COLUMN = "state"


class StateFile(NamedTuple):
    """A file of packed states: the number of its layout, and how many states of each level it holds, in this order."""

    file: str
    layout: int
    levels: tuple[tuple[int, int], ...]

    @property
    def states(self) -> int:
        return sum(count for _, count in self.levels)


class Piece(NamedTuple):
    """Some consecutive states of a file."""

    file: str
    layout: int
    begin: int
    states: int


def pieces_of(runs: Sequence[StateFile], level: int) -> list[Piece]:
    """The pieces of files that hold the states of a level."""
    pieces = []
    for run in runs:
        begin = 0
        for other, count in run.levels:
            if other == level and count:
                pieces.append(Piece(run.file, run.layout, begin, count))
            begin += count
    return pieces


def slice_of(pieces: Sequence[Piece], begin: int, end: int) -> list[Piece]:
    """The states number `begin` to `end` of these pieces."""
    chosen, at = [], 0
    for piece in pieces:
        low, high = max(begin - at, 0), min(end - at, piece.states)
        if low < high:
            chosen.append(Piece(piece.file, piece.layout, piece.begin + low, high - low))
        at += piece.states
    return chosen


class FolderError(ValueError):
    """A folder that cannot be used."""


class Folder:
    """A folder at a path or URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            if "://" in url:
                self._system, self._path = pyarrow.fs.FileSystem.from_uri(url)
            else:
                self._system, self._path = pyarrow.fs.LocalFileSystem(), str(Path(url).absolute())
        except (OSError, pyarrow.ArrowInvalid) as error:
            raise FolderError(f"{url} is no folder that can be used: {error}") from error

    def create(self) -> None:
        """Make sure that it exists; `FolderError` says why it cannot."""
        try:
            self._system.create_dir(self._path, recursive=True)
            if self._system.get_file_info(self._path).type == pyarrow.fs.FileType.File:
                raise FolderError(f"{self.url} is a file, not a folder")
        except OSError as error:
            raise FolderError(f"{self.url} cannot be used: {error}") from error

    def names(self) -> list[str]:
        """The names of all files; a file in a subfolder has the subfolder's name before its own."""
        selector = pyarrow.fs.FileSelector(self._path, recursive=True, allow_not_found=True)
        root = len(self._path.rstrip("/")) + 1
        return [info.path[root:] for info in self._system.get_file_info(selector) if info.is_file]

    def size(self, names: Sequence[str]) -> int:
        """The bytes of these files."""
        return sum(info.size for info in self._system.get_file_info([self._at(name) for name in names]))

    def remove(self, names: Sequence[str]) -> None:
        """Remove files; those that are gone already do not matter."""
        for name in names:
            with suppress(OSError):
                self._system.delete_file(self._at(name))

    def remove_all(self) -> None:
        """Remove the folder and everything in it."""
        with suppress(OSError):
            self._system.delete_dir(self._path)

    def write_json(self, name: str, content: Any) -> None:
        """Replace a file in one step."""
        unfinished = self._at(f"{name}.{uuid.uuid4().hex}.unfinished")
        with self._system.open_output_stream(unfinished) as file:
            file.write(json.dumps(content).encode())
        self._system.move(unfinished, self._at(name))

    def read_json(self, name: str) -> Any:
        with self._system.open_input_stream(self._at(name)) as file:
            return json.loads(file.read())

    def write_states(self, kind: str, partition: int, packed: Packed, size: int, count: int) -> str:
        """Write packed states of `size` bytes each; returns the name of the file."""
        values = pyarrow.FixedSizeBinaryArray.from_buffers(
            pyarrow.binary(size), count, [None, pyarrow.py_buffer(packed[: count * size])]
        )
        return self.write_table(kind, partition, pyarrow.table({COLUMN: values}), packed=True)

    def write_table(self, kind: str, partition: int, table: pyarrow.Table, packed: bool = False) -> str:
        """Write a table to a new file; returns its name."""
        name = f"{kind}/part-{partition:05d}-{uuid.uuid4().hex}.parquet"
        settings: dict[str, Any] = {"compression": "zstd"}
        if packed:  # sorted states shrink to a fraction with the bytes of one place together; nobody searches them
            settings = {"compression": "lz4", "use_dictionary": False, "write_statistics": False}
            settings["column_encoding"] = {COLUMN: "BYTE_STREAM_SPLIT"}
        self._system.create_dir(self._at(kind), recursive=True)
        with self._system.open_output_stream(self._at(name)) as file:
            pyarrow.parquet.write_table(table, file, row_group_size=ROWS_PER_GROUP, **settings)
        return name

    def metadata(self, name: str) -> dict[bytes, bytes]:
        """The metadata in a table's schema, besides its columns."""
        with self._system.open_input_file(self._at(name)) as file:
            return dict(pyarrow.parquet.read_schema(file).metadata or {})

    def read(self, piece: Piece) -> tuple[Packed, int]:
        """The packed states of a piece, and how many bytes each has."""
        with self._system.open_input_file(self._at(piece.file)) as file:
            parquet = pyarrow.parquet.ParquetFile(file)
            size = parquet.schema_arrow.field(COLUMN).type.byte_width
            packed = np.zeros(piece.states * size + PADDING, np.uint8)
            for group, begin, end in _groups(parquet, piece):
                column = parquet.read_row_group(group, columns=[COLUMN], use_threads=False).column(COLUMN)
                _copy(column.slice(begin[0], begin[1]), size, packed[end:])
        return packed, size

    def _at(self, name: str) -> str:
        return f"{self._path}/{name}"


def _groups(parquet: Any, piece: Piece) -> Iterator[tuple[int, tuple[int, int], int]]:
    """The row groups of a piece: number, first row and number of rows in it; and how many bytes lie before them."""
    size, at, done = parquet.schema_arrow.field(COLUMN).type.byte_width, 0, 0
    for group in range(parquet.num_row_groups):
        rows = parquet.metadata.row_group(group).num_rows
        low, high = max(piece.begin - at, 0), min(piece.begin + piece.states - at, rows)
        if low < high:
            yield group, (low, high - low), done * size
            done += high - low
        at += rows


def _copy(column: Any, size: int, out: Packed) -> None:
    at = 0
    for chunk in column.chunks:
        values = np.frombuffer(chunk.buffers()[1], np.uint8)[chunk.offset * size : (chunk.offset + len(chunk)) * size]
        out[at : at + values.size] = values
        at += values.size
