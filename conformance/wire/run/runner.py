"""One case against one address."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from kspec.conformance.wire.cases.suite import Json
from kspec.conformance.wire.run.checking import at, differences, kept, liberties
from kspec.conformance.wire.run.connection import LENGTH, ClientConnection, NoAnswerError, SlowError
from kspec.conformance.wire.run.rendering import Known, UnknownHoleError, filled, rendered
from kspec.conformance.wire.run.results import ExchangeReport, Result, Status
from kspec.conformance.wire.run.versions import left_out_of, shared, steps_of
from kspec.conformance.wire.timing import TIMING
from kspec.impl.wire.requests import read_response, request_bytes
from kspec.impl.wire.values import DecodeError, Message

RETRY_SECONDS, PAUSE_SECONDS = TIMING.retry_pause_ms / 1000, TIMING.later_pause_ms / 1000
QUIET_SECONDS = TIMING.quiet_ms / 1000
"""The time (s) in which an answer that must not come would come."""


class TargetGoneError(Exception):
    """The target is not there, or does not speak the protocol at all: one line.

    `result`: the case after which, if one, and `why` what was seen then.
    """

    def __init__(self, reason: str, result: Result | None = None, why: str = "") -> None:
        super().__init__(reason)
        self.result = result
        self.why = why


class StepError(Exception):
    """A step did not go as expected: the reason in one line."""


class SkippedError(Exception):
    """The case cannot be run on this target: the status and the reason."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class RunTarget(NamedTuple):
    """An address, the limit for one step (seconds), and the versions that it offers by the keys of the APIs."""

    host: str
    port: int
    seconds: float
    offered: dict[int, tuple[int, int]]

    def connection(self) -> ClientConnection:
        """A connection, not opened yet."""
        return ClientConnection(self.host, self.port, self.seconds)


async def find_target(host: str, port: int, seconds: float) -> RunTarget:
    """Ask the target what it offers. Raises: `TargetGoneError`."""
    try:
        async with ClientConnection(host, port, seconds) as connection:
            answer = await api_versions(connection)
    except (NoAnswerError, DecodeError) as error:
        raise TargetGoneError(f"{host}:{port} is no broker that can be tested: {error}") from None
    if answer.error_code:
        raise TargetGoneError(f"{host}:{port} answers ApiVersions with error {answer.error_code}")
    return RunTarget(host, port, seconds, {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys})


async def api_versions(connection: ClientConnection) -> Message:
    """Ask which versions there are. Raises: `NoAnswerError`, `DecodeError`."""
    correlation = connection.next_correlation()
    body = request_bytes("ApiVersions", 0, correlation, Message())
    await connection.send(LENGTH.pack(len(body)) + body)
    frame = await connection.receive(correlation)
    return read_response("ApiVersions", 0, memoryview(frame))[1]


class CaseRun:
    """One case that is being run."""

    def __init__(self, target: RunTarget, case: Json, known: dict[str, Any], restart: Callable[[], Awaitable[None]]) -> None:
        self._restart = restart
        self._target = target
        self._case = case
        self._known = known
        self._told: list[ExchangeReport] = []
        self._connections: dict[str, ClientConnection] = {}
        self._waiting: dict[str, tuple[Json, int, int]] = {}
        self._sent_at = 0.0

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
        free = [line for told in self._told for line in told.liberties]
        if status == Status.PASS and free:
            status, reason = Status.UNLIKE, "; ".join(free)
        left_out = left_out_of(self._case, self._target.offered) if status == Status.PASS else ()
        return Result(self._case, status, reason, tuple(self._told), time.monotonic() - began, left_out)

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

    async def _connection(self, client: str) -> ClientConnection:
        if client not in self._connections:
            connection = self._target.connection()
            await connection.open()
            self._connections[client] = connection
        return self._connections[client]

    async def _take(self, step: Json, version: int) -> None:
        if step.get("restart"):
            await self._close()
            await self._restart()
        await asyncio.sleep(step.get("pause_ms", 0) / 1000)
        deadline = time.monotonic() + self._target.seconds
        while await self._once(step, version) and time.monotonic() < deadline:
            self._told.pop()
            await asyncio.sleep(RETRY_SECONDS)
        if self._told[-1].differences:
            raise StepError("; ".join(self._told[-1].differences))
        for awaited in (one for one in step.get("awaited", ()) if one["client"] != step["client"]):
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
            raise self._skipped(error) from None
        frame = body if step.get("raw") else LENGTH.pack(len(body)) + body
        told = ExchangeReport(
            step["client"], step["api"], version, step["words"], fields, frame.hex(), None, "", step["outcome"]
        )
        self._sent_at = time.monotonic()
        try:
            await connection.send(frame)
            for awaited in own_awaited(step):
                await self._await(awaited)
            return await self._ended(step, version, connection, correlation, told)
        except NoAnswerError as error:
            self._told.append(told._replace(differences=(str(error),)))
            raise

    def _skipped(self, error: UnknownHoleError) -> SkippedError:
        """The reason to leave out a case: no epoch is over, or the versions that the target offers do not tell something."""
        if error.hole == "older_epoch" and "epoch_0" in self._known:
            return SkippedError(Status.NOT_APPLICABLE, "no leader epoch is over: the target begins none when it restarts")
        return SkippedError(Status.NOT_SUPPORTED, f"{error} in the versions that the target offers")

    async def _ended(
        self, step: Json, version: int, connection: ClientConnection, correlation: int, told: ExchangeReport
    ) -> bool:
        if step["ending"] == "closed":
            try:
                await connection.wait_for_end()
            except SlowError as error:
                self._told.append(told._replace(liberties=(await self._not_closed(step, connection, error),)))
                return False
            await connection.close()
            del self._connections[step["client"]]
        elif step["ending"] == "silent":
            await api_versions(connection)  # its answer comes next, so the request had none
        elif step["ending"] == "later":
            self._waiting[step["client"]] = (step, version, correlation)
            await asyncio.sleep(PAUSE_SECONDS)  # other clients' requests come after it
        else:
            return await self._answered(step, version, connection, correlation, told)
        self._told.append(told)
        return False

    async def _not_closed(self, step: Json, connection: ClientConnection, error: SlowError) -> str:
        """A connection that the target should have closed, and the sentence that leaves it free. Raises: `NoAnswerError`."""
        free = step.get("free")
        if free is None:
            raise error
        if free["ending"] == "silent":
            await api_versions(connection)  # the request had no answer, and the next one has
        else:
            await connection.close()
            del self._connections[step["client"]]
        return f"{error}: {free['why']}"

    async def _answered(
        self, step: Json, version: int, connection: ClientConnection, correlation: int, told: ExchangeReport
    ) -> bool:
        frame = await connection.receive(correlation)
        waited_ms = (time.monotonic() - self._sent_at) * 1000
        answer = self._read(step["api"], version, frame)
        wrong = differences(step["expect"], version, answer, self._known)
        if waited_ms < step.get("not_before_ms", 0):
            wrong.append(f"it answers after {waited_ms:.0f} ms, not after {step['not_before_ms']} ms or more")
        free = liberties(step["expect"], version, answer, self._known)
        seen = told._replace(answer=answer, answer_hex=frame.hex(), differences=tuple(wrong), liberties=tuple(free))
        self._told.append(seen)
        if not wrong:
            self._keep(step.get("keep", {}), version, answer)
        return bool(wrong) and _is_retried(step, answer, self._known)

    def _read(self, api: str, version: int, frame: bytes) -> Message:
        try:
            return read_response(api, version, memoryview(frame))[1]
        except (DecodeError, IndexError, ValueError) as error:
            raise NoAnswerError(f"its answer cannot be read as {api} v{version}: {error}; {frame.hex()}") from None

    def _keep(self, wanted: Json, version: int, answer: Message) -> None:
        try:
            self._known |= kept(wanted, version, answer, self._known)
        except (LookupError, TypeError) as error:
            raise StepError(f"its answer does not tell {error}, which later requests need") from None
        if self._known.get("epoch_0", 0) > 0:
            self._known["older_epoch"] = self._known["epoch_0"] - 1

    async def _await(self, awaited: Json) -> None:
        """The answer to a client that has waited."""
        step, version, correlation = self._waiting.pop(awaited["client"])
        connection = self._connections[awaited["client"]]
        told = ExchangeReport(awaited["client"], step["api"], version, "its answer comes", None, "", None, "", "answered")
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
        """A client that waits at the end gets no answer soon."""
        for client, (step, _, correlation) in self._waiting.items():
            try:
                await self._connections[client].receive(correlation, QUIET_SECONDS)
            except SlowError:
                continue
            raise StepError(f"{step['api']} of client {client} is answered at once, where it should wait")


def needs_restart(case: Json) -> bool:
    """Whether a case restarts the target."""
    return any(step.get("restart") for step in case["steps"])


def _is_retried(step: Json, answer: Message, known: Known) -> bool:
    """Whether the protocol asks clients to send such a request again."""
    codes = []
    for one in step["expect"]:
        if one["path"].endswith("error_code"):
            try:
                codes.append(at(answer, one["path"], known))
            except (LookupError, TypeError, UnknownHoleError):
                continue
    return any(code in step.get("retry", ()) for code in codes)


def own_awaited(step: Json) -> list[Json]:
    """The answers to earlier requests of the same client, which come before its own: they are in the order of requests."""
    return [one for one in step.get("awaited", ()) if one["client"] == step["client"]]
