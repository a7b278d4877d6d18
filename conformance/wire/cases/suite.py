"""The suite: all cases of level 0, by the rules of the newest release."""

from functools import cache

from conformance.wire.cases.case import Case, cases_of
from conformance.wire.cases.document import Json, document_of
from conformance.wire.choice.cover import Chosen, chosen_runs
from conformance.wire.model.subjects import SUBJECTS
from spec.releases.broker import NEWEST
from spec.releases.broker_mutants import BROKER_MUTANTS


@cache
def all_runs() -> tuple[Chosen, ...]:
    """The chosen runs, in order of subject and length."""
    return tuple(chosen_runs(SUBJECTS, NEWEST, BROKER_MUTANTS))


@cache
def all_cases() -> tuple[Case, ...]:
    """The cases, one for each run."""
    return tuple(cases_of(all_runs(), NEWEST, BROKER_MUTANTS))


@cache
def all_documents() -> list[Json]:
    """The cases as JSON; nobody changes them."""
    return [document_of(case, NEWEST.name) for case in all_cases()]
