"""The suite made anew: the runs that are chosen in the models, and the case of each."""

from functools import cache

from kspec.conformance.wire.cases.case import Case, cases_of
from kspec.conformance.wire.cases.document import document_of, file_of, index_of
from kspec.conformance.wire.cases.suite import SuiteContent, digest_of
from kspec.conformance.wire.cases.versions import cases_of_versions
from kspec.conformance.wire.choice.cover import SelectedRun, chosen_runs
from kspec.conformance.wire.model.subjects import SUBJECTS
from kspec.model_check.version import VERSION
from kspec.spec.releases.broker import NEWEST
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS


@cache
def all_runs() -> tuple[SelectedRun, ...]:
    """The chosen runs, in order of subject and length."""
    return tuple(chosen_runs(SUBJECTS, NEWEST, BROKER_MUTANTS))


@cache
def all_cases() -> tuple[Case, ...]:
    """The cases: one for each run, and those of older versions of requests."""
    chosen = cases_of(all_runs(), NEWEST, BROKER_MUTANTS)
    of_versions = cases_of_versions(all_runs(), NEWEST)
    names = {one.name: number for number, one in enumerate(SUBJECTS)}
    return tuple(sorted((*chosen, *of_versions), key=lambda one: names[one.subject]))


def generated() -> SuiteContent:
    """The suite, made anew."""
    documents = [document_of(case, NEWEST.name) for case in all_cases()]
    index = index_of(all_cases(), [file_of(one["name"]) for one in documents])
    return SuiteContent(index | {"suite": {"version": VERSION, "digest": digest_of(documents)}}, documents)
