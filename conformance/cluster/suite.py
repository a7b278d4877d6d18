"""Cases one after the other on one cluster, which is replaced if a case leaves it broken."""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from kspec.conformance.cluster.case_run import CaseLocation, run_case
from kspec.conformance.cluster.cases import ClusterCase, scheduled
from kspec.conformance.cluster.driver import ClusterDriver, DriverError, Factory, needs
from kspec.conformance.cluster.results import CaseOutcome
from kspec.conformance.cluster.translation import NotTranslatedError
from kspec.conformance.wire.run.results import Status
from kspec.trials.cluster.plan import ClusterError


class LevelRun:
    """A run of cases. `allowed`: names of cases that may fail, with reasons. `tell` takes each result."""

    def __init__(
        self, factory: Factory, folder: Path, allowed: Mapping[str, str], tell: Callable[[CaseOutcome], None]
    ) -> None:
        self._factory = factory
        self._folder = folder
        self._allowed = allowed
        self._tell = tell
        self._clusters = 0
        self._driver: ClusterDriver | None = None
        self.run = secrets.token_hex(3)
        self.title = ""
        self.outcomes: list[CaseOutcome] = []

    async def run_cases(self, cases: Iterable[ClusterCase]) -> None:
        """Run the cases. Raises: `DriverError`."""
        try:
            for number, case in enumerate(cases):
                outcome = await self._outcome_of(number, case)
                if outcome.status == Status.FAIL and case.name in self._allowed:
                    outcome = outcome._replace(status=Status.ALLOWED, reason=f"{self._allowed[case.name]}: {outcome.reason}")
                self.outcomes.append(outcome)
                self._tell(outcome)
        finally:
            await self._close()

    async def _outcome_of(self, number: int, case: ClusterCase) -> CaseOutcome:
        try:
            found = await asyncio.to_thread(scheduled, case)
        except NotTranslatedError as error:
            return CaseOutcome(case, Status.NOT_APPLICABLE, str(error))
        driver = await self._cluster()
        missing = sorted(needs(found.schedule) - set(driver.abilities))
        if missing:
            return CaseOutcome(case, Status.NOT_APPLICABLE, f"the driver cannot {', '.join(missing)}")
        place = CaseLocation(f"kspec-{self.run}-{number:04}", self._folder / case.name)
        try:
            outcome = await run_case(driver, found, place)
        except ClusterError as error:
            raise DriverError(f"{driver.title}: {error}") from error
        if outcome.broken:
            await self._close()
        return outcome

    async def _cluster(self) -> ClusterDriver:
        """The running cluster; a new one, if there is none."""
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
