"""The files of the live page: the rooms, found by their imports, and Pyodide, fetched once and pinned to its content."""

import base64
import gzip
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from kspec.cli.explorer import npm
from kspec.cli.explorer.live import NEED_THESE, NOT_NEEDED, is_needed, lighter_library, lighter_list, write_worker
from kspec.cli.explorer.npm import Package, PackageError, cache_folder
from kspec.cli.explorer.rooms import imported_by, modules_behind, rooms_zip

ALONE = """
import sys
sys.path.insert(0, sys.argv[1])
from kspec.model_check.explorer import Explorer
import kspec
assert kspec.__file__.startswith(sys.argv[1]), kspec.__file__
explorer = Explorer()
for model in explorer.answer({"do": "models"})["models"]:
    view = explorer.answer({"do": "start", "model": model["name"], "parameters": {}})
    move = next(one for one in view["moves"] if one["enabled"])
    assert explorer.answer({"do": "step", "index": move["index"]})["position"] == 2
others = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - {"kspec", "__main__"}
print(sorted(others))
"""


@pytest.mark.slow
def test_the_rooms_run_without_anything_else(tmp_path: Path) -> None:
    zipfile.ZipFile(io.BytesIO(rooms_zip())).extractall(tmp_path / "rooms")
    command = [sys.executable, "-I", "-S", "-c", ALONE, str(tmp_path / "rooms")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


@pytest.mark.slow
def test_the_same_sources_make_the_same_archive() -> None:
    assert rooms_zip() == rooms_zip()
    assert len(rooms_zip()) < 1_000_000


def test_what_the_explorer_does_not_import_is_not_in_it() -> None:
    modules = modules_behind()
    assert "kspec.spec.broker.rules" in modules
    assert "kspec.model_check.engines.reference" in modules
    for room in ("kspec.impl", "kspec.proofs", "kspec.conformance", "kspec.cli", "kspec.model_check.engines.compiled"):
        assert not [name for name in modules if name == room or name.startswith(f"{room}.")]


def test_python_s_library_is_lighter_and_what_is_left_is_as_it_was() -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as written:
        for name in ("json/", "json/decoder.py", "email/parser.py", "pdb.py", "encodings/utf_8.py", "encodings/cp1140.py"):
            written.writestr(name, "" if name.endswith("/") else f"# {name}\n" * 9)
    with zipfile.ZipFile(io.BytesIO(lighter_library(whole.getvalue()))) as kept:
        assert kept.namelist() == ["json/", "json/decoder.py", "encodings/utf_8.py"]
        assert kept.read("json/decoder.py") == b"# json/decoder.py\n" * 9
        assert kept.testzip() is None


def test_the_list_of_packages_says_of_which_python_it_is_and_names_no_package() -> None:
    lock = json.dumps({"info": {"python": "3.14.2"}, "packages": {"numpy": {}}}).encode()
    assert json.loads(lighter_list(lock)) == {"info": {"python": "3.14.2"}, "packages": {}}


def test_no_room_imports_what_the_worker_does_without() -> None:
    """Neither at once nor within a function: nothing fails on a site that works elsewhere."""
    imported = {name for module, path in modules_behind().items() for name in imported_by(path, module)}
    assert {"json", "re"} <= imported
    assert {name.partition(".")[0] for name in imported} & NOT_NEEDED == set()
    assert {name.replace(".", "/") for name in imported} & NEED_THESE == set()


@pytest.mark.slow
def test_the_library_of_the_worker_is_the_whole_one_without_what_is_named(tmp_path: Path) -> None:
    """Each name is that of a module of the whole library, so none is a mistake."""
    try:
        write_worker(tmp_path)
        whole = npm.PYODIDE.folder() / "python_stdlib.zip"
    except PackageError as error:
        pytest.skip(f"NOT RUN: {error}")
    names = zipfile.ZipFile(whole).namelist()
    tops = {name.partition("/")[0].removesuffix(".py") for name in names}
    kept = zipfile.ZipFile(tmp_path / "pyodide" / "python_stdlib.zip").namelist()
    assert kept == [name for name in names if is_needed(name)]
    assert tops >= NOT_NEEDED
    assert {name.removesuffix(".py") for name in names} >= NEED_THESE
    assert (tmp_path / "pyodide" / "python_stdlib.zip").stat().st_size < 1_200_000
    program = (npm.PYODIDE.folder() / npm.PYODIDE_PROGRAM).read_bytes()
    assert gzip.decompress((tmp_path / "pyodide" / f"{npm.PYODIDE_PROGRAM}.packed").read_bytes()) == program


def archive(files: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as packed:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return written.getvalue()


@pytest.fixture
def npm_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a program `npm`, which tests write, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def say(folder: Path, script: str) -> None:
    (folder / "npm").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "npm").chmod(0o755)


def test_a_package_is_fetched_once(npm_with: Path) -> None:
    content = archive({"package/a.js": b"1", "package/b/c.js": b"2"})
    (npm_with / "kept.tgz").write_bytes(content)
    say(npm_with, f"cp {npm_with}/kept.tgz thing-1.0.0.tgz")
    package = Package("thing", "1.0.0", "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode())
    folder = package.folder()
    assert ((folder / "a.js").read_text(), (folder / "b" / "c.js").read_text()) == ("1", "2")
    say(npm_with, "exit 1")
    assert package.folder() == folder
    assert [path.name for path in cache_folder().iterdir()] == ["thing-1.0.0"]


def test_a_package_of_another_content_is_refused(npm_with: Path) -> None:
    (npm_with / "kept.tgz").write_bytes(archive({"package/a.js": b"evil"}))
    say(npm_with, f"cp {npm_with}/kept.tgz thing-1.0.0.tgz")
    with pytest.raises(PackageError, match=r"thing@1\.0\.0 is not what it was"):
        Package("thing", "1.0.0", "sha512-AAAA").folder()
    assert list(cache_folder().iterdir()) == []


def test_a_package_that_cannot_be_fetched_is_one_line(npm_with: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    thing = Package("thing", "1.0.0", "sha512-AAAA")
    say(npm_with, "echo 'npm error network down' >&2; echo more >&2; exit 1")
    with pytest.raises(PackageError, match=r"cannot fetch thing@1\.0\.0: npm error network down$"):
        thing.folder()
    say(npm_with, "exit 0")
    with pytest.raises(PackageError, match="it says nothing"):
        thing.folder()
    monkeypatch.setattr(npm, "FETCHING_S", 0.2)
    say(npm_with, "exec sleep 20")
    with pytest.raises(PackageError, match=r"within 0\.2 s"):
        thing.folder()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PackageError, match="npm, which is not installed"):
        thing.folder()
