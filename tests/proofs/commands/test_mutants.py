"""The command that writes the tables of mutants: rows of other mutants stay."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kspec.proofs.commands import mutants
from kspec.proofs.commands.mutants import TriedMutant
from kspec.proofs.theorems import THEOREMS

KNOWN = list(THEOREMS["kafka-next"].mutants)


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of two mutants, one of which is no more; every mutant that is tried now changes `Produce`."""
    file = tmp_path / "table.json"
    file.write_text(json.dumps([{"mutant": KNOWN[3]}, {"mutant": "of-old"}, {"mutant": KNOWN[2]}]))

    def found(theorem: str, names: Sequence[str]) -> Iterator[TriedMutant]:
        yield from (TriedMutant(name, ("Produce(leader=1)",)) for name in names)

    monkeypatch.setattr(mutants, "found", found)
    return file


def table(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["mutants", "kafka-next", *arguments])
    mutants.main()


def test_rows_of_others_stay_in_the_order_of_mutants(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(monkeypatch, "--write", str(written), KNOWN[3], KNOWN[0])
    rows = json.loads(written.read_text())
    assert [row["mutant"] for row in rows] == [KNOWN[0], KNOWN[2], KNOWN[3]]
    assert [row.get("different") for row in rows] == [["Produce(leader=1)"], None, ["Produce(leader=1)"]]


def test_without_names_all_are_tried_anew(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(monkeypatch, "--write", str(written))
    assert [row["mutant"] for row in json.loads(written.read_text())] == KNOWN


def test_an_unknown_mutant_is_bad_usage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        table(monkeypatch, "no-such-mutant")
    assert "no mutant is called no-such-mutant" in capsys.readouterr().err
