"""The mutants that the simulation catches, again: `python -m tests.simulation.mutants` finds them."""

from pathlib import Path

import pytest

from tests.simulation.mutants import MUTANTS, PAGE, catches, hunt, main, page, write

SOON = 6000
"""Moves within which a mutant is caught again here."""


def test_at_least_fifteen_are_caught() -> None:
    assert len(catches()) >= 15
    assert set(catches()) <= {mutant.name for mutant in MUTANTS}


def test_the_page_says_what_the_file_says(tmp_path: Path) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(catches())
    file, text = tmp_path / "found.json", tmp_path / "found.md"
    write(catches(), file, text)
    assert text.read_text(encoding="utf-8") == page(catches())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, catch in catches().items() if catch["moves"] <= SOON])
def test_it_is_caught_as_before(name: str) -> None:
    catch = catches()[name]
    assert hunt(name, catch["seed"], catch["moves"]) == catch


def test_a_mutant_that_is_not_there(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["mutants", "made-up"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "no mutant is called made-up" in capsys.readouterr().err
