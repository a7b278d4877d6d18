"""The runner: cases against one address, some at a time, each with topics and groups of its own."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from conformance.wire.run.checking import at, differences, kept
from conformance.wire.run.connection import LENGTH, ClosedError, Connection, NoAnswerError, SlowError
from conformance.wire.run.rendering import Json, UnknownHoleError, filled, rendered
from conformance.wire.run.results import Result, Status, Told
from conformance.wire.run.versions import shared, steps_of
from impl.wire.requests import read_response, request_bytes
from impl.wire.values import DecodeError, Message

RETRY_SECONDS, PAUSE_SECONDS = 0.05, 0.1
QUIET_SECONDS = 0.3
"""How long an answer that must not come is waited for."""


class TargetGoneError(Exception):
    """The target is not there, or does not speak the protocol at all: one line. `result`: the case after which, if one."""

    def __init__(self, reason: str, result: Result | None = None) -> None:
        super().__init__(reason)
        self.result = result


class StepError(Exception):
    """A step did not go as expected: the reason in one line."""


class SkippedError(Exception):
    """The case cannot be run on this target: the status and the reason."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Target(NamedTuple):
    """An address, the limit for one step (seconds), and the versions that it offers by the keys of the APIs."""

    host: str
    port: int
    seconds: float
    offered: dict[int, tuple[int, int]]

    def connection(self) -> Connection:
        """A connection, not opened yet."""
        return Connection(self.host, self.port, self.seconds)


async def find_target(host: str, port: int, seconds: float) -> Target:
    """Ask the target what it offers. Raises: `TargetGoneError`."""
    try:
        async with Connection(host, port, seconds) as connection:
            answer = await _api_versions(connection)
    except (NoAnswerError, DecodeError) as error:
        raise TargetGoneError(f"{host}:{port} is no broker that can be tested: {error}") from None
    if answer.error_code:
        raise TargetGoneError(f"{host}:{port} answers ApiVersions with error {answer.error_code}")
    return Target(host, port, seconds, {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys})


async def _api_versions(connection: Connection) -> Message:
    correlation = connection.next_correlation()
    body = request_bytes("ApiVersions", 0, correlation, Message())
    await connection.send(LENGTH.pack(len(body)) + body)
    frame = await connection.receive(correlation)
    return read_response("ApiVersions", 0, memoryview(frame))[1]


class Naming(NamedTuple):
    """How topics and groups are named apart: by the run, and by the number of the case."""

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

    def __init__(self, restart: Callable[[], Awaitable[None]] | None) -> None:
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


class CaseRun:
    """One case that is being run."""

    def __init__(self, target: Target, case: Json, known: dict[str, Any], restart: Callable[[], Awaitable[None]]) -> None:
        self._restart = restart
        self._target = target
        self._case = case
        self._known = known
        self._told: list[Told] = []
        self._connections: dict[str, Connection] = {}
        self._waiting: dict[str, tuple[Json, int, int]] = {}

    async def run(self) -> Result:
        """Run it to its end, or to the first step that is not as expected."""
        began = time.monotonic()
        status, reason = Status.PASS, ""
        try:
            steps = list(steps_of(self._case, self._target.offered))
            versions = [self._version(step) for step in steps]
            for step, version in zip(steps, versions, strict=True):
                await self._take(step, version)
            await self._end_quietly()
        except SkippedError as skipped:
            status, reason = skipped.status, skipped.reason
        except (StepError, NoAnswerError) as error:
            status, reason = Status.FAIL, str(error)
        finally:
            await self._close()
        return Result(self._case, status, reason, tuple(self._told), time.monotonic() - began)

    async def _close(self) -> None:
        for connection in self._connections.values():
            await connection.close()
        self._connections.clear()

    def _version(self, step: Json) -> int:
        """The highest version that both sides have."""
        first, last = step["versions"]
        if step.get("raw"):
            return int(first)
        if step["key"] not in self._target.offered:
            raise SkippedError(Status.NOT_SUPPORTED, f"there is no {step['api']}")
        versions = shared(step, self._target.offered)
        if not versions:
            lowest, highest = self._target.offered[step["key"]]
            wanted = f"{first} to {last}" if first != last else str(first)
            raise SkippedError(Status.NOT_SUPPORTED, f"{step['api']} {lowest} to {highest}, where {wanted} is needed")
        return versions[-1]

    async def _connection(self, client: str) -> Connection:
        if client not in self._connections:
            connection = self._target.connection()
            await connection.open()
            self._connections[client] = connection
        return self._connections[client]

    async def _take(self, step: Json, version: int) -> None:
        if step.get("restart"):
            await self._close()
            await self._restart()
        deadline = time.monotonic() + self._target.seconds
        while await self._once(step, version) and time.monotonic() < deadline:
            self._told.pop()
            await asyncio.sleep(RETRY_SECONDS)
        if self._told[-1].differences:
            raise StepError("; ".join(self._told[-1].differences))
        for awaited in step.get("awaited", ()):
            await self._await(awaited)

    async def _once(self, step: Json, version: int) -> bool:
        """Send a request and look at the answer; whether to ask again."""
        connection = await self._connection(step["client"])
        correlation = connection.next_correlation()
        known = self._known | {"correlation_id": correlation}
        try:
            body = rendered(step["bytes"][str(version)], known)
            fields = filled(step["request"], known)
        except UnknownHoleError as error:
            raise SkippedError(Status.NOT_SUPPORTED, str(error)) from None
        frame = body if step.get("raw") else LENGTH.pack(len(body)) + body
        told = Told(step["client"], step["api"], version, step["words"], fields, frame.hex(), None, "", step["outcome"])
        try:
            await connection.send(frame)
            return await self._ended(step, version, connection, correlation, told)
        except NoAnswerError as error:
            self._told.append(told._replace(differences=(str(error),)))
            raise

    async def _ended(self, step: Json, version: int, connection: Connection, correlation: int, told: Told) -> bool:
        if step["ending"] == "closed":
            await connection.wait_for_end()
            await connection.close()
            del self._connections[step["client"]]
        elif step["ending"] == "silent":
            await _api_versions(connection)  # its answer comes next, so the request had none
        elif step["ending"] == "later":
            self._waiting[step["client"]] = (step, version, correlation)
            await asyncio.sleep(PAUSE_SECONDS)  # other clients' requests come after it
        else:
            return await self._answered(step, version, connection, correlation, told)
        self._told.append(told)
        return False

    async def _answered(self, step: Json, version: int, connection: Connection, correlation: int, told: Told) -> bool:
        frame = await connection.receive(correlation)
        answer = self._read(step["api"], version, frame)
        wrong = differences(step["expect"], version, answer, self._known)
        self._told.append(told._replace(answer=answer, answer_hex=frame.hex(), differences=tuple(wrong)))
        if not wrong:
            self._keep(step.get("keep", {}), version, answer)
        return bool(wrong) and _is_retried(step, answer)

    def _read(self, api: str, version: int, frame: bytes) -> Message:
        try:
            return read_response(api, version, memoryview(frame))[1]
        except (DecodeError, IndexError, ValueError) as error:
            raise NoAnswerError(f"its answer cannot be read as {api} v{version}: {error}; {frame.hex()}") from None

    def _keep(self, wanted: Json, version: int, answer: Message) -> None:
        self._known |= kept(wanted, version, answer)
        if self._known.get("epoch_0", 0) > 0:
            self._known["older_epoch"] = self._known["epoch_0"] - 1

    async def _await(self, awaited: Json) -> None:
        """The answer to a client that has waited."""
        step, version, correlation = self._waiting.pop(awaited["client"])
        connection = self._connections[awaited["client"]]
        told = Told(awaited["client"], step["api"], version, "its answer comes", None, "", None, "", "answered")
        try:
            frame = await connection.receive(correlation)
            answer = self._read(step["api"], version, frame)
        except NoAnswerError as error:
            self._told.append(told._replace(differences=(str(error),)))
            raise
        wrong = differences(awaited["expect"], version, answer, self._known)
        self._told.append(told._replace(answer=answer, answer_hex=frame.hex(), differences=tuple(wrong)))
        if wrong:
            raise StepError("; ".join(wrong))
        self._keep(awaited["keep"], version, answer)

    async def _end_quietly(self) -> None:
        """Whoever is to wait at the end gets no answer soon."""
        for client, (step, _, correlation) in self._waiting.items():
            try:
                await self._connections[client].receive(correlation, QUIET_SECONDS)
            except SlowError:
                continue
            raise StepError(f"{step['api']} of client {client} is answered at once, where it should wait")


def _is_retried(step: Json, answer: Message) -> bool:
    """Whether the protocol asks clients to send such a request again."""
    codes = []
    for one in step["expect"]:
        if one["path"].endswith("error_code"):
            try:
                codes.append(at(answer, one["path"]))
            except (LookupError, TypeError):
                continue
    return any(code in step.get("retry", ()) for code in codes)


class Suite(NamedTuple):
    """Cases to run, how many at a time, the failures that are allowed, by name with the reason; how to restart it."""

    cases: Sequence[Json]
    together: int
    allowed: Mapping[str, str]
    restart: Callable[[], Awaitable[None]] | None = None


def needs_restart(case: Json) -> bool:
    """Whether a case restarts the target."""
    return any(step.get("restart") for step in case["steps"])


class SuiteRun:
    """Cases that are being run on a target."""

    def __init__(self, target: Target, suite: Suite, naming: Naming, tell: Callable[[Result], None]) -> None:
        self._target = target
        self._suite = suite
        self._naming = naming
        self._tell = tell
        self._places = asyncio.Semaphore(suite.together)
        self._restarts = Restarts(suite.restart)

    async def run(self) -> list[Result]:
        """Run all cases. Those that restart the target come first: it has few topics then, and is back soon.

        Raises: `TargetGoneError`.
        """
        numbered = list(enumerate(self._suite.cases))
        results: dict[int, Result] = {}
        for restarting in (True, False):
            chosen = [(number, case) for number, case in numbered if needs_restart(case) == restarting]
            if restarting:
                self._restarts.expect(len(chosen))
            tasks = [asyncio.create_task(self._run_one(number, case, restarting)) for number, case in chosen]
            try:
                found = await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            results |= {number: result for (number, _), result in zip(chosen, found, strict=True)}
        return [results[number] for number, _ in numbered]

    async def _run_one(self, number: int, case: Json, restarting: bool) -> Result:
        if restarting and not self._restarts.possible:
            reason = "it needs a target that can be restarted (--restart COMMAND)"
            result = Result(case, Status.NOT_APPLICABLE, reason, (), 0.0)
        else:
            async with self._places:
                result = await CaseRun(self._target, case, self._naming.of_case(number), self._wait_for_restart).run()
                if result.status == Status.FAIL:
                    await _look_after(self._target, result)
            if restarting:
                await self._restarts.leave()  # not before, because the target may be restarted then
        if result.status == Status.FAIL and result.case_name in self._suite.allowed:
            reason = f"{self._suite.allowed[result.case_name]}: {result.reason}"
            result = result._replace(status=Status.ALLOWED, reason=reason)
        self._tell(result)
        return result

    async def _wait_for_restart(self) -> None:
        self._places.release()  # whoever waits takes no place
        try:
            await self._restarts.arrive()
        finally:
            await self._places.acquire()


async def _look_after(target: Target, result: Result) -> None:
    """After a failure: whether the target still answers."""
    try:
        async with target.connection() as connection:
            await _api_versions(connection)
    except (NoAnswerError, DecodeError) as error:
        where = f"{target.host}:{target.port}"
        raise TargetGoneError(f"{where} no longer answers after case {result.name}: {error}", result) from None


async def clean_up(target: Target, naming: Naming, count: int) -> None:
    """Delete the topics of a run, as far as the target can."""
    if 20 not in target.offered:
        return
    names = [
        naming.of_case(number)[key] for number in range(count) for key in ("topic", "topic_dotted", "topic_underscored")
    ]
    version = min(target.offered[20][1], 5)
    try:
        async with target.connection() as connection:
            for start in range(0, len(names), 100):
                correlation = connection.next_correlation()
                message = Message(topic_names=names[start : start + 100], timeout_ms=10_000)
                body = request_bytes("DeleteTopics", version, correlation, message)
                await connection.send(LENGTH.pack(len(body)) + body)
                await connection.receive(correlation)
    except (ClosedError, SlowError, NoAnswerError):
        return
