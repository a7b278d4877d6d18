"""Which cases a command takes, and what they tell of weakened rules."""

from typing import TYPE_CHECKING, Any

from model_check.cli.common import unknown

if TYPE_CHECKING:
    from conformance.wire.choice.weakened import Score


def chosen(wanted: str | None, release: str | None = None) -> list[Any]:
    """The cases with a name, or with a name that begins so, and which hold for a release."""
    from conformance.wire.cases.suite import all_documents
    from spec.releases.names import RELEASES

    documents = all_documents()
    if wanted is not None:
        exact = [one for one in documents if one["name"] == wanted]
        found = exact or [one for one in documents if one["name"].startswith(wanted)]
        if not found:
            names = [one["name"] for one in documents]
            raise unknown(f"there is no case {wanted!r}", wanted, names, "kspec conformance list")
        documents = found
    if release is None:
        return documents
    until = RELEASES.index(release)
    return [one for one in documents if one["since"] is None or RELEASES.index(one["since"]) <= until]


def scored() -> "list[tuple[Score, list[str]]]":
    """Each weakened rule, and the names of the cases that tell it."""
    from conformance.wire.cases.case import name_of
    from conformance.wire.cases.suite import all_runs
    from conformance.wire.choice.weakened import scores
    from conformance.wire.model.subjects import SUBJECTS
    from spec.releases.broker import NEWEST
    from spec.releases.broker_mutants import BROKER_MUTANTS

    found = scores(SUBJECTS, all_runs(), NEWEST, BROKER_MUTANTS)
    return [(one, [name_of(run.subject, run.run[-1]) for run in one.told]) for one in found]
