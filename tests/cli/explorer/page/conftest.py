"""The page in Debian's Chromium, on the server and on the web worker. Without Chromium its tests are skipped, loudly."""

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from kspec.cli.explorer.live import write_worker
from kspec.cli.explorer.npm import PackageError
from kspec.cli.explorer.page import PAGE, page_for
from kspec.cli.explorer.server import application
from tests.cli.explorer.chromium import browser, complaints_of, served
from tests.limits.marks import marked
from tests.limits.turns import Turns

PATIENCE_MS = 30_000

LOSS = (
    "truncate-to-hw~replicas.2~log-size.1~max-records.1~max-epoch.1~restarts.1~acks.all~~ControllerElectLeader_replica.1"
    "~BecomeLeader_leader.1_epoch.0~BecomeFollowerTruncateToHighWatermark_follower.2_leader.1_epoch.0~LeaderWrite_leader.1"
    "~FollowerReplicate_follower.2_leader.1~LeaderIncHighWatermark_leader.1~Restart_replica.2~ControllerElectLeader_replica.2"
    "~BecomeFollowerTruncateToHighWatermark_follower.2_leader.1_epoch.0~BecomeLeader_leader.2_epoch.1"
)
"""The loss that KIP-101 repaired: 11 states."""


class Tab:
    """A tab with the page, and what its console has complained of."""

    def __init__(self, page: Any, url: str) -> None:
        self.page, self.url = page, url
        self.complaints = complaints_of(page)
        self.elsewhere: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("request", self._asked)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.url, "blob:", "data:")):
            self.elsewhere.append(request.url)

    def go(self, fragment: str = LOSS) -> "Tab":
        """Open a fragment, and wait until it is shown."""
        self.page.goto(f"{self.url}#{fragment}")
        return self.settled()

    def settled(self) -> "Tab":
        """Wait until everything that was asked is answered and drawn."""
        self.page.locator('#explorer[aria-busy="false"]').wait_for()
        return self

    def at(self, position: int, length: int) -> "Tab":
        """Wait for a state of the run."""
        self.page.get_by_text(f"state {position} of {length}", exact=True).wait_for()
        return self.settled()

    def press(self, key: str) -> "Tab":
        """Press a key, wherever the focus is."""
        self.page.keyboard.press(key)
        return self.settled()

    def click(self, key: str) -> "Tab":
        """Click the control with this key of its own."""
        self.page.locator(f'[data-key="{key}"]').first.click()
        return self.settled()

    @property
    def fragment(self) -> str:
        """The URL's fragment."""
        found: str = self.page.evaluate("location.hash.slice(1)")
        return found

    def text(self, pane: str) -> str:
        """The text of a pane."""
        found: str = self.page.locator(f".pane.{pane}").inner_text()
        return found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser for the tests of a module: a process has one driver at a time."""
    with browser() as found:
        yield found


@contextmanager
def server() -> Iterator[str]:
    """`kspec explore` on a free port."""
    config = uvicorn.Config(application({}), port=0, log_level="warning", timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    turns = Turns(seconds=30)
    while not running.started:
        turns.go()
        time.sleep(0.05)
    yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}/"
    running.should_exit = True
    thread.join(10)


@contextmanager
def static_site(folder: Path) -> Iterator[str]:
    """The page with its web worker, as files that any web server has."""
    shutil.copytree(PAGE, folder, dirs_exist_ok=True)
    try:
        write_worker(folder)
    except PackageError as error:
        pytest.skip(f"NOT RUN: {error}")
    (folder / "index.html").write_text(page_for({"kind": "worker"}), encoding="utf-8")
    with served(folder) as url:
        yield url


@contextmanager
def page_on(back_end: str, chromium: Any, folder: Path) -> Iterator[Tab]:
    """A tab with the page on one of its back ends."""
    with server() if back_end == "server" else static_site(folder) as url:
        context = chromium.new_context(viewport={"width": 1440, "height": 1000}, accept_downloads=True)
        yield Tab(context.new_page(), url)
        context.close()


@pytest.fixture(scope="module", params=marked(["server", "worker"], nightly=["worker"]))
def tab(request: pytest.FixtureRequest, chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """One tab for the tests of a module: a worker loads once. Each test opens what it needs."""
    with page_on(request.param, chromium, tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture(autouse=True)
def _no_complaints(tab: Tab) -> Iterator[None]:
    """No test leaves an error in the console, or asks another machine."""
    yield
    assert (tab.complaints, tab.elsewhere) == ([], [])
