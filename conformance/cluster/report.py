"""Results of level 1 as text, and as files: JUnit, JSON, HTML."""

import html
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from xml.etree import ElementTree

from kspec.conformance.cluster.cases import ClusterCase
from kspec.conformance.cluster.results import CaseOutcome, firsts
from kspec.conformance.wire.run.files import NOT_IN_XML, SKIPPED
from kspec.conformance.wire.run.page import html_page
from kspec.conformance.wire.run.results import Status
from kspec.trials.history.anomalies import MEANINGS
from kspec.trials.history.events import to_json

FORMAT, LEVEL = 1, 1
Replay = Callable[[CaseOutcome], str]


def counts_of(outcomes: Iterable[CaseOutcome]) -> dict[str, int]:
    """The number of cases by their status."""
    found = list(outcomes)
    return {status.value: sum(one.status == status for one in found) for status in Status}


def line_of(outcome: CaseOutcome) -> str:
    """A result in one line."""
    counts = ", ".join(f"{count:,} {name}" for name, count in (outcome.counts or {}).items())
    told = [outcome.reason, counts, f"{outcome.seconds:.0f} s" if outcome.seconds else ""]
    return f"{outcome.status.value} {outcome.name}: {'; '.join(filter(None, told))}"


def about(case: ClusterCase) -> list[str]:
    """The subject of a case, as lines."""
    lines = [f"  {case.title}", f"  rule     {case.rule.function}"]
    lines += [f"           {line}" for line in case.rule.doc.splitlines()]
    lines += [f"  Kafka    {case.rule.kafka}"] if case.rule.kafka else []
    lines += [f"  issues   {', '.join(case.issues)}"] if case.issues else []
    return [*lines, f"  guards   {', '.join(case.guards)}"]


def failure_in_words(outcome: CaseOutcome, replay: str) -> list[str]:
    """The full report on a case that failed."""
    lines = [line_of(outcome), *about(outcome.case), ""]
    if outcome.scheduled is not None and outcome.scheduled.run:
        lines += ["  the run of the model", *(f"    {step}" for step in outcome.scheduled.run), ""]
    if outcome.done:
        lines += ["  the steps on the cluster", *(f"    {line}" for line in outcome.done), ""]
    for one in firsts(outcome.anomalies):
        lines += [f"  {one.name}: {MEANINGS[one.name]}; the first is {one.subject}"]
        lines += [f"    {json.dumps(to_json(event))}" for event in one.evidence]
    lines += [f"  history  {outcome.folder / 'history.jsonl'}"] if outcome.folder is not None else []
    return [*lines, f"  again    {replay}", ""]


def as_junit(outcomes: Sequence[CaseOutcome], replay: Replay) -> str:
    """A JUnit file: one test suite."""
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite", name=f"kspec.level-{LEVEL}", tests=str(len(outcomes)))
    suite.set("failures", str(sum(one.status == Status.FAIL for one in outcomes)))
    suite.set("skipped", str(sum(one.status in SKIPPED for one in outcomes)))
    for one in outcomes:
        case = ElementTree.SubElement(suite, "testcase", name=one.name, classname=f"kspec.{one.case.subject}")
        case.set("time", f"{one.seconds:.3f}")
        if one.status == Status.FAIL:
            failure = ElementTree.SubElement(case, "failure", message=_plain(one.reason))
            failure.text = _plain("\n".join(failure_in_words(one, replay(one))))
        elif one.status in SKIPPED:
            ElementTree.SubElement(case, "skipped", message=_plain(f"{one.status.value}: {one.reason}"))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _plain(text: str) -> str:
    return NOT_IN_XML.sub("?", text)


def as_json(outcomes: Sequence[CaseOutcome], target: str, run: str, replay: Replay) -> str:
    """A JSON file: the counts, and each case with its run, the steps on the cluster, and the anomalies."""
    document = {"format": FORMAT, "level": LEVEL, "target": target, "run": run, "counts": counts_of(outcomes)}
    return json.dumps({**document, "cases": [_case(one, replay(one)) for one in outcomes]}, indent=1) + "\n"


def _case(outcome: CaseOutcome, replay: str) -> dict[str, Any]:
    case = outcome.case
    found: dict[str, Any] = {"name": case.name, "status": outcome.status.value, "reason": outcome.reason}
    found |= {"seconds": round(outcome.seconds, 3), "title": case.title, "rule": case.rule.function}
    found |= {"issues": list(case.issues), "guards": list(case.guards), "acks": case.acks, "replay": replay}
    if outcome.scheduled is not None:
        found |= {"run": list(outcome.scheduled.run), "done": list(outcome.done), "counts": outcome.counts}
        found["anomalies"] = [one.as_json() for one in outcome.anomalies]
    return found


def as_html(outcomes: Sequence[CaseOutcome], target: str, run: str, replay: Replay) -> str:
    """One page: the counts, the failures in full, and all cases."""
    told = "".join(_section(one, replay(one)) for one in outcomes if one.status in (Status.FAIL, Status.ALLOWED))
    return html_page(target, f"Level {LEVEL}, run {run}", counts_of(outcomes), told, "".join(map(_row, outcomes)))


def _section(outcome: CaseOutcome, replay: str) -> str:
    lines = "\n".join(failure_in_words(outcome, replay))
    return f'<h2 id="{_text(outcome.name)}">{_text(outcome.name)}</h2><pre>{_text(lines)}</pre>'


def _row(outcome: CaseOutcome) -> str:
    kind = outcome.status.value if outcome.status in (Status.PASS, Status.FAIL) else "other"
    name = f'<a href="#{_text(outcome.name)}">{_text(outcome.name)}</a>' if kind == "fail" else _text(outcome.name)
    told = f"{outcome.status.value}: {outcome.reason}" if outcome.reason else outcome.status.value
    case = outcome.case
    return f"<tr><td>{name}<td>{_text(case.title)}<td>{_text(case.rule.function)}<td class={kind}>{_text(told)}</tr>"


def _text(value: str) -> str:
    return html.escape(value)
