"""The site in Debian's Chromium, served below a prefix by Python's web server. Without Chromium it is skipped, loudly."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kspec.cli.site.starting_points import CHAPTERS
from tests.cli.explorer.axe import script, serious
from tests.cli.explorer.chromium import browser, complaints_of, served
from tests.cli.site.conftest import PREFIX

PATIENCE_MS = 60_000

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]


@pytest.fixture(scope="module")
def address(served_folder: Path) -> Iterator[str]:
    """The address of the site."""
    with served(served_folder) as root:
        yield f"{root}{PREFIX}/"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser for all tests."""
    with browser() as found:
        yield found


class Reader:
    """A tab of a browser, with what its console complained of and what it asked for."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.complaints = complaints_of(page)
        self.asked: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("request", lambda request: self.asked.append(request.url))

    def go(self, name: str) -> None:
        """Open a page of the site."""
        self.page.goto(self.address + name)

    def step_to_the_end(self, number: int, steps: int) -> str:
        """Step the run with this number on the page, one by one; the result is what it shows in the end."""
        run = self.page.locator("kspec-run").nth(number)
        for position in range(1, steps + 1):
            run.get_by_text(f"state {position} of {steps + 1}", exact=True).wait_for()
            run.get_by_role("button", name="One step forward").first.click()
        run.get_by_text(f"state {steps + 1} of {steps + 1}", exact=True).wait_for()
        shown: str = run.locator(".status").inner_text()
        return shown

    @property
    def elsewhere(self) -> list[str]:
        """The addresses outside of the site that it asked for."""
        return [url for url in self.asked if not url.startswith((self.address, "data:", "blob:"))]


@pytest.fixture
def reader(chromium: Any, address: str) -> Iterator[Reader]:
    """A reader with a new tab."""
    page = chromium.new_page()
    yield Reader(page, address)
    page.close()


def test_the_first_page_has_a_run_that_steps_before_pyodide_is_loaded(reader: Reader) -> None:
    reader.go("index.html")
    assert "AcknowledgedOnLeader" in reader.step_to_the_end(0, 10)
    assert reader.complaints == []
    assert reader.elsewhere == []
    assert [url for url in reader.asked if "pyodide" in url] == []


@pytest.mark.parametrize("chapter", CHAPTERS.values())
def test_a_chapter_s_runs_step_to_what_it_claims(reader: Reader, chapter: str) -> None:
    reader.go(f"story/{chapter}.html")
    claims = [claim.inner_text() for claim in reader.page.locator("article em", has_text="in the end").all()]
    assert claims
    for number, claim in enumerate(claims):
        steps, name = int(claim.split()[0]), claim.split()[-2]
        shown = reader.step_to_the_end(number, steps)
        assert (name in shown) == claim.endswith("fails."), (claim, shown)
    assert reader.complaints == []
    assert reader.elsewhere == []
    assert [url for url in reader.asked if "pyodide" in url] == []


def test_a_reader_finds_why_kip_320_was_needed_in_two_clicks(reader: Reader) -> None:
    reader.go("index.html")
    reader.page.locator("article").get_by_role("link", name="the story in six chapters").click()
    reader.page.locator("article").get_by_role("link", name="4. Fencing").first.click()
    assert "Why KIP-320 was needed." in reader.page.locator("article").inner_text()
    reader.go("index.html")
    reader.page.locator("article").get_by_role("link", name="KIP-320").click()
    assert "Why KIP-320 was needed." in reader.page.locator("article").inner_text()


def test_the_search_finds_the_chapter_of_a_kip(reader: Reader) -> None:
    reader.go("search.html?q=KIP-320")
    reader.page.locator("#search-results li").first.wait_for()
    assert "4. Fencing" in reader.page.locator("#search-results li a").first.inner_text()
    assert reader.complaints == []


def test_a_run_of_a_page_opens_in_the_explorer(reader: Reader) -> None:
    reader.go("story/1-truncation-to-the-high-watermark.html")
    reader.page.get_by_role("link", name="Open in the explorer").first.click()
    reader.page.get_by_text("state 11 of 11", exact=True).first.wait_for()
    assert reader.complaints == []
    assert reader.elsewhere == []


@pytest.mark.parametrize(
    "page", ["index.html", "story/4-fencing.html", "releases/index.html", "studies/kip-320-zombie.html"]
)
def test_a_page_fits_a_phone(reader: Reader, page: str) -> None:
    reader.page.set_viewport_size({"width": 390, "height": 844})
    reader.go(page)
    reader.page.locator("article").wait_for()
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("width", [1024, 1280, 1440])
def test_no_page_scrolls_sideways(reader: Reader, width: int) -> None:
    reader.page.set_viewport_size({"width": width, "height": 900})
    for page in ("index", "story/4-fencing", "studies/kip-320-zombie", "releases/index", "rules-by-release", "cli"):
        reader.go(f"{page}.html")
        reader.page.locator("article").wait_for()
        assert (page, reader.page.evaluate("document.documentElement.scrollWidth")) == (page, width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_finding_of_axe(reader: Reader, scheme: str) -> None:
    axe = script()
    reader.page.emulate_media(color_scheme=scheme)
    for page in (
        "index",
        "story/4-fencing",
        "timeline",
        "releases/index",
        "studies/kip-320-zombie",
        "findings/missed-epoch",
        "mutants",
        "cli",
    ):
        reader.go(f"{page}.html")
        reader.page.locator("article").wait_for()
        assert (page, serious(reader.page, axe)) == (page, [])
