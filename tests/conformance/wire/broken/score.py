"""The cases that tell a broker with a bug: they are run on it until some fail."""

import asyncio
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kspec.conformance.wire.run.results import Result, Status
from kspec.conformance.wire.run.runner import TargetGoneError, find_target, needs_restart
from kspec.conformance.wire.run.suite_run import NameSpace, Suite, SuiteRun
from tests.conformance.wire.broken.planting import BrokerBug
from tests.conformance.wire.targets import SOON, documents
from tests.impl.broker.process import BrokerProcess

CHUNK = 120
"""Cases that are run before anybody looks whether one has failed."""

GONE = "the broker ends"
LATE = "does not answer within"
"""The reason of a case whose answer did not come in time. On a busy machine it may be too slow: it is run once more."""


class BrokenBroker(BrokerProcess):
    """This project's broker with a bug."""

    def __init__(self, folder: Path, bug: BrokerBug) -> None:
        super().__init__(folder, "--release", "4.4", traced=False)
        names = "BrokerBug, plant"
        self.begins_with = f"from tests.conformance.wire.broken.planting import {names}; plant(BrokerBug{tuple(bug)!r}); "


def cases_that_tell(bug: BrokerBug, cases: Sequence[Any] = ()) -> list[str]:
    """The names of the first cases that fail on a broker with the bug; none if all pass."""
    with tempfile.TemporaryDirectory(prefix="kspec-broken-") as folder:
        broker = BrokenBroker(Path(folder) / "logs", bug)
        try:
            broker.start()
        except AssertionError:
            return [GONE]
        try:
            return asyncio.run(_run(broker, list(cases or documents())))
        finally:
            broker.kill()


async def _run(broker: BrokerProcess, cases: list[Any]) -> list[str]:
    async def restarted() -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(None, broker.restart)
        except AssertionError as error:
            raise TargetGoneError(str(error)) from error

    plain = [case for case in cases if not needs_restart(case)]
    chunks = [plain[at : at + CHUNK] for at in range(0, len(plain), CHUNK)]
    chunks.append([case for case in cases if needs_restart(case)])

    async def results(some: list[Any], found: list[Result]) -> list[Result]:
        target = await find_target("127.0.0.1", broker.port, SOON)
        await SuiteRun(target, Suite(some, 8, {}, restarted), NameSpace(secrets.token_hex(3)), found.append).run()
        return [one for one in found if one.status == Status.FAIL]

    for chunk in chunks:
        found: list[Result] = []
        try:
            failed = await results(chunk, found)
            if failed and all(LATE in one.reason for one in failed):
                late = {one.name for one in failed}
                failed = await results([case for case in chunk if case["name"] in late], [])
        except TargetGoneError:
            return [*_words_of(one for one in found if one.status == Status.FAIL), GONE]
        if failed:
            return list(_words_of(failed))
    return []


def _words_of(failed: Iterable[Result]) -> Iterator[str]:
    return (f"{one.name}: {one.reason[:150]}" for one in failed)
