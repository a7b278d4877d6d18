"""The choice of runs for weakened rules that no case tells."""

from collections.abc import Sequence

from kspec.conformance.wire.choice.boundaries import BoundaryRun, boundary_runs, taken
from kspec.conformance.wire.choice.cover import SelectedRun, with_looks
from kspec.conformance.wire.model.subject import Subject
from kspec.conformance.wire.model.subjects import SUBJECTS
from kspec.model_check.search.ways import covering
from kspec.spec.releases.broker import NEWEST
from tests.conformance.wire.power.weakening import MISSED, WeakeningFinding, Weakenings

BY_NAME = {one.name: one for one in SUBJECTS}


def chosen(findings: Sequence[WeakeningFinding], weakenings: Weakenings) -> dict[str, list[BoundaryRun]]:
    """The runs to boundaries by subject, those that are kept and further ones: those that tell most first."""
    missed = [one for one in findings if one.verdict == MISSED]
    runs = {_key(one): _run(one) for one in missed}
    told = {
        key: {number for number, one in enumerate(missed) if one.subject == key[0] and weakenings.is_told_by(one.bug, run)}
        for key, run in runs.items()
    }
    found = {subject: list(those) for subject, those in boundary_runs().items()}
    order = sorted(told, key=lambda key: (-len(told[key]), len(key[1]), key))
    ways = ((number, key) for key in order for number in sorted(told[key]))
    for key, _ in covering(ways, told.__getitem__):
        found.setdefault(key[0], []).append(BoundaryRun(runs[key].boundary, key[1]))
    return found


def _key(finding: WeakeningFinding) -> tuple[str, tuple[str, ...]]:
    return finding.subject, finding.moves


def _run(finding: WeakeningFinding) -> SelectedRun:
    subject: Subject = BY_NAME[finding.subject]
    return with_looks(SelectedRun(subject, taken(subject, finding.moves, NEWEST), boundary=finding.rule), NEWEST)
