"""The run of a case on a cluster: a topic of its own, clients, the steps, healing, a last reading, and the verdict."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from kspec.conformance.cluster.cases import ScheduledCase
from kspec.conformance.cluster.driver import ClusterDriver, DriverError
from kspec.conformance.cluster.results import WHOLE, CaseOutcome, verdict_of
from kspec.conformance.wire.run.results import Status
from kspec.trials.cluster.plan import CONTROLLER, ClusterError
from kspec.trials.cluster.view import ClusterProbe, ReportedPartition
from kspec.trials.cluster.waiting import within
from kspec.trials.faults.links import Link
from kspec.trials.faults.load import CLIENT, Load, LoadConsumer, LoadSettings, Recorder, library
from kspec.trials.faults.plans.steps import ClusterStep, Schedule, StepKind, StepRun
from kspec.trials.faults.process_run import more_sent
from kspec.trials.history.anomalies import anomalies_in
from kspec.trials.history.events import ACKNOWLEDGED, UNKNOWN, Event, Poll, SendStart, write_history
from kspec.trials.history.events import SendOutcome as Answer

AT_FIRST, RATE = 20, 25
"""Numbers of records: acknowledged before the run begins; sent per second by each of two producers."""

LAG_S = 3.5
"""The time after which a leader counts a follower as lagging (s). A leader that does not reach the controller shows that to
nobody, so it is waited for: the lag of 2 s that drivers set, half of it between two checks, and a margin."""

LOOK_S, HEALED_S = 0.1, 180.0
"""Pause between two looks, and the longest time in which a cluster without faults must become healthy again."""


class NotWholeError(Exception):
    """A cluster that does not become healthy again after all faults: one line."""


class CaseLocation(NamedTuple):
    """The location of a case: the topic's name, and the folder for its history."""

    topic: str
    folder: Path


async def run_case(driver: ClusterDriver, scheduled: ScheduledCase, place: CaseLocation) -> CaseOutcome:
    """Run a case and judge it. Raises: `DriverError`, `ClusterError`.

    A cluster that does not become healthy again has failed, whatever clients saw; there is no last reading then.
    """
    case = scheduled.case
    began, broken = time.monotonic(), ""
    run = _ScheduledRun(driver, scheduled.schedule, place.topic, case.acks)
    try:
        await run.to_the_end()
    except NotWholeError as error:
        broken = str(error)
    finally:
        run.close()
    events = run.events
    anomalies = tuple(anomalies_in(events))
    status, reason = verdict_of(case, anomalies)
    if broken:
        status, reason = Status.FAIL, "; ".join(filter(None, (broken, reason)))
    place.folder.mkdir(parents=True, exist_ok=True)
    with (place.folder / "history.jsonl").open("w", encoding="utf-8") as stream:
        write_history(events, stream)
    (place.folder / "steps.txt").write_text("".join(f"{line}\n" for line in run.done), encoding="utf-8")
    seconds = time.monotonic() - began
    done, counts = tuple(run.done), counts_of(events)
    return CaseOutcome(case, status, reason, seconds, scheduled, counts, anomalies, done, place.folder, bool(broken))


def counts_of(events: list[Event]) -> dict[str, int]:
    """The numbers of records sent, acknowledged, of unknown outcome, and polled."""
    outcomes = Counter(event.kind for event in events if isinstance(event, Answer))
    return {
        "sent": sum(isinstance(event, SendStart) for event in events),
        "acknowledged": outcomes[ACKNOWLEDGED],
        "unknown": outcomes[UNKNOWN],
        "polled": sum(len(event.records) for event in events if isinstance(event, Poll)),
    }


class _ScheduledRun(StepRun):
    lag_s = LAG_S

    def __init__(self, driver: ClusterDriver, schedule: Schedule, topic: str, acks: str) -> None:
        super().__init__()
        self._driver = driver
        self._acks = acks
        self._loads: list[Load] = []
        self._schedule = schedule
        self._topic = topic
        self._servers = ",".join(f"{host}:{port}" for host, port in driver.brokers.values())
        self._view = ClusterProbe({int(broker): place for broker, place in driver.brokers.items()})
        self._recorder = Recorder()
        self.done: list[str] = []

    def close(self) -> None:
        self._view.close()

    @property
    def events(self) -> list[Event]:
        """The history of the clients."""
        return self._recorder.events

    async def to_the_end(self) -> None:
        """Take all steps, up to the last reading. Raises: `NotWholeError`, `DriverError`, `ClusterError`."""
        await asyncio.to_thread(_create_topic, self._servers, self._topic, self._schedule)
        await self._until_whole()
        self._begin_load(producers=2, consumers=1)
        try:
            await within(HEALED_S, lambda: self.acknowledged() >= AT_FIRST, LOOK_S)
            began = time.monotonic()
            for step in self._schedule.steps:
                at = time.monotonic() - began
                came = await self.take(step)
                self.done.append(f"{at:5.1f} s  {step}{'' if came else ': that does not come'}")
            await self.heal()
            await self._until_whole()
        finally:
            await self.heal()
            for load in self._loads:
                await asyncio.to_thread(load.stop)
        try:
            await asyncio.to_thread(_read_all, self._servers, self._topic, self._recorder)
        except ClusterError as error:
            raise NotWholeError(f"{WHOLE}: {error}") from error

    def _begin_load(self, producers: int, consumers: int) -> None:
        settings = LoadSettings(producers, consumers, RATE, self._acks, self._schedule.one_by_one)
        self._loads.append(Load(self._servers, self._topic, 1, settings, self._recorder, f"{len(self._loads) + 1}"))
        self._loads[-1].start()

    # ---- actions

    async def cut(self, links: frozenset[Link]) -> None:
        await self._driver.partition(links)

    async def kill(self, broker: int) -> None:
        await self._driver.kill(str(broker))

    async def stop(self, broker: int) -> None:
        await self._driver.stop(str(broker))

    async def start(self, broker: int) -> None:
        await self._driver.start(str(broker))

    async def pause(self, broker: int) -> None:
        await self._driver.pause(str(broker))

    async def resume(self, broker: int) -> None:
        await self._driver.resume(str(broker))

    async def erase(self, broker: int) -> None:
        await self._driver.erase(str(broker))

    async def elect(self, broker: int) -> bool:
        """Whether the cluster has taken the request for an election, which may fail while there are faults."""
        others = [replica for replica in self._schedule.replicas if replica != broker]
        try:
            await self._driver.elect(self._topic, (broker, *others))
        except DriverError:
            return False
        return True

    def add_producer(self) -> None:
        self._begin_load(producers=1, consumers=0)

    # ---- observations

    def acknowledged(self) -> int:
        return sum(isinstance(event, Answer) and event.kind == ACKNOWLEDGED for event in self._recorder.events)

    def sending(self, more: int) -> Callable[[], bool]:
        return more_sent(self._recorder, more)

    def polled(self) -> int:
        return sum(len(event.records) for event in self._recorder.events if isinstance(event, Poll))

    async def within(self, seconds: float, holds: Callable[[], bool]) -> bool:
        return await within(seconds, holds, LOOK_S)

    async def until_shown(self, step: ClusterStep, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if await self._shows(step):
                return True
            await asyncio.sleep(LOOK_S)
        return False

    async def _shows(self, step: ClusterStep) -> bool:
        """Whether brokers report the condition of a step: of those that run the ones that the controller reaches, if any."""
        running = [broker for broker in self._schedule.replicas if broker not in self.down | self.paused]
        brokers = [broker for broker in running if (CONTROLLER, str(broker)) not in self.links] or running
        reports = await asyncio.gather(*(self._view.told_by(broker, self._topic) for broker in brokers))
        return shows(step, {broker: report for broker, report in zip(brokers, reports, strict=True) if report is not None})

    async def _until_whole(self) -> None:
        end = time.monotonic() + HEALED_S
        while True:
            shown = await self._view.partitions(self._topic)
            if shown and shown[0].leader > 0 and set(shown[0].isr) == set(self._schedule.replicas):
                return
            if time.monotonic() > end:
                now = f"leader {shown[0].leader}, ISR {list(shown[0].isr)}" if shown else "no broker answers"
                raise NotWholeError(f"{WHOLE}: not whole again after {HEALED_S:g} s without faults: {now}")
            await asyncio.sleep(LOOK_S)


def shows(step: ClusterStep, reports: Mapping[int, ReportedPartition]) -> bool:
    """Whether the reports of brokers are what a step waits for. Only those of the highest leader epoch count.

    All of them must agree about the ISR, or stale metadata would do. The report of a broker that is to join the ISR does
    not count.
    """
    newest = max((report.leader_epoch for report in reports.values()), default=0)
    now = {broker: report for broker, report in reports.items() if report.leader_epoch == newest}
    leaders = {report.leader for report in now.values()}
    match step.kind:
        case StepKind.LEAVE_ISR:
            return bool(now) and all(step.broker not in report.isr for report in now.values())
        case StepKind.JOIN_ISR:
            others = [report for broker, report in now.items() if broker != step.broker]
            return bool(others) and all(step.broker in report.isr for report in others)
        case StepKind.KNOW_LEADER:
            return step.broker in now and min(leaders) > 0
        case StepKind.SERVE:
            return step.broker in reports
        case _:
            return bool(leaders) and min(leaders) > 0 and (step.broker in leaders) == (step.kind is StepKind.LEAD)


def _create_topic(servers: str, topic: str, schedule: Schedule) -> None:
    """Create the topic with the replicas of the run. Raises: `ClusterError`."""
    kafka = library()
    admin = kafka.admin.AdminClient({**CLIENT, "bootstrap.servers": servers})
    config: Mapping[str, str] = {"min.insync.replicas": str(schedule.min_isr)}
    wanted = kafka.admin.NewTopic(topic, 1, replica_assignment=[list(schedule.replicas)], config=dict(config))
    try:
        admin.create_topics([wanted], operation_timeout=30, request_timeout=30)[topic].result(40)
    except kafka.KafkaException as error:
        raise ClusterError(f"cannot create topic {topic}: {error.args[0].str()}") from error


def _read_all(servers: str, topic: str, recorder: Recorder) -> None:
    reader = LoadConsumer(servers, topic, [0], "last-reading", recorder)
    try:
        reader.read_to_the_end()
    finally:
        reader.close()
