"""Choice of the cases that a command takes, and their score against weakened rules."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kspec.cli.common import unknown

if TYPE_CHECKING:
    from kspec.conformance.wire.cases.suite import SuiteContent
    from kspec.conformance.wire.choice.weakened import RuleScore


def suite(archive: str | None = None) -> "SuiteContent":
    """The suite: that of an archive, or of this version. Raises: bad usage."""
    from kspec.conformance.wire.cases.archive import ArchiveError, read_archive
    from kspec.conformance.wire.cases.kept import whole_suite

    if archive is None:
        return whole_suite(_tell_of_making)
    try:
        return read_archive(Path(archive))
    except ArchiveError as error:
        raise click.UsageError(str(error)) from error


def _tell_of_making() -> None:
    click.echo("The cases are drawn from the models once, which takes some ten seconds, and are kept.", err=True)


def chosen(wanted: str | None, release: str | None = None, archive: str | None = None) -> Sequence[Any]:
    """The cases with a name, or with a name that begins so, and which hold for a release."""
    from kspec.spec.releases.names import RELEASES

    whole = suite(archive)
    documents = whole.documents if wanted is None else [whole.documents[at] for at in places_of(wanted, whole)]
    if release is None:
        return documents
    until = RELEASES.index(release)
    return [one for one in documents if one["since"] is None or RELEASES.index(one["since"]) <= until]


def titles(wanted: str | None) -> Iterator[tuple[str, str]]:
    """Name and title of the cases with a name, or with a name that begins so. No case is read for it."""
    whole = suite()
    entries = whole.contents["cases"]
    for entry in entries if wanted is None else [entries[at] for at in places_of(wanted, whole)]:
        yield entry["name"], entry["title"]


def places_of(wanted: str, whole: "SuiteContent") -> list[int]:
    """The places of the cases with a name, or with a name that begins so. Raises: bad usage, where there are none."""
    found = whole.places(wanted)
    if not found:
        raise unknown(f"there is no case {wanted!r}", wanted, whole.names, "kspec conformance list")
    return found


def scored() -> "list[tuple[RuleScore, list[str]]]":
    """Each weakened rule, and the names of the cases that tell it."""
    from kspec.conformance.wire.cases.case import named
    from kspec.conformance.wire.cases.generation import all_runs
    from kspec.conformance.wire.choice.weakened import scores
    from kspec.conformance.wire.model.subjects import SUBJECTS
    from kspec.spec.releases.broker import NEWEST
    from kspec.spec.releases.broker_mutants import BROKER_MUTANTS

    found = scores(SUBJECTS, all_runs(), NEWEST, BROKER_MUTANTS)
    names = {id(run): name for name, run in named(all_runs())}
    return [(one, [names[id(run)] for run in one.told]) for one in found]
