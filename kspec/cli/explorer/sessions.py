"""Sessions of the server of the explorer: one for each tab, each with an explorer, and with at most one search."""

import asyncio
import json
import subprocess
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from kspec.cli.explorer.searching import OUT_OF_MEMORY
from kspec.model_check.core.exploration import INTERRUPTED
from kspec.model_check.core.preparation import watched
from kspec.model_check.explorer import Explorer

MOST_SESSIONS = 32
"""Sessions that are kept; when another one comes, the one that has been idle longest goes."""

MOST_SEARCHES = 4
"""Searches at a time, each a process."""

IDLE_PROCESSES = 1
"""Processes without a search that are kept, so that the next one starts at once."""

MOST_STATES = 10_000_000
"""The states that a search may ask for: what has room in the memory of a small machine."""

BUILDING_S = 20.0
"""Seconds that the making of a model may take: others wait meanwhile."""

STOPPING_S = 3.0
"""Seconds that a cancelled search may take until it answers."""

ABANDONED_S = 60.0
"""Seconds after which a search ends about whose progress nobody asks."""

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes of an answer of a search at most."""

SEARCHES = ("find", "differ")
"""The messages that search."""

Answer = dict[str, Any]


def error(kind: str, words: str) -> Answer:
    """An error as an explorer tells it."""
    return {"answer": "error", "kind": kind, "words": words}


class _TooSlowError(Exception):
    """The making of a model that takes too long."""


class SearchWorker:
    """A process that searches, and what it has told last."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._is_ended = False

    @classmethod
    async def started(cls) -> "SearchWorker":
        """A new process."""
        module = f"{__package__}.searching"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=LONGEST_LINE
        )
        return cls(process)

    async def tell(self, question: Answer) -> None:
        """Send a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        await self.process.stdin.drain()

    async def next_answer(self) -> Answer | None:
        """The next line, or None if the process has ended."""
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        answer: Answer | None = json.loads(line) if line else None
        return answer

    def end(self) -> None:
        """End the process, whatever it does. Who kills one twice takes its exit status away from those who wait for it."""
        if self._is_ended:
            return
        self._is_ended = True
        with suppress(ProcessLookupError):
            self.process.kill()
        if self.process.stdin is not None:
            self.process.stdin.close()


class SearchUnderway:
    """A search of a session: its progress, and whether it is to stop."""

    def __init__(self) -> None:
        self.progress: Answer = {"answer": "progress", "level": 0, "states": 0}
        self.stop = asyncio.Event()
        self.asked_at = time.monotonic()


class Session:
    """A tab: its explorer, and the search that goes on in it, if there is one."""

    def __init__(self) -> None:
        self.explorer = Explorer()
        self.search: SearchUnderway | None = None


class Sessions:
    """All sessions. Explorers answer in one thread, one after the other; searches have processes of their own."""

    def __init__(self, most: int = MOST_SESSIONS) -> None:
        self.most = most
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, "explorer")
        self._idle: list[SearchWorker] = []
        self._searching: set[SearchWorker] = set()
        self._underway = 0
        self._ending = False

    def session(self, name: str) -> Session:
        """The session of this name, which is new if there is none."""
        if name not in self._sessions:
            while len(self._sessions) >= self.most:
                idle = next((one for one, session in self._sessions.items() if session.search is None), None)
                if idle is None:
                    break
                del self._sessions[idle]
            self._sessions[name] = Session()
        self._sessions.move_to_end(name)
        return self._sessions[name]

    async def answer(self, name: str, message: Any, gone: Callable[[], Any] | None = None) -> Answer:
        """The answer to a message of a session. `gone`: a coroutine that says whether nobody waits for the answer."""
        session = self.session(name)
        if isinstance(message, dict) and message.get("do") in SEARCHES:
            marked = {"id": message["id"]} if "id" in message else {}
            return {**await self._found(session, message, gone), **marked}
        return await self._in_thread(session.explorer.answer, message)

    async def _in_thread(self, function: Callable[[Any], Answer], message: Any) -> Answer:
        def answered() -> Answer:
            end = time.monotonic() + BUILDING_S

            def check(doing: str) -> None:
                if self._ending or time.monotonic() > end:
                    raise _TooSlowError(doing)

            try:
                with watched(check):
                    return function(message)
            except _TooSlowError as slow:
                words = f"{slow} takes longer than {BUILDING_S:g} s here; choose smaller bounds (kspec check takes these)"
                return error("bad-model", words)
            except RecursionError:
                return error("bad-message", "the message is nested too deeply")

        return await asyncio.get_running_loop().run_in_executor(self._thread, answered)

    # ---- searches

    def progress(self, name: str) -> Answer:
        """The progress of the search of a session; `idle` if there is none."""
        session = self._sessions.get(name)
        if session is None or session.search is None:
            return {"answer": "idle"}
        session.search.asked_at = time.monotonic()
        return session.search.progress

    def cancel(self, name: str) -> Answer:
        """Let the search of a session stop. Its own answer tells how far it came."""
        session = self._sessions.get(name)
        if session is None or session.search is None:
            return {"answer": "idle"}
        session.search.stop.set()
        return {"answer": "cancelled"}

    async def _found(self, session: Session, message: Answer, gone: Callable[[], Any] | None) -> Answer:
        if session.search is not None:
            return error("busy", "a search goes on in this tab; cancel it, or wait for its end")
        if self._underway >= MOST_SEARCHES:
            return error("busy", f"{MOST_SEARCHES} searches go on, and no more at a time; wait for the end of one")
        states = message.get("states")
        if isinstance(states, int) and states > MOST_STATES:
            return error("bad-message", f"states {states:,}: must be {MOST_STATES:,} or less here (kspec check takes more)")
        session.search = search = SearchUnderway()
        self._underway += 1
        try:
            address = await asyncio.get_running_loop().run_in_executor(self._thread, lambda: session.explorer.address)
            if address is None:  # an error, which the explorer tells
                return await self._in_thread(session.explorer.answer, message)
            return await self._searched({"address": address, "message": message}, search, gone)
        finally:
            session.search = None
            self._underway -= 1

    async def _searched(self, question: Answer, search: SearchUnderway, gone: Callable[[], Any] | None) -> Answer:
        worker = self._idle.pop() if self._idle else await SearchWorker.started()
        self._searching.add(worker)
        watching = asyncio.create_task(self._watch(worker, search, gone))
        answer = None
        try:
            await worker.tell(question)
            while (answer := await worker.next_answer()) is not None and answer["answer"] == "progress":
                search.progress = answer
        except (OSError, ValueError):  # the process has ended, or its line is too long
            answer = None
        finally:
            watching.cancel()
            self._searching.discard(worker)
            spent = answer is None or answer.get("stopped_because") == OUT_OF_MEMORY
            if spent or search.stop.is_set() or len(self._idle) >= IDLE_PROCESSES:
                worker.end()
                await worker.process.wait()
            else:
                self._idle.append(worker)
        if answer is not None:
            return answer
        told = {"answer": "found", "found": False, "complete": False, "states": search.progress["states"]}
        message = question["message"]
        told |= {"property": message.get("property"), "start": message.get("start", "initial")}
        return {**told, "stopped_because": INTERRUPTED if search.stop.is_set() else "the process that searched has ended"}

    async def _watch(self, worker: SearchWorker, search: SearchUnderway, gone: Callable[[], Any] | None) -> None:
        """End a search that is cancelled, that nobody waits for, or whose progress nobody asks about."""
        while not search.stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(search.stop.wait(), 0.5)
            abandoned = time.monotonic() - search.asked_at > ABANDONED_S
            if abandoned or (gone is not None and await gone()):
                search.stop.set()
        with suppress(OSError):
            await worker.tell({"do": "cancel"})
        await asyncio.sleep(STOPPING_S)
        worker.end()

    @property
    def processes(self) -> list[SearchWorker]:
        """The processes that search, and those that wait."""
        return [*self._searching, *self._idle]

    def end(self) -> None:
        """End all that goes on: whoever waits for it is answered at once."""
        self._ending = True
        for worker in self.processes:
            worker.end()

    async def close(self) -> None:
        """End all processes, and wait for their end."""
        self.end()
        for worker in self.processes:
            await worker.process.wait()
        self._thread.shutdown(wait=False, cancel_futures=True)
