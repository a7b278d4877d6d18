"""Results as files: JUnit for continuous integration, JSON for programs, HTML for people."""

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from conformance.wire.run.results import Result, Status, Told
from conformance.wire.run.words import exchange_in_words, failure_in_words
from impl.wire.values import Message

FORMAT = 1
SKIPPED = (Status.NOT_SUPPORTED, Status.NOT_APPLICABLE, Status.ALLOWED)
NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd]")


def counts_of(results: Sequence[Result]) -> dict[str, int]:
    """How many cases went how."""
    return {status.value: sum(one.status == status for one in results) for status in Status}


def as_junit(results: Sequence[Result], replay: Callable[[Result], str]) -> str:
    """A JUnit file: a test suite for each subject."""
    root = ElementTree.Element("testsuites")
    for subject in dict.fromkeys(one.case["subject"] for one in results):
        own = [one for one in results if one.case["subject"] == subject]
        suite = ElementTree.SubElement(root, "testsuite", name=f"kspec.level-0.{subject}", tests=str(len(own)))
        suite.set("failures", str(sum(one.status == Status.FAIL for one in own)))
        suite.set("skipped", str(sum(one.status in SKIPPED for one in own)))
        for one in own:
            case = ElementTree.SubElement(suite, "testcase", name=one.name, classname=f"kspec.{subject}")
            case.set("time", f"{one.seconds:.3f}")
            if one.status == Status.FAIL:
                failure = ElementTree.SubElement(case, "failure", message=NOT_IN_XML.sub("?", one.reason))
                failure.text = NOT_IN_XML.sub("?", "\n".join(failure_in_words(one, replay(one))))
            elif one.status in SKIPPED:
                ElementTree.SubElement(case, "skipped", message=f"{one.status.value}: {one.reason}")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def as_json(results: Sequence[Result], target: str, run: str, replay: Callable[[Result], str]) -> str:
    """A JSON file: the counts, and each case with its exchanges unless it passed."""
    cases = []
    for one in results:
        found: dict[str, Any] = {"name": one.name, "status": one.status.value, "seconds": round(one.seconds, 3)}
        if one.status != Status.PASS:
            found |= {"title": one.case["title"], "reason": one.reason, "rule": one.case["rule"]["function"]}
            found |= {"kips": one.case["kips"], "replay": replay(one), "exchanges": [_told(told) for told in one.told]}
        cases.append(found)
    document = {"format": FORMAT, "target": target, "run": run, "counts": counts_of(results), "cases": cases}
    return json.dumps(document, indent=1) + "\n"


def _told(told: Told) -> dict[str, Any]:
    found: dict[str, Any] = told._asdict() | {"request": plain(told.request), "answer": plain(told.answer)}
    return found | {"differences": list(told.differences)}


def plain(value: Any) -> Any:
    """A message as JSON has it; bytes in hex."""
    if isinstance(value, Message):
        return plain(value.__dict__)
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return {"hex": bytes(value).hex()} if isinstance(value, (bytes, bytearray, memoryview)) else value


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; }
table { border-collapse: collapse; width: 100%; }
td, th { border-bottom: 1px solid #ddd; padding: .3em .6em; text-align: left; }
pre { background: #f6f6f6; overflow-x: auto; padding: 1em; }
.pass { color: #2f855a; } .fail { color: #c53030; font-weight: bold; } .other { color: #b7791f; }
"""


def as_html(results: Sequence[Result], target: str, run: str, replay: Callable[[Result], str]) -> str:
    """One page: the counts, the failures in full, and all cases."""
    told = "".join(_section(one, replay(one)) for one in results if one.status in (Status.FAIL, Status.ALLOWED))
    return html_page(target, f"Level 0, run {run}", counts_of(results), told, "".join(map(_row, results)))


def html_page(target: str, what: str, counts: Mapping[str, int], told: str, rows: str) -> str:
    """The page of a run. `told`: the failures, and `rows`: the cases, both as HTML."""
    numbers = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{_text(target)}</title><style>{STYLE}</style>"
        f"<h1>{_text(target)}</h1><p>{_text(what)}: {_text(numbers)}.</p>{told}"
        f"<h2>All cases</h2><table><tr><th>case<th>what it does<th>rule<th>status</tr>{rows}</table></html>\n"
    )


def _section(result: Result, replay: str) -> str:
    lines = failure_in_words(result, replay)
    earlier = [line for told in result.told[:-1] for line in exchange_in_words(told)]
    before = f"<details><summary>what came before</summary><pre>{_text(chr(10).join(earlier))}</pre></details>"
    return f'<h2 id="{_text(result.name)}">{_text(result.name)}</h2><pre>{_text(chr(10).join(lines[1:]))}</pre>{before}'


def _row(result: Result) -> str:
    kind = result.status.value if result.status in (Status.PASS, Status.FAIL) else "other"
    name = f'<a href="#{_text(result.name)}">{_text(result.name)}</a>' if kind == "fail" else _text(result.name)
    case = result.case
    told = f"{result.status.value}: {result.reason}" if result.reason else result.status.value
    return (
        f"<tr><td>{name}<td>{_text(case['title'])}<td>{_text(case['rule']['function'])}<td class={kind}>{_text(told)}</tr>"
    )


def _text(value: str) -> str:
    return html.escape(value)
