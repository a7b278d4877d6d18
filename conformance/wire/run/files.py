"""Results as files: JUnit for continuous integration, JSON for programs."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from kspec.conformance.wire.run.results import WRONG, ExchangeReport, Result, Status
from kspec.conformance.wire.run.words import failure_in_words
from kspec.impl.wire.values import Message

FORMAT = 2
SKIPPED = (Status.NOT_SUPPORTED, Status.NOT_APPLICABLE, Status.ALLOWED)
NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd]")


def counts_of(results: Sequence[Result]) -> dict[str, int]:
    """The number of cases by their status."""
    return {status.value: sum(one.status == status for one in results) for status in Status}


def as_junit(results: Sequence[Result], replay: Callable[[Result], str]) -> str:
    """A JUnit file: a test suite for each subject."""
    root = ElementTree.Element("testsuites")
    for subject in dict.fromkeys(one.case["subject"] for one in results):
        own = [one for one in results if one.case["subject"] == subject]
        suite = ElementTree.SubElement(root, "testsuite", name=f"kspec.level-0.{subject}", tests=str(len(own)))
        suite.set("failures", str(sum(one.status in WRONG for one in own)))
        suite.set("skipped", str(sum(one.status in SKIPPED for one in own)))
        for one in own:
            case = ElementTree.SubElement(suite, "testcase", name=one.name, classname=f"kspec.{subject}")
            case.set("time", f"{one.seconds:.3f}")
            if one.status in WRONG:
                failure = ElementTree.SubElement(case, "failure", message=NOT_IN_XML.sub("?", one.reason))
                failure.set("type", one.status.value)
                failure.text = NOT_IN_XML.sub("?", "\n".join(failure_in_words(one, replay(one))))
            elif one.status in SKIPPED:
                message = NOT_IN_XML.sub("?", f"{one.status.value}: {one.reason}")
                ElementTree.SubElement(case, "skipped", message=message)
            elif one.status == Status.UNLIKE:
                ElementTree.SubElement(case, "system-out").text = NOT_IN_XML.sub("?", f"{one.status.value}: {one.reason}")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def as_json(
    results: Sequence[Result], target: str, run: str, replay: Callable[[Result], str], suite: Mapping[str, str]
) -> str:
    """A JSON file: the counts, and each case with its exchanges unless it passed. `suite`: which cases they are."""
    cases = []
    for one in results:
        found: dict[str, Any] = {"name": one.name, "status": one.status.value, "seconds": round(one.seconds, 3)}
        if one.left_out:
            found["left_out"] = list(one.left_out)
        if one.status != Status.PASS:
            found |= {"title": one.case["title"], "reason": one.reason, "rule": one.case["rule"]["function"]}
            found |= {"kips": one.case["kips"], "replay": replay(one), "exchanges": [_told(told) for told in one.told]}
        cases.append(found)
    document = {"format": FORMAT, "target": target, "run": run, "suite": suite}
    document |= {"counts": counts_of(results), "cases": cases}
    return json.dumps(document, indent=1) + "\n"


def _told(told: ExchangeReport) -> dict[str, Any]:
    found: dict[str, Any] = told._asdict() | {"request": plain(told.request), "answer": plain(told.answer)}
    return found | {"differences": list(told.differences), "liberties": list(told.liberties)}


def plain(value: Any) -> Any:
    """A message as JSON has it; bytes in hex."""
    if isinstance(value, Message):
        return plain(value.__dict__)
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return {"hex": bytes(value).hex()} if isinstance(value, (bytes, bytearray, memoryview)) else value
