"""A suite is kept by the digest of its sources, and made anew where the file is not whole."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from kspec.conformance.wire.cases import kept
from kspec.conformance.wire.cases.suite import SuiteContent
from tests.limits.marks import NIGHTLY, SLOW
from tests.places import REPOSITORY

MAKE = """
import sys
from kspec.conformance.wire.cases.generation import generated
if sys.argv[1:]:
    generated()
print(*sorted(one.__file__ for name, one in sys.modules.items() if name.startswith("kspec.") and one.__file__), sep="\\n")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "kspec" / "level-0"


def maker(made: list[str]) -> Callable[[], str]:
    def make() -> str:
        made.append("made")
        return "a text\nof two lines"

    return make


def test_what_is_kept_is_not_made_again(folder: Path) -> None:
    made: list[str] = []
    assert not kept.is_kept()
    assert [kept.kept_text(maker(made)) for _ in range(3)] == ["a text\nof two lines"] * 3
    assert (made, kept.is_kept()) == (["made"], True)
    assert [one.name for one in folder.iterdir()] == [kept.digest()]


@pytest.mark.parametrize("spoilt", [b"", b"a text\nof two lines", b"\xff\xfe"])
def test_what_was_spoilt_is_made_again(folder: Path, spoilt: bytes) -> None:
    made: list[str] = []
    kept.kept_text(maker(made))
    (folder / kept.digest()).write_bytes(spoilt)
    assert kept.kept_text(maker(made)) == "a text\nof two lines"
    assert kept.kept_text(maker(made)) == "a text\nof two lines"
    assert len(made) == 2


def test_several_that_ask_at_once_make_it_once(folder: Path) -> None:
    made: list[str] = []
    began, may_end = Event(), Event()

    def make() -> str:
        began.set()
        assert may_end.wait(60)
        return maker(made)()

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(kept.kept_text, make)
        assert began.wait(60)
        others = [pool.submit(kept.kept_text, make) for _ in range(2)]
        may_end.set()
        assert [one.result(60) for one in (first, *others)] == ["a text\nof two lines"] * 3
    assert made == ["made"]


def test_other_sources_are_another_text(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = tmp_path / "spec" / "rule.py"
    source.parent.mkdir()
    monkeypatch.setattr(kept, "ROOT", tmp_path)
    found = []
    for text in ("a = 1", "a = 2", "a = 1"):
        source.write_text(text, encoding="utf-8")
        kept.digest.cache_clear()
        found.append(kept.digest())
    source.rename(source.with_name("other.py"))
    kept.digest.cache_clear()
    found.append(kept.digest())
    kept.digest.cache_clear()
    assert found[0] == found[2]
    assert len(set(found)) == 3


def test_where_nothing_can_be_kept_it_is_made_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    made: list[str] = []
    assert [kept.kept_text(maker(made)) for _ in range(2)] == ["a text\nof two lines"] * 2
    assert len(made) == 2


def test_former_contents_are_removed(folder: Path) -> None:
    folder.mkdir(parents=True)
    for number in range(10):
        (folder / f"old-{number}").write_text("", encoding="utf-8")
    kept.kept_text(lambda: "new")
    names = {one.name for one in folder.iterdir()}
    assert len(names) == kept.MOST_KEPT
    assert kept.digest() in names


@pytest.mark.parametrize("doing", [(), pytest.param(("make",), marks=[SLOW, NIGHTLY])])
def test_cases_are_made_from_these_sources_and_no_others(doing: tuple[str, ...]) -> None:
    """All that the generator imports is in the digest, and the data beside it; also what it imports as it makes them."""
    command = [sys.executable, "-c", MAKE, *doing]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY, timeout=600)
    read = {Path(line).resolve() for line in done.stdout.splitlines()}
    packages = {REPOSITORY / room / "__init__.py" for room in ("conformance", "impl", "model_check", "spec", "kspec")}
    known = {one.resolve() for one in kept.sources()}
    assert read - packages - known == set()
    assert any(one.name == "messages.json" for one in known)


def test_the_list_begins_without_making_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`kspec conformance list` takes what is kept."""
    case = {"name": "a/case", "title": "A case."}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept.kept_text(SuiteContent({"cases": [case]}, [case]).as_text)
    code = "from kspec.cli.start import main; main()"
    command = [sys.executable, "-c", code, "conformance", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert (done.stdout, done.stderr) == ("a/case\n    A case.\n", "")
