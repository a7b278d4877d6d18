"""The page of a run: what went wrong comes first, in words, and it fits a phone."""

import re
from pathlib import Path

import pytest

from kspec.conformance.wire.run.page import as_html
from kspec.conformance.wire.run.results import ExchangeReport, Result, Status
from kspec.impl.wire.values import Message
from tests.cli.explorer.chromium import browser
from tests.conformance.wire.targets import documents

HOSTILE = "<script>alert(1)</script>" + "x" * 400
ANSWER = Message(topics=[Message(error_code=7, name=HOSTILE, topic_id=b"\xff" * 2000, empty="", parts=[])], left=None)
TOLD = (
    ExchangeReport("A", "Metadata", 13, "", {"topics": [{"name": ""}]}, "00" * 3000, ANSWER, "ff" * 3000, ""),
    ExchangeReport(
        "B",
        "Fetch",
        17,
        "read <b>",
        {"max_wait_ms": 3},
        "0011",
        ANSWER,
        "aabb",
        "",
        ("topics[0].error_code: 7, not 0", "topics[0].parts[#]: 0, not 1"),
    ),
)


def results() -> list[Result]:
    failed, ended, free, allowed, passed, lacks = documents()[:6]
    return [
        Result(failed, Status.FAIL, f"topics[0].error_code: 7, not 0; {HOSTILE}", TOLD, 0.1),
        Result(ended, Status.ENDED, "it no longer answers", TOLD[:1], 0.1),
        Result(free, Status.UNLIKE, "3, where Apache Kafka has 4: it is free", TOLD[:1], 0.1),
        Result(allowed, Status.ALLOWED, "bug 7: no", (), 0.1),
        Result(passed, Status.PASS, "", (), 0.1),
        Result(lacks, Status.NOT_SUPPORTED, "Produce 0 to 2", (), 0.0),
    ]


def page() -> str:
    return as_html(results(), "a <broker>", "1f", lambda one: f"again --case {one.name} 'a b'")


def test_what_is_told_is_in_an_index_that_leads_to_it() -> None:
    text = page()
    for one in results()[:4]:
        assert text.count(f'id="{one.name}"') == 1
        assert text.count(f'href="#{one.name}"') == 2  # in the index, and in the list of all
        assert f"again --case {one.name} &#x27;a b&#x27;" in text
        assert f"<code>{one.case['rule']['function']}</code>" in text
    assert f'id="{results()[4].name}"' not in text
    for place in ("fail", "stops-answering", "unlike-kafka", "allowed"):
        assert (text.count(f'id="{place}"'), text.count(f'href="#{place}"')) == (1, 1)
    assert text.index("The broker stops answering</h2>") < text.index("Failures</h2>") < text.index("All cases</h2>")


def test_the_fields_that_are_wrong_are_marked_and_the_last_step_is_open() -> None:
    text = page()
    section = text.partition(f'<section id="{results()[0].name}"')[2].partition("</section>")[0]
    first, last = section.partition("<ol")[2].split("<li><details")[1:3]
    assert (first.startswith(" open"), last.startswith(" open")) == (False, True)
    assert "<mark>error_code</mark>: <code>7</code>" in last
    assert "<mark>parts</mark>: <code>none</code>" in last
    assert "<mark>error_code</mark>" not in first
    assert "<li>name: <code>&quot;&quot;</code>" in first


def test_it_is_words_and_nothing_that_came_is_markup() -> None:
    text = page()
    assert "<pre" not in text
    assert "<script" not in text
    assert "read <b>" not in text
    assert "a &lt;broker&gt;" in text
    assert "http" not in re.sub(r'href="https://[^"]*"', "", text.partition("</style>")[2].partition("<h2>All")[0])[:200]


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits(width: int, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page(), encoding="utf-8")
    with browser() as chromium:
        tab = chromium.new_page(viewport={"width": width, "height": 800})
        tab.goto(file.as_uri())
        tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        tab.click(f'ul.index a[href="#{results()[0].name}"]')
        assert tab.evaluate("Math.abs(document.querySelector('section:target').getBoundingClientRect().top)") < 5
