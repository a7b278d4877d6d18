"""The page of the benchmarks: who repeats the command that a section names gets the section."""

import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import engines


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(engines, "HERE", tmp_path)
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__spec__=find_spec("benchmarks.kafka")))
    return tmp_path / "README.md"


def test_a_section_begins_with_the_whole_command(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["kafka.py", "--rungs", "3", "--tlc-seconds", "100", "--name", "4 million"])
    engines.write_readme("rungs", "Measured.\n")
    written = "## rungs\n\n`python -m benchmarks.kafka --rungs 3 --tlc-seconds 100 --name '4 million'`\n\nMeasured.\n"
    assert page.read_text().endswith(written)


def test_a_section_replaces_itself_alone(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["kafka.py"])
    for name, text in (("b", "old\n"), ("a", "\n| table |\n\n"), ("c", "last\n"), ("b", "new\n")):
        engines.write_readme(name, text)
    command = "`python -m benchmarks.kafka`"
    sections = [f"## {name}\n\n{command}\n\n{text}\n" for name, text in (("a", "\n| table |"), ("b", "new"), ("c", "last"))]
    assert page.read_text().partition("\n\n## ")[2] == "\n".join(sections).removeprefix("## ")


def test_the_page_is_as_it_would_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sections corrected by hand keep the form."""
    page = Path(engines.__file__).parent / "README.md"
    monkeypatch.setattr(engines, "HERE", tmp_path)
    monkeypatch.setattr(engines, "command_line", lambda: "python -m benchmarks.large")
    (tmp_path / "README.md").write_text(page.read_text())
    large = page.read_text().partition("## large\n\n`python -m benchmarks.large`\n\n")[2].partition("## ")[0]
    engines.write_readme("large", large)
    assert (tmp_path / "README.md").read_text() == page.read_text()
