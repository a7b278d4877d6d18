"""A run within another page, and a page with nothing but a record: they step, and offer nothing that they cannot do."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kspec.cli.explorer.page import page_for
from kspec.cli.explorer.recording import recorded
from tests.cli.explorer.page.conftest import LOSS, Tab, static_site

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("explorer page")]
CHAPTER = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A chapter</title>
<link rel="icon" href="icon.svg"><script type="module" src="embed.js"></script></head><body><h1>A chapter</h1>
<kspec-run src="runs/loss.json"><p>a link</p></kspec-run></body></html>"""


@pytest.fixture(scope="module")
def tab(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    folder: Path = tmp_path_factory.mktemp("site")
    with static_site(folder) as url:
        document = recorded(LOSS, [{"do": "retrace", "address": "kip-101"}])
        (folder / "runs").mkdir(exist_ok=True)
        (folder / "runs" / "loss.json").write_text(json.dumps(document), encoding="utf-8")
        (folder / "chapter.html").write_text(CHAPTER, encoding="utf-8")
        (folder / "record.html").write_text(page_for({"kind": "recorded", "recording": document}), encoding="utf-8")
        context = chromium.new_context(viewport={"width": 1000, "height": 900})
        yield Tab(context.new_page(), url)
        context.close()


def test_a_run_in_a_chapter_is_stepped_from_its_record_and_goes_live_at_the_first_branch(tab: Tab) -> None:
    page = tab.page
    page.goto(f"{tab.url}chapter.html")
    page.get_by_text("state 1 of 11", exact=True).wait_for()
    page.get_by_label("One step forward").click()
    page.get_by_text("state 2 of 11", exact=True).wait_for()
    assert page.workers == []
    page.get_by_text("Other steps", exact=True).click()
    page.locator(".possible button:not(.next)").first.click()
    page.get_by_text("state 3 of 3", exact=True).wait_for()
    assert len(page.workers) == 1


def test_on_paper_a_run_in_a_chapter_is_there_as_a_diagram(tab: Tab) -> None:
    page = tab.page
    page.goto(f"{tab.url}chapter.html")
    page.get_by_text("state 1 of 11", exact=True).wait_for()
    assert page.locator("kspec-run svg.space-time").count() == 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("kspec-run svg.space-time .violating").count() == 2
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not page.locator("kspec-run svg.space-time").first.is_visible()


def test_a_page_with_a_record_alone_steps_and_offers_nothing_else(tab: Tab) -> None:
    tab.page.goto(f"{tab.url}record.html")
    tab.at(11, 11).press("ArrowLeft").at(10, 11)
    for words in ("New run", "Side by side", "Find"):
        assert tab.page.get_by_text(words, exact=True).count() == 0
    assert tab.page.locator(".possible button:enabled").count() == 1
    tab.page.locator(".possible button.next").click()
    tab.at(11, 11).press("c").press("n").press("1").at(11, 11)
