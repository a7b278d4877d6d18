"""The page for everybody: no serious finding of axe-core, dark and light, a phone, paper, colours that are not all."""

from collections.abc import Iterator
from typing import Any

import pytest

from kspec.cli.site.starting_points import index
from tests.cli.explorer.axe import script, serious
from tests.cli.explorer.page.conftest import LOSS, Tab, page_on

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("explorer page")]
SEEN = {
    "a violation": LOSS,
    "two sides": f"{LOSS}&beside=kip-101",
    "messages": "messages",
    "controller": "controller",
    "nothing": "",
}


def index_address(name: str) -> str:
    """The address of a starting point."""
    return next(str(run["address"]) for group in index()["groups"] for run in group["runs"] if run["name"] == name)


@pytest.fixture(scope="module")
def tab(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Looks do not depend on the back end."""
    with page_on("server", chromium, tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture(scope="module")
def axe() -> str:
    return script()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", SEEN)
def test_no_serious_finding_of_axe(tab: Tab, axe: str, view: str, scheme: str) -> None:
    tab.page.emulate_media(color_scheme=scheme)
    tab.go(SEEN[view])
    if view == "a violation":
        tab.press("f").press("d")
        tab.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert serious(tab.page, axe) == []
    if view == "a violation":
        tab.press("Escape")


@pytest.mark.parametrize("fragment", [LOSS, f"{LOSS}&beside=kip-101", "messages", ""])
def test_a_phone_needs_no_scrolling_sideways(tab: Tab, fragment: str) -> None:
    tab.page.set_viewport_size({"width": 360, "height": 740})
    tab.go(fragment)
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 360
    tab.page.set_viewport_size({"width": 1440, "height": 1000})


def test_on_a_phone_the_brokers_stand_side_by_side_below_the_others(tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 360, "height": 740})
    tab.go()
    boxes = [card.bounding_box() for card in tab.page.locator(".stage .card").all()]
    clients, controller, one, other = [box for box in boxes if box]
    assert clients["y"] < controller["y"] < one["y"] == other["y"]
    assert all(box["x"] + box["width"] <= 360 for box in (clients, controller, one, other))
    tab.page.set_viewport_size({"width": 1440, "height": 1000})


def test_a_record_that_a_next_leader_lacks_is_drawn_at_that_broker(tab: Tab) -> None:
    tab.go(index_address("finding-eligible-without-assignment"))
    missing = tab.page.locator('[data-party="broker 1"] .record.missing').inner_text()
    assert missing.split() == ["0", "✕", "m1(e1)", "is", "missing"]
    facts = tab.page.locator('[data-party="controller"] .facts').inner_text()
    assert facts.split()[-2:] == ["fenced", "{3}"]


def test_a_step_that_calls_many_rules_shows_the_first(tab: Tab) -> None:
    tab.go(index_address("finding-eligible-without-assignment"))
    assert tab.page.locator(".pane.step > .rules > li").count() == 8
    more = tab.page.locator(".pane.step .more-rules")
    assert more.locator("li").first.is_hidden()
    more.locator("summary").first.click()
    assert more.locator("li").first.is_visible()


def test_paper_has_the_run_and_no_controls(tab: Tab) -> None:
    tab.go()
    tab.page.emulate_media(media="print", color_scheme="dark")
    assert not tab.page.locator(".pane.moves").is_visible()
    assert not tab.page.locator(".pane.bar").is_visible()
    assert tab.page.locator("svg.space-time").is_visible()
    assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tab.page.emulate_media(media="screen", color_scheme="light")


def test_an_epoch_is_a_number_too_and_a_verdict_a_sign(tab: Tab) -> None:
    tab.go()
    for record in tab.page.locator(".stage .record:not(.empty)").all_text_contents():
        assert "(e" in record
    signs = {sign.strip() for sign in tab.page.locator(".property .sign").all_text_contents()}
    assert signs == {"✓", "✕", "●", "○"}


def test_the_focus_is_seen(tab: Tab) -> None:
    tab.go()
    tab.page.locator('[data-key="theme"]').focus()
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
