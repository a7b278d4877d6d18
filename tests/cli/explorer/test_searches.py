"""Searches of models with many states: others are answered meanwhile, and a search ends when nobody wants it any more.

The server is a process, as for readers, and tabs are connections to it.
"""

import asyncio
import http.client
import json
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kspec.cli.explorer import sessions
from kspec.cli.explorer.searching import OUT_OF_MEMORY
from kspec.cli.explorer.sessions import MOST_SEARCHES, Sessions
from kspec.model_check.core.exploration import INTERRUPTED
from tests.cli.explorer.test_explore_command import serving
from tests.limits.turns import Turns

MANY = {"release": "4.4", "elections": 3, "fencings": 1, "isr-shrinks": 2}
"""Bounds of the model `kafka` within which it has millions of states."""

PROPERTIES = ("CommittedOnNextLeader", "LogMatching")
STATES = 10_000_000
SEEN = 2_000
"""States that a search has seen before it is said to go on."""

SMALL = {"replicas": 2, "log-size": 1, "max-records": 1, "max-epoch": 1, "restarts": 1, "acks": "all"}

PATIENCE_S = 120.0
"""Seconds after which a loop gives up: an emergency stop."""

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="NOT RUN: there is no /proc to find processes in"
)


class ServerTab:
    """A tab of the page at the server of this address."""

    def __init__(self, url: str, name: str) -> None:
        self.host, self.name = url.partition("//")[2].partition("/")[0], name
        self.answers: list[dict[str, Any]] = []
        self.connection = self._connected()

    def _connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, timeout=PATIENCE_S)

    def send(self, connection: http.client.HTTPConnection, message: dict[str, Any]) -> None:
        """Send a message, and wait for nothing."""
        body = json.dumps(message).encode()
        connection.request("POST", f"/message?session={self.name}", body, {"Content-Type": "application/json"})

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """The answer to a message."""
        connection = self._connected()
        self.send(connection, {"do": do, **fields})
        told: dict[str, Any] = json.loads(connection.getresponse().read())
        connection.close()
        return told

    def view(self, do: str, **fields: Any) -> dict[str, Any]:
        """An answer that must be a view."""
        told = self.ask(do, **fields)
        assert told["answer"] == "view", told
        return told

    def post(self, path: str) -> dict[str, Any]:
        """The answer to `progress` or `cancel`."""
        connection = self._connected()
        connection.request("POST", f"/{path}?session={self.name}")
        told: dict[str, Any] = json.loads(connection.getresponse().read())
        connection.close()
        return told

    def search(self, prop: str) -> threading.Thread:
        """Begin a search; its answer comes to `answers`."""

        def found() -> None:
            with suppress(http.client.HTTPException, OSError):  # the server has ended
                self.answers.append(self.ask("find", property=prop, states=STATES))

        thread = threading.Thread(target=found, daemon=True)
        thread.start()
        return thread

    @property
    def states(self) -> int:
        """The states that its search has seen."""
        assert not self.answers, self.answers
        seen: int = self.post("progress").get("states", 0)
        return seen

    def step(self, number: int) -> dict[str, Any]:
        """Take a step, or begin anew where none is possible."""
        possible = [move["index"] for move in self.view("view")["moves"] if move["enabled"]]
        return self.view("step", index=possible[number % len(possible)]) if possible else self.view("jump", to=1)


def wait_until(come: Callable[[], object]) -> None:
    turns = Turns(seconds=PATIENCE_S)
    while not come():
        turns.go()
        time.sleep(0.05)


def children_of(process: int) -> set[int]:
    """The processes that a process has started and that have not ended."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # it has just ended
            continue
        if int(parent) == process and state != "Z":
            found.add(int(stat.parent.name))
    return found


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def searching(url: str, names: tuple[str, ...] = ("first-tab", "second-tab")) -> list[ServerTab]:
    """Tabs in which searches go on, each for another property."""
    tabs = [ServerTab(url, name) for name in names]
    for tab, prop in zip(tabs, PROPERTIES, strict=False):
        tab.view("start", model="kafka", parameters=MANY)
        tab.search(prop)
    wait_until(lambda: min([tab.states for tab in tabs]) >= SEEN)
    return tabs


@pytest.mark.slow
def test_steps_are_answered_while_two_tabs_search_and_each_search_ends_for_itself() -> None:
    with serving() as (_, url):
        one, other = searching(url)
        third = ServerTab(url, "third-tab")
        third.view("start", model="kip-320", parameters={})
        before = one.states, other.states
        for number in range(20):
            assert third.step(number)["position"] == number + 2 or number > 10
        for number in range(5):
            one.step(number)
        assert one.view("view")["position"] == 6
        wait_until(lambda: min(one.states - before[0], other.states - before[1]) > 0)
        assert one.ask("find", property=PROPERTIES[1])["kind"] == "busy"
        assert one.post("cancel") == {"answer": "cancelled"}
        wait_until(lambda: one.answers)
        (told,) = one.answers
        assert (told["property"], told["found"], told["stopped_because"]) == (PROPERTIES[0], False, INTERRUPTED)
        assert told["states"] >= SEEN
        assert one.post("progress") == {"answer": "idle"}
        since = other.states
        wait_until(lambda: other.states > since)
        other.post("cancel")
        wait_until(lambda: other.answers)
        assert (other.answers[0]["property"], other.answers[0]["stopped_because"]) == (PROPERTIES[1], INTERRUPTED)


@needs_proc
@pytest.mark.slow
def test_a_search_ends_with_its_tab_and_the_tab_may_come_back() -> None:
    with serving() as (server, url):
        tab = ServerTab(url, "a-tab-that-goes")
        tab.view("start", model="kafka", parameters=MANY)
        before = children_of(server.pid)
        connection = http.client.HTTPConnection(tab.host, timeout=PATIENCE_S)
        tab.send(connection, {"do": "find", "property": PROPERTIES[0], "states": STATES})
        wait_until(lambda: tab.states >= SEEN)
        assert len(children_of(server.pid) - before) == 1
        connection.close()
        wait_until(lambda: not children_of(server.pid) - before)
        wait_until(lambda: tab.post("progress") == {"answer": "idle"})
        tab.view("start", model="truncate-to-hw", parameters=SMALL)
        assert len(tab.ask("find", property="AcknowledgedOnLeader")["steps"]) == 10


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_searches_end_with_the_server(number: signal.Signals) -> None:
    with serving() as (server, url):
        searching(url)
        searches = children_of(server.pid)
        assert len(searches) >= 2
        server.send_signal(number)
        _, complaint = server.communicate(timeout=60)
        if number != signal.SIGKILL:
            assert (server.returncode, complaint) == (3, "kspec: interrupted\n")
        wait_until(lambda: not any(map(is_running, searches)))


@pytest.mark.slow
def test_a_model_that_is_made_does_not_hold_up_ctrl_c() -> None:
    with serving() as (server, url):
        tab = ServerTab(url, "a-tab-that-makes")
        tab.view("start", model="kip-101", parameters=SMALL)
        connection = http.client.HTTPConnection(tab.host, timeout=PATIENCE_S)
        tab.send(connection, {"do": "start", "model": "kafka", "parameters": {"brokers": 5, "values": 4, "elections": 9}})
        time.sleep(0.5)
        server.send_signal(signal.SIGINT)
        _, complaint = server.communicate(timeout=60)
        connection.close()
        assert (server.returncode, complaint) == (3, "kspec: interrupted\n")


async def found_in(held: Sessions, name: str, model: str, parameters: dict[str, Any], prop: str) -> dict[str, Any]:
    """The answer of a search in a tab of its own."""
    await held.answer(name, {"do": "start", "model": model, "parameters": parameters})
    return await held.answer(name, {"do": "find", "property": prop, "states": STATES, "id": 7})


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="NOT RUN: a process's memory is limited by `ulimit -v`, as on Linux")
def test_a_search_without_memory_says_so_and_the_next_one_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = tmp_path / "python"
    small.write_text(f'#!/bin/sh\nulimit -v 1000000\nexec {shlex.quote(sys.executable)} "$@"\n')
    small.chmod(0o755)

    async def asked() -> list[dict[str, Any]]:
        held = Sessions()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "executable", str(small))
            first = await found_in(held, "first-tab", "kafka", MANY, PROPERTIES[0])
        second = await found_in(held, "second-tab", "truncate-to-hw", SMALL, "AcknowledgedOnLeader")
        await held.close()
        return [first, second]

    first, second = asyncio.run(asyncio.wait_for(asked(), PATIENCE_S))
    assert (first["found"], first["complete"], first["stopped_because"]) == (False, False, OUT_OF_MEMORY)
    assert (first["property"], first["id"]) == (PROPERTIES[0], 7)
    assert (second["found"], len(second["steps"])) == (True, 10)


@pytest.mark.slow
def test_more_tabs_than_may_search_do_not_search_though_all_ask_at_once() -> None:
    async def asked() -> list[dict[str, Any]]:
        held = Sessions()
        tabs = [f"tab-number-{number}" for number in range(2 * MOST_SEARCHES)]
        for tab in tabs:
            await held.answer(tab, {"do": "start", "model": "truncate-to-hw", "parameters": SMALL})
        find = {"do": "find", "property": "AcknowledgedOnLeader"}
        answers = await asyncio.gather(*(held.answer(tab, find) for tab in tabs))
        again = await held.answer(tabs[-1], find)
        await held.close()
        return [*answers, again]

    *answers, again = asyncio.run(asyncio.wait_for(asked(), PATIENCE_S))
    assert [answer.get("kind") for answer in answers] == [None] * MOST_SEARCHES + ["busy"] * MOST_SEARCHES
    assert all(answer["found"] for answer in [*answers[:MOST_SEARCHES], again])


@pytest.mark.slow
def test_a_search_ends_about_whose_progress_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "ABANDONED_S", 0.0)

    async def asked() -> dict[str, Any]:
        held = Sessions()
        told = await found_in(held, "a-tab-asleep", "kafka", MANY, PROPERTIES[0])
        assert held.processes == []
        await held.close()
        return told

    told = asyncio.run(asyncio.wait_for(asked(), PATIENCE_S))
    assert (told["found"], told["stopped_because"], told["id"]) == (False, INTERRUPTED, 7)
