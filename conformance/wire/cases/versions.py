"""Cases of older versions of requests: each version of each request is the last one of some case.

A run of the suite is in the newest versions that its target offers, so that a bug in an older one would not show. A case
of an older version is a run to a request that is answered without an error, and its last request is of this version alone.
"""

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import NamedTuple

from kspec.conformance.wire.cases.case import Case, case_of, holes_in
from kspec.conformance.wire.cases.document import versions_with
from kspec.conformance.wire.cases.encoding import versions_of
from kspec.conformance.wire.choice.cover import SelectedRun, with_looks
from kspec.conformance.wire.choice.graph import GraphStep
from kspec.conformance.wire.exchange import Exchange, RequestEnding
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.values import Error


class VersionPlace(NamedTuple):
    """A version of an API."""

    api: str
    version: int


def runs_of_versions(runs: Sequence[SelectedRun]) -> dict[VersionPlace, SelectedRun]:
    """A run for each version of each request but the newest: the one whose last answer is looked at most.

    Of those that are alike the longest, which has the most to tell, and then the first.
    """
    best: dict[VersionPlace, tuple[int, SelectedRun]] = {}
    for run in runs:
        for length, step in _ends(run):
            known = versions_of(step.exchange.request)
            for version in range(known.first, known.last + 1):
                place = VersionPlace(step.exchange.request.api, version)
                weight = 100 * _fields(step.exchange, version) + length
                if place not in best or weight > best[place][0]:
                    best[place] = weight, SelectedRun(run.subject, run.run[:length])
    newest = {one.api: max(other.version for other in best if other.api == one.api) for one in best}
    return {place: run for place, (_, run) in sorted(best.items()) if place.version < newest[place.api]}


def _ends(run: SelectedRun) -> Iterator[tuple[int, GraphStep]]:
    """The steps at which a run may end: answered at once and without an error, and what was done is done."""
    for length, step in enumerate(run.run, 1):
        exchange = step.exchange
        if exchange.restarts or exchange.pause_ms:
            return
        is_plain = exchange.ending == RequestEnding.ANSWERED and exchange.request.raw is None and not exchange.awaited
        is_tried_only = exchange.request.fields.get("validate_only", False)
        if is_plain and exchange.error == Error.NONE and not is_tried_only and not exchange.not_before_ms:
            yield length, step


def _fields(exchange: Exchange, version: int) -> int:
    """The number of fields of an answer of this version that are looked at."""
    return sum(_is_in(exchange.request.api, one.path, version) for one in exchange.constraints)


@cache
def _is_in(api: str, path: str, version: int) -> bool:
    first, last = versions_with(api, path)
    return first <= version <= last


def cases_of_versions(runs: Sequence[SelectedRun], protocol: BrokerProtocol) -> list[Case]:
    """The cases of older versions."""
    return [_case(place, with_looks(run, protocol), protocol) for place, run in runs_of_versions(runs).items()]


def _case(place: VersionPlace, run: SelectedRun, protocol: BrokerProtocol) -> Case:
    words = f"version {place.version} of {place.api}"
    name = re.sub(r"(?<!^)(?=[A-Z])", "-", place.api).lower()
    case = case_of(run, protocol, (), f"{run.subject.name}/{name}.version-{place.version}")
    number = len(run.run) - 1
    last = case.steps[number]
    pinned = last._replace(request=last.request._replace(versions=Versions(place.version, place.version)))
    told = [one for one in last.constraints if _is_in(place.api, one.path, place.version)]
    needed = {hole.name for one in told for hole in holes_in(one)}
    before = (_telling(needed, step) for step in case.steps[:number])
    lost = {name for name, path in last.kept if not _is_in(place.api, path, place.version)}
    steps = (*before, pinned, *(_without(lost, look) for look in case.steps[number + 1 :]))
    return case._replace(title=f"{case.title.removesuffix('.')}, in {words}.", goals=(words,), steps=steps)


def _telling(needed: AbstractSet[str], step: Exchange) -> Exchange:
    """A step in no version whose answer does not tell what is compared later."""
    paths = [path for name, path in step.kept if name in needed]
    known = versions_of(step.request)
    first = max((versions_with(step.request.api, path)[0] for path in paths), default=known.first)
    if first <= known.first:
        return step
    return step._replace(request=step.request._replace(versions=Versions(first, known.last)))


def _without(lost: AbstractSet[str], look: Exchange) -> Exchange:
    """A look without what an answer of an older version has not told."""
    known = (one for one in look.constraints if not any(hole.name in lost for hole in holes_in(one)))
    return look._replace(constraints=tuple(known))
