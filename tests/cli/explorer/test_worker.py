"""The page on a static site: the rules run in a web worker of a real browser. And the page whose server goes away."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kspec.cli.explorer.live import write_worker
from kspec.cli.explorer.npm import PackageError
from kspec.cli.explorer.page import PAGE, page_for
from kspec.model_check.models import MODELS
from tests.cli.explorer.chromium import browser, complaints_of, served
from tests.cli.explorer.test_explore_command import serving

LOADING_MS = 120_000
RUN = "kip-101~replicas.2~log-size.1~max-records.1~max-epoch.1~restarts.1~acks.all"
ASK = """async ([messages, cancelAfter]) => {
  const worker = new Worker("worker.js", { type: "module" });
  const answers = new Map(), notes = [];
  worker.onmessage = ({ data }) => {
    if (data.answer) answers.get(data.id)(data.answer);
    else notes.push(data);
    if (cancelAfter !== null && data.progress?.states > cancelAfter) worker.postMessage({ cancel: true });
  };
  const told = [];
  for (const [id, message] of messages.entries()) {
    told.push(await new Promise((resolve) => { answers.set(id, resolve); worker.postMessage({ id, message }); }));
  }
  worker.terminate();
  return [told, notes];
}"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "explorer"
    shutil.copytree(PAGE, folder)
    (folder / "index.html").write_text(page_for({"kind": "worker"}))
    try:
        write_worker(folder)
    except PackageError as error:
        pytest.skip(f"NOT RUN: {error}")
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as found:
        yield found


def test_a_static_folder_steps_and_searches(chromium: Any, site: Path) -> None:
    with served(site.parent) as address:
        page = chromium.new_page()
        complaints = complaints_of(page)
        page.goto(f"{address}explorer/#{RUN}")
        page.get_by_text("state 1 of 1").wait_for(timeout=LOADING_MS)
        page.keyboard.press("1")
        page.get_by_text("state 2 of 2").wait_for(timeout=30_000)
        link = page.url
        other = chromium.new_page()
        other.goto(link)
        other.get_by_text("state 2 of 2").wait_for(timeout=LOADING_MS)
        assert complaints == []
        page.close()
        other.close()


def test_a_worker_answers_and_a_search_in_it_can_be_cancelled(chromium: Any, site: Path) -> None:
    start = {"do": "start", "model": "kafka", "parameters": {"release": "4.4", "elections": 2}}
    find = {"do": "find", "property": "CommittedOnNextLeader", "states": 500_000}
    messages = [{"do": "models"}, start, find, {"do": "view"}, {"do": "nonsense"}]
    with served(site) as address:
        page = chromium.new_page()
        page.goto(f"{address}index.html")
        (models, view, found, again, wrong), notes = page.evaluate(ASK, [messages, 100])
        page.close()
    assert len(models["models"]) == len(MODELS)
    assert (view["answer"], again["position"], wrong["kind"]) == ("view", 1, "bad-message")
    assert {"cancellable": True} in notes
    assert (found["found"], found["stopped_because"]) == (False, "interrupted")


NESTED = """async () => {
  const { workerBackEnd } = await import("./back_ends/worker.js");
  let trace = {};
  for (let depth = 0; depth < 3000; depth++) trace = { trace };
  return workerBackEnd({}).ask({ do: "import", trace });
}"""


def test_a_message_that_is_nested_too_deeply_is_answered(chromium: Any, site: Path) -> None:
    with served(site) as address:
        page = chromium.new_page()
        page.goto(f"{address}index.html")
        answer = page.evaluate(NESTED)
        page.close()
    assert (answer["answer"], answer["kind"]) == ("error", "bad-message")


@pytest.mark.parametrize(
    "name", ["rooms.zip", "pyodide/pyodide.mjs", "pyodide/python_stdlib.zip", "pyodide/pyodide.asm.wasm.packed"]
)
def test_a_file_that_is_missing_is_told(chromium: Any, site: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "site"
    shutil.copytree(site, folder)
    (folder / name).unlink()
    with served(folder) as address:
        page = chromium.new_page()
        page.goto(f"{address}index.html")
        ((answer, again), _) = page.evaluate(ASK, [[{"do": "models"}, {"do": "models"}], None])
        page.close()
    assert answer["kind"] == again["kind"] == "no-back-end"
    assert answer["words"].startswith("the model cannot run in this browser: ")


def test_a_page_whose_server_goes_away_says_so_and_goes_on_with_the_next(chromium: Any) -> None:
    page = chromium.new_page()
    with serving("kip-101", "--replicas", "2") as (_, url):
        port = url.split("/#", maxsplit=1)[0].rpartition(":")[2]
        page.goto(url)
        page.get_by_text("state 1 of 1").wait_for(timeout=30_000)
        page.keyboard.press("1")
        page.get_by_text("state 2 of 2").wait_for(timeout=30_000)
    page.keyboard.press("1")
    page.get_by_text("the server does not answer").first.wait_for(timeout=30_000)
    assert page.get_by_text("state 2 of 2").is_visible()
    with serving("--port", port):
        page.keyboard.press("1")
        page.get_by_text("state 3 of 3").wait_for(timeout=30_000)
    page.close()


def test_two_tabs_have_runs_of_their_own(chromium: Any) -> None:
    with serving() as (_, url):
        one, other = chromium.new_page(), chromium.new_page()
        one.goto(f"{url}#kip-101~replicas.2")
        other.goto(f"{url}#kip-320~replicas.2")
        for page in (one, other):
            page.get_by_text("state 1 of 1").wait_for(timeout=30_000)
            page.keyboard.press("1")
        for page, model in ((one, "kip-101"), (other, "kip-320")):
            page.get_by_text("state 2 of 2").wait_for(timeout=30_000)
            assert page.url.partition("#")[2].startswith(model)
            page.close()
