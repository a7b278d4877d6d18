"""The suite: all cases of level 0, by the rules of the newest release. It is kept once it is made."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from kspec.conformance.wire.cases.case import Case, cases_of
from kspec.conformance.wire.cases.document import Json, document_of, file_of, index_of
from kspec.conformance.wire.cases.kept import kept_text
from kspec.conformance.wire.cases.versions import cases_of_versions
from kspec.conformance.wire.choice.cover import SelectedRun, chosen_runs
from kspec.conformance.wire.model.subjects import SUBJECTS
from kspec.model_check.version import VERSION
from kspec.spec.releases.broker import NEWEST
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS


class SuiteContent(NamedTuple):
    """The content of `index.json`, and the cases as JSON; nobody changes them."""

    contents: Json
    documents: list[Json]

    @property
    def title(self) -> str:
        """The version, and the beginning of the digest, by which people tell suites apart."""
        return f"suite {self.contents['suite']['version']} ({self.contents['suite']['digest'][:12]})"

    def files(self) -> Iterable[tuple[str, Json]]:
        """The names of all files and what is in them, the index first."""
        yield "index.json", self.contents
        for entry, document in zip(self.contents["cases"], self.documents, strict=True):
            yield entry["file"], document


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


def digest_of(documents: Sequence[Json]) -> str:
    """The SHA-256 of cases: what a suite is told apart by."""
    return hashlib.sha256("\n".join(map(plain_json, documents)).encode()).hexdigest()


def plain_json(value: Any) -> str:
    """A value as JSON in one line, always the same."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


@cache
def whole_suite(when_made: Callable[[], None] = lambda: None) -> SuiteContent:
    """The suite. It is taken from what was kept, unless something that it is made from has changed.

    `when_made` is called before it is made anew, which takes some seconds.
    """

    def make() -> str:
        when_made()
        return json.dumps(generated()._asdict())

    return SuiteContent(**json.loads(kept_text(make)))


def all_documents() -> list[Json]:
    """The cases as JSON; nobody changes them."""
    return whole_suite().documents
