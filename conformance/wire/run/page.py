"""The results of a run as one page for people: an index of what went wrong, each failure in words, and all cases.

It needs no other file and no script, and is read on a phone as well.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kspec.conformance.wire.run.files import counts_of
from kspec.conformance.wire.run.results import WRONG, ExchangeReport, Result, Status
from kspec.conformance.wire.run.words import LONGEST_HEX
from kspec.impl.wire.values import Message

TOLD = (*WRONG, Status.UNLIKE, Status.ALLOWED)
"""Statuses that are told in full."""

HEADINGS = {
    Status.ENDED: "The broker stops answering",
    Status.FAIL: "Failures",
    Status.ALLOWED: "Failures that are allowed",
    Status.UNLIKE: "Unlike Apache Kafka, as the protocol leaves it free",
}
STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; --good: #2f855a; --bad: #c53030; --other: #b7791f; }
@media (prefers-color-scheme: dark) { :root { --good: #68d391; --bad: #fc8181; --other: #f6ad55; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.3rem; margin-top: 2.5rem; } h3 { font-size: 1.05rem; margin: 0; }
code { font: .9em/1.5 ui-monospace, monospace; }
ul.counts { display: flex; flex-wrap: wrap; gap: .5rem; list-style: none; padding: 0; }
ul.counts li { border: 1px solid var(--line); border-radius: 1rem; padding: .1rem .8rem; }
ul.index { padding-left: 1.2rem; } ul.index li { margin: .25rem 0; }
section { border: 1px solid var(--line); border-radius: .5rem; margin: 1rem 0; padding: 1rem; }
dl.facts { display: grid; gap: .25rem 1rem; grid-template-columns: 8rem 1fr; margin: 1rem 0; }
dl.facts dt { font-weight: 600; } dl.facts dd { margin: 0; } dl.facts p { margin: 0 0 .5rem; }
ol.steps { padding-left: 1.5rem; } ol.steps > li { margin: .4rem 0; }
ul.fields { border-left: 2px solid var(--line); list-style: none; margin: 0 0 0 .2rem; padding-left: .8rem; }
mark { background: none; color: var(--bad); font-weight: 600; }
.hex { display: block; background: var(--soft); border-radius: .25rem; padding: .5rem; word-break: break-all; }
.command { display: block; background: var(--soft); border-radius: .25rem; padding: .5rem; white-space: pre-wrap; }
pre { background: var(--soft); border-radius: .25rem; padding: .5rem; white-space: pre-wrap; }
table { border-collapse: collapse; width: 100%; }
td, th { border-bottom: 1px solid var(--line); padding: .4rem .6rem; text-align: left; vertical-align: top; }
.pass { color: var(--good); } .fail { color: var(--bad); font-weight: 600; } .other { color: var(--other); }
@media (max-width: 45rem) {
  dl.facts { grid-template-columns: 1fr; } dl.facts dd { margin-bottom: .5rem; }
  table, tbody, tr, td { display: block; } th { display: none; }
  td { border: 0; padding: .1rem 0; } tr { border-bottom: 1px solid var(--line); display: block; padding: .5rem 0; }
}
"""


def as_html(results: Sequence[Result], target: str, run: str, replay: Callable[[Result], str]) -> str:
    """One page: the counts, an index of what is to be looked at, each of it in words, and all cases.

    `run` says which run it was, and of which suite.
    """
    told = {status: [one for one in results if one.status == status] for status in HEADINGS}
    parts = []
    for status, found in told.items():
        if found:
            sections = "".join(_section(one, replay(one)) for one in found)
            parts.append(f'<h2 id="{_slug(status.value)}">{HEADINGS[status]}</h2>{_index(found)}{sections}')
    return html_page(target, f"Level 0, {run}", counts_of(results), "".join(parts), "".join(map(_row, results)))


def html_page(target: str, what: str, counts: Mapping[str, int], told: str, rows: str) -> str:
    """The page of a run. `told`: the failures, and `rows`: the cases, both as HTML."""
    numbers = "".join(f"<li>{_linked(status, f'{count} {status}', told)}</li>" for status, count in counts.items() if count)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>{_text(target)}: conformance to Kafka's protocol</title><style>{STYLE}</style>"
        f"<h1>{_text(target)}</h1><p>{_text(what)}: {sum(counts.values())} cases.</p><ul class=counts>{numbers}</ul>{told}"
        f"<h2>All cases</h2><table><tr><th>case<th>what it does<th>rule<th>status</tr>{rows}</table></html>\n"
    )


def _linked(status: str, text: str, told: str) -> str:
    has_place = f'<h2 id="{_slug(status)}"' in told
    return f'<a href="#{_slug(status)}">{_text(text)}</a>' if has_place else _text(text)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower())


# ---- what is told in full


def _index(results: Sequence[Result]) -> str:
    """The list of what is told below: each case with what is wrong."""
    items = "".join(
        f'<li><a href="#{_text(one.name)}">{_text(one.name)}</a><br>{_text(_shortened(one.reason))}</li>' for one in results
    )
    return f"<ul class=index>{items}</ul>"


def _shortened(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]}…"


def _section(result: Result, replay: str) -> str:
    case = result.case
    facts = [
        ("What is wrong" if result.status in WRONG else "What there was", _text(result.reason)),
        ("Rule", f"<code>{_text(case['rule']['function'])}</code>{_paragraphs(case['rule']['doc'])}"),
        ("Apache Kafka", _inline(case["kafka"])),
        ("What it is good for", _text(case["promise"])),
        ("KIPs", _text(", ".join(case["kips"]))),
        ("Known bugs", ", ".join(f'<a href="{_text(link)}">{_text(link)}</a>' for link in case["known_bugs"])),
        ("Run it alone", f"<code class=command>{_text(replay)}</code>"),
    ]
    told = "".join(f"<dt>{name}<dd>{value}" for name, value in facts if value)
    steps = "".join(f"<li>{_exchange(one, one is result.told[-1])}</li>" for one in result.told)
    return (
        f'<section id="{_text(result.name)}"><h3>{_text(result.name)}</h3><p>{_text(case["title"])}</p>'
        f"<dl class=facts>{told}</dl><ol class=steps>{steps}</ol></section>"
    )


def _exchange(told: ExchangeReport, is_last: bool) -> str:
    """A request and its answer: in words, and when opened field by field and as bytes."""
    words = f"Client {told.client}: <b>{_text(told.api)} {told.version}</b>" + (
        f", {_text(told.words)}" if told.words else ""
    )
    wrong = "".join(f"<br><mark>{_text(line)}</mark>" for line in told.differences)
    wrong += "".join(f"<br><span class=other>{_text(line)}</span>" for line in told.liberties)
    paths = [line.partition(":")[0] for line in told.differences]
    parts = list(_message("Request", told.request, told.request_hex, []))
    parts += _message("Answer", told.answer, told.answer_hex, paths)
    return f"<details{' open' if is_last else ''}><summary>{words}{wrong}</summary>{''.join(parts)}</details>"


def _message(name: str, fields: Any, digits: str, wrong: Sequence[str]) -> Iterator[str]:
    if digits:
        cut = f"{digits[:LONGEST_HEX]}…" if len(digits) > LONGEST_HEX else digits
        bytes_ = f"<details><summary>as {len(digits) // 2} bytes</summary><code class=hex>{cut}</code></details>"
        yield f"<p><b>{name}</b></p>{_fields(fields, '', wrong)}{bytes_}"


def _fields(value: Any, path: str, wrong: Sequence[str]) -> str:
    """The fields of a message as a list, those inside further in; what is wrong is marked."""
    inside: list[tuple[str, str, Any]] = []
    if isinstance(value, Message):
        value = value.__dict__
    if isinstance(value, dict):
        inside = [(name, f"{path}.{name}" if path else name, one) for name, one in value.items()]
    elif isinstance(value, (list, tuple)):
        inside = [(str(number), f"{path}[{number}]", one) for number, one in enumerate(value)]
    items = []
    for name, place, one in inside:
        is_wrong = place in wrong or (isinstance(one, (list, tuple)) and f"{place}[#]" in wrong)
        label = f"<mark>{_text(name)}</mark>" if is_wrong else _text(name)
        nested = isinstance(one, (Message, dict)) or (isinstance(one, (list, tuple)) and one)
        items.append(f"<li>{label}: {_fields(one, place, wrong) if nested else f'<code>{_text(_plain(one))}</code>'}</li>")
    return f"<ul class=fields>{''.join(items)}</ul>" if items else "<p>It has no fields.</p>"


def _plain(value: Any) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        digits = bytes(value).hex()
        return f"0x{digits[:200]}… ({len(digits) // 2} bytes)" if len(digits) > 200 else f"0x{digits}"
    return "null" if value is None else "none" if value in ([], ()) else '""' if value == "" else str(value)


def _paragraphs(doc: str) -> str:
    """A docstring without what it says of Apache Kafka, which has a line of its own."""
    told = [one for one in doc.split("\n\n") if not one.startswith("**Kafka:**")]
    return "".join(f"<p>{_inline(' '.join(one.split()))}</p>" for one in told)


def _inline(text: str) -> str:
    """Text with its marks: names of code, and what is bold."""
    found = re.sub(r"`+([^`]+)`+", r"<code>\1</code>", _text(text))
    return re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", found)


# ---- all cases


def _row(result: Result) -> str:
    kind = "fail" if result.status in WRONG else "pass" if result.status == Status.PASS else "other"
    name = f'<a href="#{_text(result.name)}">{_text(result.name)}</a>' if result.status in TOLD else _text(result.name)
    case = result.case
    told = f"{result.status.value}: {_shortened(result.reason)}" if result.reason else result.status.value
    return (
        f"<tr><td>{name}<td>{_text(case['title'])}<td>{_text(case['rule']['function'])}<td class={kind}>{_text(told)}</tr>"
    )


def _text(value: str) -> str:
    return html.escape(value)
