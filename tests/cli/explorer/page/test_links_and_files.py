"""A link opened afresh gives the same state; wrong links say what is wrong; files leave the page and come back."""

import json
from pathlib import Path
from typing import Any

import pytest

from kspec.cli.explorer.recording import shortened
from kspec.model_check.explorer import Explorer
from tests.cli.explorer.page.conftest import LOSS, Tab
from tests.model_check.explorer.test_told import results

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("explorer page")]


def afresh(tab: Tab) -> Tab:
    """The same link in a new tab."""
    return Tab(tab.page.context.new_page(), tab.url).go(tab.fragment)


def test_a_link_opened_afresh_gives_the_same_state(tab: Tab) -> None:
    tab.go(f"{LOSS}@10&beside=kip-101").at(10, 11)
    again = afresh(tab).at(10, 11)
    for pane in ("state", "compare", "properties", "moves"):
        assert again.text(pane) == tab.text(pane)
    assert again.fragment == tab.fragment
    assert again.complaints == []
    again.page.close()


@pytest.mark.parametrize(
    ("fragment", "words"),
    [
        ("kip-999", "there is no model 'kip-999'"),
        ("kip-101~replicas.x", "replicas is a whole number, not 'x'"),
        ("kip-101~replicas.2~~ControllerElectLeader_replica.7", "replica is 1, 2 within these bounds, not 7"),
        ("kip-101!", "is in no address"),
        (f"{LOSS}@99", "this link is to state 99, and the run has 11"),
        (f"{LOSS}&beside=kip-9", "there is no model 'kip-9'"),
        (f"{LOSS}~~00000000", "the end is not the state that the address was made for"),
    ],
)
def test_a_wrong_link_says_what_is_wrong(tab: Tab, fragment: str, words: str) -> None:
    tab.go().at(11, 11).go(fragment)
    assert words in tab.page.locator('[role="alert"]').inner_text()
    tab.click("dismiss")
    assert tab.page.locator('[role="alert"]').count() == 0


def test_an_address_is_typed_or_pasted(tab: Tab) -> None:
    tab.go("kip-320~replicas.2").press("n")
    tab.page.locator('[data-key="address"]').fill(f" https://example.org/explorer/#{LOSS}@3 ")
    tab.click("open").at(3, 11)


def downloaded(tab: Tab, kind: str) -> tuple[str, bytes]:
    with tab.page.expect_download() as waiting:
        tab.page.locator(f'[data-key="download-{kind}"]').click()
    return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()


def test_downloads(tab: Tab) -> None:
    tab.go().press("d")
    name, itf = downloaded(tab, "itf")
    assert name == "truncate-to-hw-11-states.itf.json"
    assert len(json.loads(itf)["states"]) == 11
    assert downloaded(tab, "mermaid")[1].startswith(b"sequenceDiagram")
    assert b"MODELS['truncate-to-hw'].build" in downloaded(tab, "python")[1]
    assert downloaded(tab, "command")[1].startswith(b"kspec explore 'truncate-to-hw~")
    assert json.loads(downloaded(tab, "json")[1])["model"] == "truncate-to-hw"
    svg = downloaded(tab, "svg")[1]
    assert svg.startswith(b"<svg")
    assert "✕ m0(e0) lost" in svg.decode()
    assert downloaded(tab, "png")[1].startswith(b"\x89PNG")
    tab.page.locator('[data-key="show-command"]').click()
    tab.page.locator(".preview pre").filter(has_text="kspec explore").wait_for()
    tab.press("Escape")


def drop(tab: Tab, text: str, name: str = "trace.json") -> None:
    tab.page.evaluate(
        """([text, name]) => {
            const moved = new DataTransfer();
            moved.items.add(new File([text], name, { type: "application/json" }));
            document.querySelector("#explorer").dispatchEvent(new DragEvent("drop", { dataTransfer: moved, bubbles: true }));
        }""",
        [text, name],
    )


def test_a_trace_that_is_dropped_is_opened(tab: Tab) -> None:
    tab.go().press("d")
    itf = downloaded(tab, "itf")[1].decode()
    tab.press("Escape").go("kip-320")
    drop(tab, itf)
    tab.at(11, 11)
    assert tab.fragment.startswith("truncate-to-hw~")


def test_results_of_cases_that_are_dropped_show_the_failure_and_other_runs_are_open(tab: Tab) -> None:
    tab.go("kip-320~replicas.2").at(1, 1)
    drop(tab, json.dumps(results("pass", "fail")), "results.json")
    tab.at(3, 3)
    assert tab.fragment == "file~case%2F1~~3"
    assert "error_code: 0, not 75" in tab.text("state")
    assert tab.page.locator("svg.space-time .violating").count() == 1
    assert "fetch from <b>here</b>" in tab.page.locator("svg.space-time").text_content()
    assert not tab.page.locator(".pane.moves").is_visible()
    tab.press("ArrowLeft").at(2, 3).press("v").at(3, 3)
    tab.page.go_back()
    tab.page.go_back()
    tab.page.go_back()
    tab.at(1, 1)
    assert tab.fragment.startswith("kip-320~")
    tab.page.locator(".possible button").first.click()
    tab.at(2, 2)  # the rules are there again
    tab.page.go_back()
    tab.page.go_forward()
    tab.at(2, 2)


def test_a_recording_that_is_dropped_is_stepped_and_a_new_run_can_begin(tab: Tab) -> None:
    tab.go("kip-320~replicas.2").at(1, 1)
    made = Explorer().answer({"do": "import", "trace": results("fail")})["recording"]
    drop(tab, json.dumps(shortened(made)), "recording.json")
    tab.at(3, 3)
    tab.press("n")
    tab.page.locator('[data-key="address"]').fill("kip-101~replicas.2")
    tab.click("open").at(1, 1)
    assert tab.page.locator(".possible button").count() > 0


def test_a_link_to_a_run_in_a_file_says_that(tab: Tab) -> None:
    tab.go().at(11, 11).go("file~simulated-1~~12")
    assert "this is the address of a run that a file has" in tab.page.locator('[role="alert"]').inner_text()


@pytest.mark.parametrize(
    "views", [[1], [{}], [{"run": {}, "steps": [], "state": {}}], [{"$": 5}], [{"run": {"told": True}, "steps": 7}]], ids=str
)
def test_a_torn_recording_says_so_and_the_run_stays(tab: Tab, views: list[Any]) -> None:
    tab.go().at(11, 11)
    drop(tab, json.dumps({"format": 1, "views": views}), "torn.json")
    tab.page.locator('[role="alert"]').filter(has_text="torn.json").wait_for()
    tab.at(11, 11).click("dismiss")


HOSTILE = [
    ("kafka~release.9.9", "release"),
    ("kafka~release.1.0.1", "release"),
    ("kip-101~replicas.0", "replicas 0"),
    ("kip-101~replicas.999999999999", "replicas"),
    ("kip-101~replicas.-1", "replicas"),
    ("kip-101~nosuch.1", "nosuch"),
    ("kip-101~replicas.2~replicas.3", "replicas"),
    ("kip-101~replicas.2~~NoSuchAction_replica.1", "NoSuchAction"),
    ("kip-101~replicas.2~~ControllerElectLeader_replica.1_.99", "can be taken in one way here, not 99"),
    ("kip-101~replicas.2~~~~~~", "address"),
    ("~", "address"),
    ("%", "address"),
    ("%ZZ", "address"),
    ("kip-101~replicas.%3Cimg%20src=x%20onerror=alert(1)%3E", "address"),
    ("%3Cscript%3Ealert%281%29%3C%2Fscript%3E", "<script>alert(1)</script>"),
    ("kafka~mutant.%3Cb%3E", "mutant"),
    ("__proto__", "__proto__"),
    ("constructor~replicas.2", "constructor"),
    ("kip-101&beside=%3Cb%3E", "<b>"),
    ("kip-101&beside=kip-279~~ControllerElectLeader_replica.1", "has no steps"),
    ("kip-101@99999999999999999999", "this link is to state"),
    ("messages~fetches.200", "moves"),
    ("x" * 1_000_000, "letters"),
    ("kip-101~" + "replicas.2~" * 90_000, "letters"),
]


@pytest.mark.parametrize(("fragment", "words"), HOSTILE, ids=lambda text: text[:40])
def test_a_hostile_link_says_what_is_wrong_in_one_note_and_a_run_stays(tab: Tab, fragment: str, words: str) -> None:
    tab.go().at(11, 11)
    tab.page.evaluate("hash => { location.hash = hash; }", fragment)
    note = tab.page.locator('[role="alert"]')
    note.wait_for()
    said = note.inner_text()
    assert words in said
    assert len(said) < 1_100
    assert tab.page.locator('[role="alert"]').evaluate("one => [...one.children].map((child) => child.tagName)") == [
        "B",
        "BUTTON",
    ]
    tab.page.locator('[data-key="dismiss"]').click()
    assert tab.page.locator(".stage .card").count() >= 3


@pytest.mark.parametrize(
    ("text", "words"),
    [("what", "trace.json is no JSON"), ("[]", "trace"), ("{}", "it has no model and parameters")],
)
def test_a_file_that_is_no_trace_says_so_and_the_run_stays(tab: Tab, text: str, words: str) -> None:
    tab.go().at(11, 11)
    drop(tab, text)
    tab.page.locator('[role="alert"]').filter(has_text=words).wait_for()
    tab.at(11, 11).click("dismiss")


def test_a_file_is_chosen(tab: Tab, tmp_path: Path) -> None:
    tab.go().press("d")
    _, trace = downloaded(tab, "json")
    file = tmp_path / "run.json"
    file.write_bytes(trace)
    tab.press("Escape").go("kip-320").press("n")
    chosen: Any = tab.page.locator('[data-key="file"]')
    chosen.set_input_files(file)
    tab.at(11, 11)
