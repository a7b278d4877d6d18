"""The server of the explorer, asked as a page asks it, and as pages of others might."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kspec.cli.explorer import sessions
from kspec.cli.explorer.server import MOST_BYTES, application
from kspec.cli.explorer.sessions import Sessions
from kspec.model_check.explorer import Explorer
from tests.limits.turns import Turns

HERE = "http://127.0.0.1:8120"
TAB = "tab-00000001"
SMALL = {"replicas": 2, "log-size": 1, "max-records": 1, "max-epoch": 1, "restarts": 1, "acks": "all"}
LARGE = {"release": "4.4", "elections": 3, "fencings": 1, "isr-shrinks": 2}


class PageSession:
    """A session of the page, as one tab of a browser has it."""

    def __init__(self, client: TestClient, name: str = TAB) -> None:
        self.client, self.name = client, name

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        answer = self.client.post(f"/message?session={self.name}", json={"do": do, **fields})
        assert answer.status_code == 200
        told: dict[str, Any] = answer.json()
        return told

    def view(self, do: str, **fields: Any) -> dict[str, Any]:
        answer = self.ask(do, **fields)
        assert answer["answer"] == "view", answer
        return answer

    def post(self, path: str) -> dict[str, Any]:
        told: dict[str, Any] = self.client.post(f"/{path}?session={self.name}").json()
        return told


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text(
        '<!doctype html><title>a page</title><script type="application/json" id="back-end">{"kind":"worker"}</script>'
    )
    (tmp_path / "page.js").write_text("export const one = 1;\n")
    return tmp_path


@pytest.fixture
def client(page: Path) -> Iterator[TestClient]:
    with TestClient(application({"open": "kip-101</script>"}, page), base_url=HERE) as found:
        yield found


@pytest.fixture
def tab(client: TestClient) -> PageSession:
    return PageSession(client)


def test_the_page_is_told_that_it_talks_to_a_server(client: TestClient) -> None:
    for path in ("/", "/index.html"):
        text = client.get(path).text
        assert '{"kind":"server","open":"kip-101\\u003c/script>"}</script>' in text
    served = client.get("/page.js")
    assert served.text == "export const one = 1;\n"
    assert "javascript" in served.headers["content-type"]
    assert served.headers["cache-control"] == "no-store"
    assert "default-src 'self'" in served.headers["content-security-policy"]


def test_each_tab_has_a_run_of_its_own(client: TestClient) -> None:
    one, other = PageSession(client, "first-tab"), PageSession(client, "second-tab")
    one.view("start", model="kip-101", parameters=SMALL)
    assert other.ask("view")["kind"] == "no-run"
    other.view("start", model="kip-320", parameters=SMALL)
    one.view("step", index=next(move["index"] for move in one.view("view")["moves"] if move["enabled"]))
    assert (one.view("view")["position"], other.view("view")["position"]) == (2, 1)
    assert one.ask("view", id="x7")["id"] == "x7"


@pytest.mark.parametrize(
    ("headers", "status", "words"),
    [
        ({"Host": "evil.example:8120"}, 403, "answers as 127.0.0.1"),
        ({"Host": "127.0.0.1.evil.example"}, 403, "answers as 127.0.0.1"),
        ({"Host": ""}, 403, "answers as 127.0.0.1"),
        ({"Host": "192.168.0.1:8120"}, 403, "answers as 127.0.0.1"),
        ({"Origin": "http://evil.example"}, 403, "its own pages only"),
        ({"Origin": "http://127.0.0.1:9999"}, 403, "its own pages only"),
        ({"Origin": "https://127.0.0.1:8120"}, 403, "its own pages only"),
        ({"Origin": "null"}, 403, "its own pages only"),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403, "its own pages only"),
        ({"Content-Type": "text/plain"}, 415, "application/json"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415, "application/json"),
        ({"Host": "localhost:8120", "Origin": "http://localhost:8120"}, 200, ""),
        ({"Host": "LOCALHOST:8120"}, 200, ""),
        ({"Host": "[::1]:8120", "Origin": "http://[::1]:8120"}, 200, ""),
        ({"Host": "127.0.0.1"}, 200, ""),
    ],
)
def test_pages_of_others_get_nothing(client: TestClient, headers: dict[str, str], status: int, words: str) -> None:
    sent = {"Content-Type": "application/json", **headers}
    answer = client.post(f"/message?session={TAB}", content='{"do": "models"}', headers=sent)
    assert answer.status_code == status
    told = answer.json()
    if status != 200:
        assert (told["answer"], words in told["words"], "\n" in told["words"]) == ("error", True, False), told
    assert "access-control-allow-origin" not in answer.headers


def test_a_foreign_name_does_not_get_the_page_either(client: TestClient) -> None:
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
    assert client.get("/page.js", headers={"Host": "evil.example"}).status_code == 403


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"", 400, "bad-request"),
        (b"{", 400, "bad-request"),
        (b"\xff\xfe", 400, "bad-request"),
        (b"[" * 200_000, 400, "bad-request"),
        (b" " * (MOST_BYTES + 1), 413, "too-long"),
        (b"[1]", 200, "bad-message"),
        (b"null", 200, "bad-message"),
        (b'{"do": 7}', 200, "bad-message"),
        (b'{"do": "step", "index": 1e400}', 200, "bad-message"),
    ],
)
def test_a_body_that_is_no_message_is_one_clear_error(client: TestClient, body: bytes, status: int, kind: str) -> None:
    answer = client.post(f"/message?session={TAB}", content=body, headers={"Content-Type": "application/json"})
    told = answer.json()
    assert (answer.status_code, told["answer"], told["kind"]) == (status, "error", kind)
    assert "\n" not in told["words"]


@pytest.mark.parametrize("name", ["", "short", "x" * 65, "with space", "../../etc"])
def test_a_request_names_its_session(client: TestClient, name: str) -> None:
    answer = client.post("/message", params={"session": name}, json={"do": "models"})
    assert (answer.status_code, answer.json()["kind"]) == (400, "bad-request")


@pytest.mark.parametrize("path", ["/nothing.js", "/..%2f..%2fpyproject.toml", "/%00", "/message"])
def test_what_is_not_there_is_an_error(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (404, 405)
    assert answer.json()["answer"] == "error"


def test_the_session_that_has_been_idle_longest_goes(page: Path) -> None:
    with TestClient(application({}, page, Sessions(most=2)), base_url=HERE) as client:
        tabs = [PageSession(client, f"tab-number-{number}") for number in range(3)]
        for tab in tabs[:2]:
            tab.view("start", model="kip-101", parameters=SMALL)
        tabs[0].view("view")
        tabs[2].view("start", model="kip-101", parameters=SMALL)
        assert [tab.ask("view")["answer"] for tab in (tabs[2], tabs[0])] == ["view", "view"]
        assert tabs[1].ask("view")["kind"] == "no-run"


def test_a_model_that_takes_too_long_to_make_is_an_error(tab: PageSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "BUILDING_S", 0.0)
    told = tab.ask("start", model="kafka", parameters={"release": "4.4"})
    assert (told["kind"], "takes longer than" in told["words"]) == ("bad-model", True)
    monkeypatch.setattr(sessions, "BUILDING_S", 20.0)
    tab.view("start", model="kafka", parameters={"release": "4.4"})


def test_an_error_of_our_own_is_an_answer_too(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> dict[str, Any]:
        raise ZeroDivisionError("oh\nno")

    monkeypatch.setattr(Explorer, "answer", fail)
    with TestClient(application({}, page), base_url=HERE, raise_server_exceptions=False) as client:
        answer = client.post(f"/message?session={TAB}", json={"do": "models"})
    assert (answer.status_code, answer.json()["kind"]) == (500, "internal")
    assert answer.json()["words"] == "an error that nobody expected: ZeroDivisionError: oh no"


def test_a_search_finds_what_the_reference_engine_finds(tab: PageSession) -> None:
    tab.view("start", model="truncate-to-hw", parameters=SMALL)
    found = tab.ask("find", property="AcknowledgedOnLeader", id=3)
    assert (found["found"], len(found["steps"]), found["id"]) == (True, 10, 3)
    end = tab.view("open", address=found["address"])
    assert "AcknowledgedOnLeader" in end["steps"][-1]["violates"]
    here = tab.ask("find", property="TwoReplicasKnowOfCommit", start="here")
    assert (here["found"], here["complete"], here["start"]) == (False, True, "here")
    tab.view("start", model="kip-320", parameters=SMALL)
    bounded = tab.ask("find", property="AcknowledgedOnLeader", states=10)
    assert (bounded["found"], bounded["stopped_because"]) == (False, "the limit of 10 states is reached")


def test_a_search_that_cannot_be_is_an_error(tab: PageSession) -> None:
    assert tab.ask("find", property="AcknowledgedOnLeader")["kind"] == "no-run"
    tab.view("start", model="kip-101", parameters=SMALL)
    assert tab.ask("find", property="Nonsense")["kind"] == "unknown-property"
    assert tab.ask("find", property="AcknowledgedOnLeader", states=10**12)["kind"] == "bad-message"
    assert tab.ask("find", property="AcknowledgedOnLeader", states="many")["kind"] == "bad-message"
    assert tab.post("cancel") == tab.post("progress") == {"answer": "idle"}


@pytest.mark.slow
def test_others_are_answered_while_a_search_goes_on_and_it_can_be_cancelled(client: TestClient) -> None:
    tab, other = PageSession(client), PageSession(client, "another-tab")
    tab.view("start", model="kafka", parameters=LARGE)
    answers: list[dict[str, Any]] = []
    searching = threading.Thread(
        target=lambda: answers.append(tab.ask("find", property="CommittedOnNextLeader", states=5_000_000)), daemon=True
    )
    searching.start()
    end = time.monotonic() + 120
    turns = Turns()
    while tab.post("progress").get("states", 0) < 1_000:
        turns.go()
        assert time.monotonic() < end
        assert not answers, answers
        time.sleep(0.05)
    assert tab.view("view")["position"] == 1
    assert other.view("start", model="kip-101", parameters=SMALL)["position"] == 1
    assert tab.ask("find", property="CommittedOnNextLeader")["kind"] == "busy"
    assert tab.post("cancel") == {"answer": "cancelled"}
    searching.join(30)
    (found,) = answers
    assert (found["found"], found["stopped_because"], found["states"] >= 1_000) == (False, "interrupted", True)
    assert tab.post("progress") == {"answer": "idle"}
    assert tab.view("view")["position"] == 1


def test_a_search_whose_process_ends_says_so() -> None:
    async def asked() -> dict[str, Any]:
        held = Sessions()
        await held.answer(TAB, {"do": "start", "model": "kafka", "parameters": LARGE})
        message = {"do": "find", "property": "CommittedOnNextLeader", "states": 10**6}
        searching = asyncio.create_task(held.answer(TAB, message))
        turns = Turns()
        while not held.processes:
            turns.go()
            await asyncio.sleep(0.01)
        held.processes[0].end()
        answer = await asyncio.wait_for(searching, 30)
        await held.close()
        return answer

    answer = asyncio.run(asked())
    assert (answer["found"], answer["stopped_because"]) == (False, "the process that searched has ended")
    json.dumps(answer)
