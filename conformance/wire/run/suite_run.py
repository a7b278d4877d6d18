"""Cases against one target, some at a time, each with topics and groups of its own.

A target that ends at a case, or hangs, is restarted if that is possible, and the other cases go on.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from kspec.conformance.wire.cases.suite import Json
from kspec.conformance.wire.run.connection import LENGTH, NoAnswerError
from kspec.conformance.wire.run.results import WRONG, Result, Status
from kspec.conformance.wire.run.runner import CaseRun, RunTarget, TargetGoneError, api_versions, needs_restart
from kspec.impl.wire.requests import request_bytes
from kspec.impl.wire.values import DecodeError, Message

DELETE_TOPICS = 20
Numbered = Sequence[tuple[int, Json]]


class NameSpace(NamedTuple):
    """Names of topics and groups, told apart by the run, and by the number of the case that is run."""

    run: str

    def of_case(self, number: int) -> dict[str, Any]:
        """The holes that are known before a case begins."""
        return {
            "topic": f"kspec-{self.run}-{number:04}",
            "topic_dotted": f"kspec.{self.run}.{number:04}",
            "topic_underscored": f"kspec_{self.run}_{number:04}",
            "group": f"kspec-{self.run}-{number:04}",
            "now": int(time.time() * 1000),
        }


class Restarts:
    """Restarts of the target: all cases that need one wait for each other, so that one restart serves them all."""

    def __init__(self, restart: Callable[[], Awaitable[Any]] | None) -> None:
        self._restart = restart
        self._running = 0
        self._arrived: list[asyncio.Future[None]] = []

    @property
    def possible(self) -> bool:
        """Whether the target can be restarted."""
        return self._restart is not None

    def expect(self, cases: int) -> None:
        """So many cases are going to need restarts."""
        self._running += cases

    async def arrive(self) -> None:
        """Wait for a restart. Raises what the restart raises."""
        here = asyncio.get_running_loop().create_future()
        self._arrived.append(here)
        await self.leave()
        await here

    async def leave(self) -> None:
        """A case needs no restart any more, or waits for one."""
        self._running -= 1
        if self._running or not self._arrived:
            return
        arrived, self._arrived = self._arrived, []
        self._running = len(arrived)
        try:
            assert self._restart is not None, "cases that need restarts are run only where they are possible"
            await self._restart()
        except Exception as error:
            for here in arrived:
                here.set_exception(error)
            return
        for here in arrived:
            here.set_result(None)


class Suite(NamedTuple):
    """Cases to run, how many at a time, the failures that are allowed, by name with the reason.

    `restart`: how cases restart the target. `revive`: how it is started again where it has stopped to answer; it gives the
    target, whose address may be another one.
    """

    cases: Sequence[Json]
    together: int
    allowed: Mapping[str, str]
    restart: Callable[[], Awaitable[Any]] | None = None
    revive: Callable[[], Awaitable[RunTarget]] | None = None


class SuiteRun:
    """Cases that are being run on a target. `named`: how many names of topics have been used."""

    def __init__(self, target: RunTarget, suite: Suite, naming: NameSpace, tell: Callable[[Result], None]) -> None:
        self.target = target
        self.named = 0
        self._suite = suite
        self._naming = naming
        self._tell = tell
        self._begun: set[int] = set()
        self._is_gone = False
        self._results: dict[int, Result] = {}
        self._places = asyncio.Semaphore(suite.together)
        self._restarts = Restarts(suite.restart)

    async def run(self) -> list[Result]:
        """Run all cases. Those that restart the target come first: it has few topics then, and is back soon.

        Raises: `TargetGoneError`, if the target cannot be started again.
        """
        numbered = list(enumerate(self._suite.cases))
        for restarting in (True, False):
            left = [(number, case) for number, case in numbered if needs_restart(case) == restarting]
            while left:
                try:
                    await self._run_together(left)
                except TargetGoneError as gone:
                    await self._find_out(gone, left)
                left = [(number, case) for number, case in left if number not in self._results]
        return [self._results[number] for number, _ in numbered]

    async def _find_out(self, gone: TargetGoneError, left: Numbered) -> None:
        """The case that ended the target: of those that had begun, each is run alone. Raises: `TargetGoneError`."""
        if self._suite.revive is None or gone.result is None:
            raise gone
        suspects = [(number, case) for number, case in left if number in self._begun and number not in self._results]
        ended, first = 0, next(number for number, case in suspects if case is gone.result.case)
        if len(suspects) == 1:
            self._note(first, gone.result.ended(gone.why))
            suspects, ended = [], 1
        await self._revive()
        for suspect in suspects:
            try:
                await self._run_together([suspect])
            except TargetGoneError as again:
                if again.result is None:
                    raise
                self._note(suspect[0], again.result.ended(again.why))
                ended += 1
                await self._revive()
        if not ended:
            reason = f"{gone.why} after {len(suspects)} cases that ran together; none of them alone ends it"
            self._note(first, gone.result.ended(reason))

    async def _revive(self) -> None:
        assert self._suite.revive is not None, "asked before"
        self.target = await self._suite.revive()

    async def _run_together(self, chosen: Numbered) -> None:
        """Run cases, all of which restart the target, or none. Raises: `TargetGoneError`."""
        self._begun.clear()
        self._is_gone = False
        self._places = asyncio.Semaphore(self._suite.together)
        self._restarts = Restarts(self._suite.restart)
        self._restarts.expect(sum(needs_restart(case) for _, case in chosen))
        tasks = [asyncio.create_task(self._run_one(number, case)) for number, case in chosen]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_one(self, number: int, case: Json) -> None:
        restarting = needs_restart(case)
        if restarting and not self._restarts.possible:
            reason = "it needs a target that can be restarted (--restart COMMAND)"
            self._note(number, Result(case, Status.NOT_APPLICABLE, reason, (), 0.0))
            return
        async with nullcontext() if is_idle(case) else self._places:
            if self._is_gone:
                return  # it is run when the target is there again
            self._begun.add(number)
            known = self._naming.of_case(self.named)
            self.named += 1
            result = await CaseRun(self.target, case, known, self._wait_for_restart).run()
            if result.status == Status.FAIL or _ends_connections(case):
                await self._look_after(result)
        if restarting:
            await self._restarts.leave()  # not before, because the target may be restarted then
        self._note(number, result)

    async def _look_after(self, result: Result) -> None:
        """After a case: whether the target still answers. Raises: `TargetGoneError`."""
        try:
            async with self.target.connection() as connection:
                await api_versions(connection)
        except (NoAnswerError, DecodeError) as error:
            self._is_gone = True
            where = f"{self.target.host}:{self.target.port}"
            reason = f"{where} no longer answers after case {result.name}: {error}; the others go on with --start COMMAND"
            raise TargetGoneError(reason, result, f"it no longer answers: {error}") from None

    def _note(self, number: int, result: Result) -> None:
        """Keep what is certain. A case that begins again has its last result."""
        if result.status in WRONG and result.case_name in self._suite.allowed:
            reason = f"{self._suite.allowed[result.case_name]}: {result.reason}"
            result = result._replace(status=Status.ALLOWED, reason=reason)
        self._results[number] = result
        self._tell(result)

    async def _wait_for_restart(self) -> None:
        self._places.release()  # whoever waits takes no place
        try:
            await self._restarts.arrive()
        finally:
            await self._places.acquire()


IDLE_MS = 5_000
"""A case that pauses for so long, all in all, is idle most of the time, and takes no place."""


def is_idle(case: Json) -> bool:
    """Whether a case mostly waits for time to pass."""
    return bool(sum(step.get("pause_ms", 0) for step in case["steps"]) >= IDLE_MS)


def _ends_connections(case: Json) -> bool:
    """Whether a target that has ended may have passed a case."""
    return bool(case["steps"]) and any(step["ending"] == "closed" for step in case["steps"])


async def clean_up(target: RunTarget, naming: NameSpace, count: int) -> None:
    """Delete the topics of a run, as far as the target can. `count`: how many names have been used."""
    if DELETE_TOPICS not in target.offered:
        return
    names = [
        naming.of_case(number)[key] for number in range(count) for key in ("topic", "topic_dotted", "topic_underscored")
    ]
    version = min(target.offered[DELETE_TOPICS][1], 5)
    try:
        async with target.connection() as connection:
            for start in range(0, len(names), 100):
                correlation = connection.next_correlation()
                message = Message(topic_names=names[start : start + 100], timeout_ms=10_000)
                body = request_bytes("DeleteTopics", version, correlation, message)
                await connection.send(LENGTH.pack(len(body)) + body)
                await connection.receive(correlation)
    except NoAnswerError:
        return
