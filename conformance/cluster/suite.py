"""Cases one after the other on one cluster, which is started anew where a case has left it broken."""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from conformance.cluster.cases import Case, played
from conformance.cluster.driver import ClusterDriver, DriverError, Factory
from conformance.cluster.playing import Place, play
from conformance.cluster.results import Outcome
from conformance.cluster.translation import NotPlayedError
from conformance.wire.run.results import Status
from impl.cluster.plan import ClusterError


class LevelRun:
    """A run of cases. `allowed`: names of cases that may fail, with reasons. `tell` takes each result."""

    def __init__(self, factory: Factory, folder: Path, allowed: Mapping[str, str], tell: Callable[[Outcome], None]) -> None:
        self._factory = factory
        self._folder = folder
        self._allowed = allowed
        self._tell = tell
        self._clusters = 0
        self._driver: ClusterDriver | None = None
        self.run = secrets.token_hex(3)
        self.title = ""
        self.outcomes: list[Outcome] = []

    async def play(self, cases: Iterable[Case]) -> None:
        """Play the cases. Raises: `DriverError`."""
        try:
            for number, case in enumerate(cases):
                outcome = await self._played(number, case)
                if outcome.status == Status.FAIL and case.name in self._allowed:
                    outcome = outcome._replace(status=Status.ALLOWED, reason=f"{self._allowed[case.name]}: {outcome.reason}")
                self.outcomes.append(outcome)
                self._tell(outcome)
        finally:
            await self._close()

    async def _played(self, number: int, case: Case) -> Outcome:
        try:
            found = await asyncio.to_thread(played, case)
        except NotPlayedError as error:
            return Outcome(case, Status.NOT_APPLICABLE, str(error))
        driver = await self._cluster()
        missing = sorted(found.schedule.needs - set(driver.abilities))
        if missing:
            return Outcome(case, Status.NOT_APPLICABLE, f"the driver cannot {', '.join(missing)}")
        place = Place(f"kspec-{self.run}-{number:04}", self._folder / case.name)
        try:
            outcome = await play(driver, case, found, place)
        except ClusterError as error:
            raise DriverError(f"{driver.title}: {error}") from error
        if outcome.broken:
            await self._close()
        return outcome

    async def _cluster(self) -> ClusterDriver:
        """The cluster that runs; a fresh one, if none does."""
        if self._driver is None:
            self._clusters += 1
            driver = self._factory(self._folder / f"cluster-{self._clusters}")
            await driver.open()
            self._driver, self.title = driver, driver.title
        return self._driver

    async def _close(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            await driver.close()
