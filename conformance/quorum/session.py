"""Runs on real controllers, a process for each, and reports of them."""

import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from kspec.conformance.kafka.jars import Jars
from kspec.conformance.kafka.reports import RunReport
from kspec.conformance.quorum.power import FlushRun, LonelyController
from kspec.conformance.quorum.replay import QuorumReplay, QuorumResult
from kspec.conformance.quorum.runs import QuorumRun
from kspec.spec.quorum.protocol import QuorumProtocol

CLOCK_TRIES = 3
"""A run has a clock: one from which the controller departs is replayed, up to so often in all."""


def follows(result: QuorumResult) -> bool:
    """Whether the controller does what the rules say; one that has to depart at the last step departs there."""
    run, departure = result.run, result.departure
    if not run.departs:
        return departure is None
    return departure is not None and departure.step == len(run.steps)


async def replay(jars: Jars, run: QuorumRun | FlushRun, protocol: QuorumProtocol) -> RunReport:
    """Replay a run. Nothing is left behind. Raises: `KafkaMissingError`."""
    began = time.monotonic()
    if isinstance(run, FlushRun):
        return await _without_power(jars, run, protocol)
    tries, result = 1, await _replayed(jars, run, protocol)
    while not follows(result) and tries < CLOCK_TRIES:
        tries, result = tries + 1, await _replayed(jars, run, protocol)
    return report_of(result, jars.release, tries, time.monotonic() - began)


async def _replayed(jars: Jars, run: QuorumRun, protocol: QuorumProtocol) -> QuorumResult:
    with tempfile.TemporaryDirectory(prefix="kspec-quorum-") as folder:
        return await QuorumReplay(jars, Path(folder) / "controller", protocol, run).replay()


def report_of(result: QuorumResult, kafka: str, tries: int, seconds: float) -> RunReport:
    """The report of a run."""
    run, departure = result.run, result.departure
    ending = f"follows {len(result.told)} steps"
    if departure is not None:
        ending = departure.words + (f" (as it has to: {run.departs})" if follows(result) else "")
    confirmed = follows(result) and run.holds(result.states)
    about = (run.name, run.words, run.claim, kafka, result.told)
    return RunReport(*about, follows(result), confirmed, ending, tries, seconds)


async def _without_power(jars: Jars, run: FlushRun, protocol: QuorumProtocol) -> RunReport:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kspec-quorum-") as folder:
        result = await LonelyController(jars, Path(folder) / "disk").run(run)
    ending = f"follows {len(result.told)} steps"
    if not result.follows(protocol):
        ending = f"departs: the rules say otherwise of the order of answer and flush: {'; '.join(result.told)}"
    about = (run.name, run.words, run.claim, jars.release, result.told)
    return RunReport(*about, result.follows(protocol), result.lost, ending, 1, time.monotonic() - began)


async def replay_all(
    jars: Jars, runs: Iterable[QuorumRun | FlushRun], protocol: QuorumProtocol, told: Callable[[RunReport], None]
) -> list[RunReport]:
    """Replay runs one after the other. Raises: `KafkaMissingError`."""
    found = []
    for run in runs:
        found.append(await replay(jars, run, protocol))
        told(found[-1])
    return found
