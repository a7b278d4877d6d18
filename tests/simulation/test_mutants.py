"""The mutants that the simulation catches, again: `python -m tests.simulation.mutants` finds them."""

from pathlib import Path

import pytest

from tests.simulation.mutants import MUTANTS, PAGE, hunt, kills, main, page, write

SOON = 6000
"""Moves within which a mutant is caught again here."""


def test_at_least_fifteen_are_caught() -> None:
    assert len(kills()) >= 15
    assert set(kills()) <= {mutant.name for mutant in MUTANTS}


def test_the_page_says_what_the_file_says(tmp_path: Path) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(kills())
    file, text = tmp_path / "found.json", tmp_path / "found.md"
    write(kills(), file, text)
    assert text.read_text(encoding="utf-8") == page(kills())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, kill in kills().items() if kill["moves"] <= SOON])
def test_it_is_caught_as_before(name: str) -> None:
    kill = kills()[name]
    assert hunt(name, kill["seed"], kill["moves"]) == kill


def test_a_mutant_that_is_not_there(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["mutants", "made-up"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "no mutant is called made-up" in capsys.readouterr().err
