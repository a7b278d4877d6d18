"""A recorded run, and the page of one file that steps through it: from a disk, without a network."""

import json
from pathlib import Path
from typing import Any

import pytest

from kspec.cli.explorer.one_file import one_file
from kspec.cli.explorer.recording import RecordingError, recorded
from kspec.cli.site.starting_points import index
from kspec.model_check.explorer import Explorer
from kspec.model_check.models import MODELS
from tests.cli.explorer.chromium import browser, complaints_of
from tests.limits.turns import Turns
from tests.model_check.commands import Command
from tests.model_check.explorer.test_told import results

SMALL = {"replicas": 2, "log-size": 1, "max-records": 1, "max-epoch": 1, "restarts": 1, "acks": "all"}
OPTIONS = [part for name, value in SMALL.items() for part in (f"--{name}", str(value))]
LOSS = ["truncate-to-hw", *OPTIONS, "--invariant", "AcknowledgedOnLeader"]


@pytest.fixture(scope="module")
def loss() -> str:
    explorer = Explorer()
    explorer.answer({"do": "start", "model": "truncate-to-hw", "parameters": SMALL})
    return str(explorer.answer({"do": "find", "property": "AcknowledgedOnLeader"})["address"])


def unfolded(document: dict[str, Any]) -> Any:
    """The document with its shared parts where they stand, as the page reads it."""
    parts: list[Any] = []

    def unfold(value: Any) -> Any:
        if isinstance(value, list):
            return [unfold(one) for one in value]
        if isinstance(value, dict):
            return parts[value["$"]] if list(value) == ["$"] else {key: unfold(one) for key, one in value.items()}
        return value

    for part in document["shared"]:
        parts.append(unfold(part))
    return {key: unfold(value) for key, value in document.items() if key != "shared"}


def test_a_recorded_run_has_the_views_of_all_positions(loss: str) -> None:
    document = recorded(loss, [{"do": "retrace", "model": "kip-101"}])
    whole = unfolded(json.loads(json.dumps(document)))
    explorer = Explorer()
    last = explorer.answer({"do": "open", "address": loss})
    assert len(whole["views"]) == last["position"] == 11
    for number, view in enumerate(whole["views"], start=1):
        assert view == json.loads(json.dumps(explorer.answer({"do": "jump", "to": number})))
    compared = [one for one in whole["answers"] if one["message"]["do"] == "retrace"]
    assert [one["position"] for one in compared] == list(range(1, 12))
    assert compared[-1]["answer"]["parts_at"] == 10
    assert len(json.dumps(document)) < len(json.dumps(whole)) / 2


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("kip-999~replicas.2", "there is no model 'kip-999'"),
        ("kip-101~replicas.2~~ControllerElectLeader_replica.1~ControllerElectLeader_replica.1", "step 3 of the address"),
        ("kip-101~~~~00000000", "not the state that the address was made for"),
    ],
)
def test_a_run_that_is_not_as_its_address_says_is_not_recorded(address: str, words: str) -> None:
    with pytest.raises(RecordingError, match=words):
        recorded(address)


def test_the_page_names_no_other_file(loss: str) -> None:
    text = one_file(recorded(loss), "A loss & <what> it was")
    assert "<title>A loss &amp; &lt;what&gt; it was</title>" in text
    head = text.partition("</head>")[0]
    assert 'src="' not in head.replace('<link rel="icon" href="data:', "")
    assert 'rel="stylesheet"' not in head
    assert "fetch(" not in head.partition('<script type="importmap">')[0]


RUNS = [run for group in index()["groups"] for run in group["runs"]]
LONGEST = {model: max((run for run in RUNS if run["model"] == model), key=lambda run: int(run["steps"])) for model in MODELS}
"""The longest run that is known of each model."""

MOST_BYTES = 2_000_000
"""The size of a page of one file at most: it goes with an issue, or a talk. The model `kafka` has the largest, 1.3 MB."""


def long_walk(model: str, most: int) -> str:
    """The address of a run that goes on for as many steps as it can, up to so many: always the first move that leads on."""
    explorer = Explorer()
    view = explorer.answer({"do": "start", "model": model, "parameters": {}})
    seen = {view["address"].rpartition("~~")[2]}
    turns = Turns(seconds=300)
    while view["position"] <= most:
        turns.go()
        possible = [move for move in view["moves"] if move["enabled"]]
        for move in possible:
            after = explorer.answer({"do": "step", "index": move["index"]})
            if after["address"].rpartition("~~")[2] not in seen:
                break
            explorer.answer({"do": "undo"})
        else:
            break
        view = after
        seen.add(view["address"].rpartition("~~")[2])
    return str(view["address"])


@pytest.mark.slow
def test_a_page_of_one_file_opens_for_each_model_without_a_network(tmp_path: Path) -> None:
    with browser() as chromium:
        page = chromium.new_context(offline=True).new_page()
        complaints = complaints_of(page)
        for model, run in LONGEST.items():
            file = tmp_path / f"{model}.html"
            file.write_text(one_file(recorded(run["address"]), model), encoding="utf-8")
            assert file.stat().st_size < MOST_BYTES, (model, file.stat().st_size)
            page.goto(file.as_uri())
            last = run["steps"] + 1
            page.get_by_text(f"state {last} of {last}", exact=True).wait_for(timeout=60_000)
            page.keyboard.press("ArrowLeft")
            page.get_by_text(f"state {last - 1} of {last}", exact=True).wait_for(timeout=30_000)
        assert complaints == []


@pytest.mark.slow
def test_a_run_of_a_hundred_steps_is_small_enough_for_one_file_and_steps(tmp_path: Path) -> None:
    address = long_walk("shutdown", 100)
    file = tmp_path / "long.html"
    file.write_text(one_file(recorded(address), "long"), encoding="utf-8")
    assert file.stat().st_size < MOST_BYTES
    steps = address.split("~~")[1].count("~") + 1
    assert steps >= 20
    with browser() as chromium:
        page = chromium.new_context(offline=True).new_page()
        complaints = complaints_of(page)
        page.goto(file.as_uri())
        page.get_by_text(f"state {steps + 1} of {steps + 1}", exact=True).wait_for(timeout=60_000)
        page.keyboard.press("Home")
        page.get_by_text(f"state 1 of {steps + 1}", exact=True).wait_for(timeout=30_000)
        assert complaints == []


HOSTILE = "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>"


@pytest.mark.slow
def test_hostile_names_in_a_recording_are_text(tmp_path: Path) -> None:
    told = Explorer().answer({"do": "import", "trace": results("fail")})["recording"]
    text = json.dumps(told).replace("Fetch", json.dumps(HOSTILE)[1:-1]).replace("case/0", json.dumps(HOSTILE)[1:-1])
    file = tmp_path / "hostile.html"
    file.write_text(one_file(json.loads(text), HOSTILE), encoding="utf-8")
    with browser() as chromium:
        page = chromium.new_context(offline=True).new_page()
        complaints = complaints_of(page)
        page.goto(file.as_uri())
        page.get_by_text("state 3 of 3", exact=True).wait_for(timeout=60_000)
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert page.evaluate("window.hurt") is None
        assert HOSTILE in page.inner_text("h1")
        assert page.title() != ""
        assert complaints == []


def test_a_link_to_nothing_leaves_the_run_of_the_page(loss: str, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    file.write_text(one_file(recorded(loss), "A loss"), encoding="utf-8")
    with browser() as chromium:
        page = chromium.new_context(offline=True).new_page()
        page.goto(f"{file.as_uri()}#kip-320~replicas.2")
        page.get_by_text("state 11 of 11", exact=True).wait_for(timeout=60_000)
        assert "this page has a recorded run" in page.locator('[role="alert"]').inner_text()


@pytest.mark.slow
def test_it_steps_from_a_disk_without_a_network(loss: str, tmp_path: Path) -> None:
    file = tmp_path / "a run.html"
    file.write_text(one_file(recorded(loss), "A loss"), encoding="utf-8")
    with browser() as chromium:
        page = chromium.new_context(offline=True, accept_downloads=True).new_page()
        complaints = complaints_of(page)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        page.get_by_text("state 11 of 11").wait_for(timeout=60_000)
        assert "violated" in page.inner_text("body")
        page.keyboard.press("ArrowLeft")
        page.get_by_text("state 10 of 11").wait_for(timeout=10_000)
        page.goto(f"{file.as_uri()}#{loss}@2")
        page.get_by_text("state 2 of 11").wait_for(timeout=10_000)
        page.keyboard.press("ArrowRight")
        page.get_by_text("state 3 of 11").wait_for(timeout=10_000)
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
        assert complaints == []


def test_check_and_explore_write_the_same_page(command: Command, tmp_path: Path, loss: str) -> None:
    done = command("check", *LOSS, "--engine", "reference", "--quiet", "--html", str(tmp_path / "a.html"))
    assert (done.status, done.stderr) == (1, "")
    assert "AcknowledgedOnLeader VIOLATED after 10 steps</title>" in (tmp_path / "a.html").read_text()
    done = command("explore", loss, "--html", str(tmp_path / "b.html"))
    assert (done.status, done.stdout, done.stderr) == (0, "", "")
    assert loss in (tmp_path / "b.html").read_text()
    printed = command("explore", loss, "--html", "-").stdout
    assert printed == (tmp_path / "b.html").read_text()


def test_a_seed_is_shown(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    walks = ["truncate-to-hw", *OPTIONS, "--traces", "2000", "--depth", "30", "--seed", "7", "--quiet"]
    done = command("simulate", *walks, "--html", str(page))
    assert (done.status, done.stderr) == (1, "")
    assert "VIOLATED in" in page.read_text().partition("</title>")[0]
    done = command("simulate", "kip-320", *OPTIONS, "--traces", "10", "--quiet", "--html", str(tmp_path / "b.html"))
    assert (done.status, done.stderr) == (0, "kspec: no property was violated, so there is no run to write or show\n")
    assert not (tmp_path / "b.html").exists()


def test_a_trace_of_check_is_opened(command: Command, tmp_path: Path, loss: str) -> None:
    itf, report, text = tmp_path / "a.itf.json", tmp_path / "a.json", tmp_path / "address.txt"
    report.write_text(command("check", *LOSS, "--engine", "reference", "--quiet", "--json", "--itf", str(itf)).stdout)
    text.write_text(f"http://127.0.0.1:8120/#{loss}\n")
    for file in (itf, report, text):
        done = command("explore", "--run", str(file), "--html", str(tmp_path / "run.html"))
        assert (done.status, done.stderr) == (0, "")
        assert "BecomeFollowerTruncateToHighWatermark" in (tmp_path / "run.html").read_text()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it does not begin with the name of a model"),
        (b"{", "is no JSON"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"[" * 100_000, "is no JSON"),
        (b"{}", "trace"),
        (b'{"#meta": {"model": "kip-999", "parameters": {}}, "vars": [], "states": []}', "kip-999"),
        (b"what is this", "is in no address"),
        (b"~" * 1_000_000, "this address cannot be read"),
    ],
)
def test_a_file_that_is_no_run_is_one_line(command: Command, tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "run"
    file.write_bytes(content)
    done = command("explore", "--no-browser", "--run", str(file))
    assert done.mistake == (2, 1), done.stderr[-500:]
    assert words in done.stderr
    assert len(done.stderr) < 1_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explore", "--html", "-"], "--html writes a run"),
        (["explore", "--html", "/nowhere/run.html", "kip-101"], "cannot write /nowhere/run.html"),
        (["explore", "--run", "/nowhere/run.json"], "cannot read /nowhere/run.json"),
        (["explore", "kip-101", "--run", "run.json"], "--run FILE has a model"),
        (["check", "kip-101", "--html", "/nowhere/run.html"], "cannot write /nowhere/run.html"),
        (["check", "kip-101", "--html", "-", "--itf", "-"], "both write to standard output"),
        (["simulate", "kip-101", "--html", "-", "--mermaid", "-"], "both write to standard output"),
        (["study", "--html", "run.html"], "kspec study NAME --html FILE"),
    ],
)
def test_bad_usage_is_one_line(command: Command, arguments: list[str], words: str) -> None:
    done = command(*arguments)
    assert done.mistake == (2, 1)
    assert words in done.stderr
