"""The suite as one file, apart from the code that makes it: an archive (`.tar.gz`) of the index and a file for each case.

The same suite gives the same bytes. What is read is not trusted: an archive comes from anywhere.
"""

import gzip
import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

from kspec.conformance.wire.cases.document import FORMAT
from kspec.conformance.wire.cases.suite import SuiteContent, digest_of, plain_json

MOST_BYTES = 1 << 28
"""The most that is read of an archive, unpacked."""

FOLDER = "level-0"


class ArchiveError(Exception):
    """A file that is no archive of cases: one line."""


def archived(suite: SuiteContent) -> bytes:
    """The archive of a suite."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in suite.files():
            data = plain_json(content).encode() + b"\n"
            entry = tarfile.TarInfo(f"{FOLDER}/{name}")
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(packed.getvalue(), 9, mtime=0)


def read_archive(path: Path) -> SuiteContent:
    """The suite of an archive. Raises: `ArchiveError`."""
    try:
        with gzip.open(path) as unpacked:
            data = unpacked.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ArchiveError(f"{path}: more than {MOST_BYTES} bytes")
        return _suite_of(path, _files_of(data))
    except OSError as error:
        raise ArchiveError(f"{path}: {error.strerror or error}") from error
    except (EOFError, ValueError, KeyError, TypeError, tarfile.TarError) as error:
        raise ArchiveError(f"{path} is no archive of cases: {_line(error)}") from error


def _files_of(data: bytes) -> dict[str, Any]:
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for entry in archive:
            content = archive.extractfile(entry) if entry.isfile() else None
            if content is not None:
                found[entry.name.removeprefix(f"{FOLDER}/")] = json.loads(content.read())
    return found


def _suite_of(path: Path, files: dict[str, Any]) -> SuiteContent:
    index = files["index.json"]
    if index["format"] != FORMAT:
        raise ArchiveError(f"{path}: its cases have format {index['format']}, and {FORMAT} is known here")
    documents = [files[entry["file"]] for entry in index["cases"]]
    if digest_of(documents) != index["suite"]["digest"]:
        raise ArchiveError(f"{path}: the cases are not those that its index tells of")
    return SuiteContent(index, documents)


def _line(error: Exception) -> str:
    return f"there is no {error}" if isinstance(error, KeyError) else re.sub(r"\s+", " ", str(error)) or type(error).__name__
