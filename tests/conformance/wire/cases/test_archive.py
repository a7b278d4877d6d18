"""The suite as one file: the same bytes each time, and nothing else is taken for one."""

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kspec.conformance.wire.cases.archive import ArchiveError, archived, read_archive
from kspec.conformance.wire.cases.kept import whole_suite
from kspec.conformance.wire.cases.suite import SuiteContent
from tests.conformance.wire.targets import kspec

pytestmark = pytest.mark.slow


def test_an_archive_has_the_suite_and_is_always_the_same(tmp_path: Path) -> None:
    file = tmp_path / "cases.tar.gz"
    file.write_bytes(archived(whole_suite()))
    assert read_archive(file) == whole_suite()
    assert archived(read_archive(file)) == file.read_bytes()


def packed(files: dict[str, Any]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content in files.items():
            text = json.dumps(content).encode()
            entry = tarfile.TarInfo(f"level-0/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
    return gzip.compress(data.getvalue())


def few() -> SuiteContent:
    """The suite with only its first cases, and so with another digest than it says."""
    whole = whole_suite()
    return SuiteContent(whole.contents | {"cases": whole.contents["cases"][:9]}, whole.documents[:9])


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "is no archive of cases"),
    "text": (lambda: b"cases", "Not a gzipped file"),
    "cut": (lambda: archived(few())[:5000], "is no archive of cases"),
    "no tar": (lambda: gzip.compress(b"cases" * 400), "is no archive of cases"),
    "no index": (lambda: packed({"a.json": {}}), "there is no 'index.json'"),
    "a list": (lambda: packed({"index.json": []}), "is no archive of cases"),
    "another format": (lambda: packed({"index.json": {"format": 2}}), "its cases have format 2, and 6 is known here"),
    "a case is missing": (
        lambda: packed({"index.json": {"format": 6, "cases": [{"file": "a.json"}]}}),
        "there is no 'a.json'",
    ),
    "other cases": (lambda: archived(few()), "the cases are not those that its index tells of"),
    "zeros": (lambda: gzip.compress(bytes(300 << 20), 1), "more than 268435456 bytes"),
}
"""Files that are no archive, made when they are asked for, and the words in which each is refused."""


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_archive_is_told_in_one_line(tmp_path: Path, name: str) -> None:
    make, why = BAD[name]
    file = tmp_path / "cases.tar.gz"
    file.write_bytes(make())
    with pytest.raises(ArchiveError) as told:
        read_archive(file)
    assert why in str(told.value)
    assert str(file) in str(told.value)
    assert "\n" not in str(told.value)


def test_the_command_writes_it_and_runs_it(tmp_path: Path) -> None:
    file = tmp_path / "cases.tar.gz"
    done = kspec("conformance", "generate", "--archive", str(file))
    assert done.status == 0, done.err
    assert f"{len(whole_suite().documents)} cases, suite " in done.out
    done = kspec("conformance", "run", "--bootstrap-server", "127.0.0.1:1", "--cases", str(file), "--case", "no/such")
    assert (done.status, "there is no case 'no/such'" in done.err) == (2, True)
    done = kspec("conformance", "run", "--bootstrap-server", "127.0.0.1:1", "--cases", str(tmp_path / "none"))
    assert (done.status, "No such file" in done.err) == (2, True)
    assert kspec("conformance", "generate").status == 2
