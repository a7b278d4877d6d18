"""The lint finds what it is for, and nothing in the rules."""

from pathlib import Path

import pytest

from kspec import spec
from kspec.proofs.lint import CARRIERS, FORMATS, complaints, complaints_about_rules

FOLDER = Path(spec.__path__[0])


def test_nothing_in_the_rules() -> None:
    assert complaints_about_rules(FOLDER) == []


def test_the_carriers_are_files() -> None:
    assert all((FOLDER / name).exists() for name in (*CARRIERS, *FORMATS))


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("a is b", "compares values by identity"),
        ("log is not EMPTY_LOG", "compares values by identity"),
        ("hash(role)", "calls hash"),
        ("isinstance(end_offset, int)", "calls isinstance"),
        ("int(epoch)", "calls int"),
        ("[o for o in range(log.end_offset)]", "calls range"),
        ("{log.end_offset: 1}", "keeps a dictionary by offset or epoch"),
        ("{Offset(end): end for end in ends}", "keeps a dictionary by offset or epoch"),
        ("def f(ends: dict[Offset, int]): pass", "keeps a dictionary by offset or epoch"),
        ("{high_watermark, 2}", "keeps a set of offsets or epochs"),
        ("{entry.leader_epoch for entry in entries}", "keeps a set of offsets or epochs"),
        ("def f(seen: frozenset[Epoch]): pass", "keeps a set of offsets or epochs"),
        ("records[offset]", "takes an index from an offset or epoch"),
        ("records[offset - log.start_offset]", "takes an index from an offset or epoch"),
        ("records[:end_offset]", "takes an index from an offset or epoch"),
    ],
)
def test_the_lint_finds(source: str, complaint: str) -> None:
    assert [found.split(":")[0] for found in complaints(source)] == [complaint]


@pytest.mark.parametrize(
    "source",
    [
        "a is None",
        "def f(ends: dict[BrokerId, Offset]): return min(ends[replica] for replica in isr)",
        "frozenset({candidate})",
        "min(high_watermark, log.end_offset)",
        "claimed in (NO_EPOCH, role.leader_epoch)",
    ],
)
def test_the_lint_passes(source: str) -> None:
    assert list(complaints(source)) == []
