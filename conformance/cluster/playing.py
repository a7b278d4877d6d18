"""One case on a cluster: a topic of its own, clients, the acts of its run, healing, a last reading, and the verdict."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from conformance.cluster.acts import Act, Do, Schedule
from conformance.cluster.cases import Case, Played
from conformance.cluster.driver import CONTROLLER, ClusterDriver, DriverError, Link
from conformance.cluster.results import WHOLE, Outcome, verdict_of
from conformance.wire.run.results import Status
from impl.cluster.plan import ClusterError
from impl.cluster.view import ClusterView, Told
from impl.cluster.waiting import within
from impl.faults.load import CLIENT, Load, LoadSettings, Reader, Recorder, library
from impl.history.anomalies import anomalies_in
from impl.history.events import ACKNOWLEDGED, UNKNOWN, Event, Polled, Sent, write_history
from impl.history.events import Outcome as Answer

AT_FIRST, WRITTEN, RATE = 20, 20, 25
"""How many records are acknowledged before the run begins; how many more end a wait for producers; how many each of two
producers sends per second."""

LIMITS = {
    Do.SEND: 4.0,
    Do.WRITE: 5.0,
    Do.ACKNOWLEDGE: 5.0,
    Do.READ: 5.0,
    Do.LEAD: 20.0,
    Do.LOSE: 20.0,
    Do.DROP: 8.0,
    Do.JOIN: 12.0,
    Do.KNOW: 8.0,
    Do.SERVE: 40.0,
}
"""How long an act waits at most for what it is about (s)."""

LAG_S = 3.5
"""How long it takes until a leader has noticed that a follower is slow (s), which one without a controller shows to nobody:
the 2 s that drivers are asked for, half of that between two looks of the leader, and something more."""

LOOK_S, HEALED_S = 0.1, 180.0
"""Pause between two looks. An emergency stop: when a cluster that does not become whole again is given up."""


class NotWholeError(Exception):
    """The cluster does not become whole again, although nothing is wrong with it any more: one line."""


class Place(NamedTuple):
    """Where a case is played: the topic's name, and the folder for its history."""

    topic: str
    folder: Path


async def play(driver: ClusterDriver, case: Case, played: Played, place: Place) -> Outcome:
    """Play a case and judge it. Raises: `DriverError`, `ClusterError`.

    A cluster that does not become whole again has failed, whatever clients saw; there is no last reading then.
    """
    began, broken = time.monotonic(), ""
    show = _Show(driver, played.schedule, place.topic, case.acks)
    try:
        await show.run()
    except NotWholeError as error:
        broken = str(error)
    finally:
        show.close()
    events = show.events
    anomalies = tuple(anomalies_in(events))
    status, reason = verdict_of(case, anomalies)
    if broken:
        status, reason = Status.FAIL, "; ".join(filter(None, (broken, reason)))
    place.folder.mkdir(parents=True, exist_ok=True)
    with (place.folder / "history.jsonl").open("w", encoding="utf-8") as stream:
        write_history(events, stream)
    (place.folder / "acts.txt").write_text("".join(f"{line}\n" for line in show.told), encoding="utf-8")
    seconds = time.monotonic() - began
    told, counts = tuple(show.told), counts_of(events)
    return Outcome(case, status, reason, seconds, played, counts, anomalies, told, place.folder, bool(broken))


def counts_of(events: list[Event]) -> dict[str, int]:
    """How many records were sent, acknowledged, of unknown fate, and polled."""
    outcomes = Counter(event.kind for event in events if isinstance(event, Answer))
    return {
        "sent": sum(isinstance(event, Sent) for event in events),
        "acknowledged": outcomes[ACKNOWLEDGED],
        "unknown": outcomes[UNKNOWN],
        "polled": sum(len(event.records) for event in events if isinstance(event, Polled)),
    }


class _Show:
    def __init__(self, driver: ClusterDriver, schedule: Schedule, topic: str, acks: str) -> None:
        self._driver = driver
        self._acks = acks
        self._loads: list[Load] = []
        self._schedule = schedule
        self._topic = topic
        self._servers = ",".join(f"{host}:{port}" for host, port in driver.brokers.values())
        self._view = ClusterView({int(broker): place for broker, place in driver.brokers.items()})
        self._recorder = Recorder()
        self._began = time.monotonic()
        self._down: set[str] = set()
        self._paused: set[str] = set()
        self._links: frozenset[Link] = frozenset()
        self.told: list[str] = []

    def close(self) -> None:
        self._view.close()

    @property
    def events(self) -> list[Event]:
        """All that clients saw."""
        return self._recorder.events

    async def run(self) -> None:
        """Play the case, up to the last reading. Raises: `NotWholeError`, `DriverError`, `ClusterError`."""
        await asyncio.to_thread(_create_topic, self._servers, self._topic, self._schedule)
        await self._until_whole()
        self._begin_load(producers=2, consumers=1)
        try:
            await within(HEALED_S, lambda: self._acknowledged() >= AT_FIRST, LOOK_S)
            self._began = time.monotonic()
            for act in self._schedule.acts:
                await self._do(act)
            await self._heal()
            await self._until_whole()
        finally:
            await self._heal()
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

    # ---- acts

    async def _do(self, act: Act) -> None:
        at, broker = time.monotonic() - self._began, str(act.broker)
        came = True
        match act.do:
            case Do.PART:
                self._links = act.links
                await self._driver.partition(act.links)
            case Do.KILL:
                self._down.add(broker)
                self._paused.discard(broker)
                await self._driver.kill(broker)
            case Do.STOP:
                self._down.add(broker)
                self._paused.discard(broker)
                await self._driver.stop(broker)
            case Do.START if broker in self._down:
                self._down.discard(broker)
                await self._driver.start(broker)
            case Do.PAUSE if broker not in self._down:
                self._paused.add(broker)
                await self._driver.pause(broker)
            case Do.RESUME if broker in self._paused:
                self._paused.discard(broker)
                await self._driver.resume(broker)
            case Do.ELECT:
                came = await self._elected(act.broker)
            case Do.SEND:
                came = await self._until_more(self._sent, 2 * WRITTEN, LIMITS[act.do])
            case Do.WRITE:
                came = await self._until_more(self._acknowledged, WRITTEN, LIMITS[act.do])
            case Do.ACKNOWLEDGE:
                came = await self._until_more(self._acknowledged, 1, LIMITS[act.do])
            case Do.MORE:
                self._begin_load(producers=1, consumers=0)
            case Do.LAG:
                await asyncio.sleep(LAG_S)
            case Do.READ:
                came = await self._until_more(self._polled, WRITTEN, LIMITS[act.do])
            case Do.ERASE if broker in self._down:
                await self._driver.erase(broker)
            case Do.LEAD | Do.LOSE | Do.DROP | Do.JOIN | Do.KNOW | Do.SERVE:
                came = await self._until_shown(act)
        self.told.append(f"{at:5.1f} s  {act}{'' if came else ': that does not come'}")

    async def _elected(self, broker: int) -> bool:
        """Whether somebody has taken the wish: in the middle of faults it may be that nobody does."""
        others = [one for one in self._schedule.replicas if one != broker]
        try:
            await self._driver.elect(self._topic, (broker, *others))
        except DriverError:
            return False
        return True

    def _acknowledged(self) -> int:
        return sum(isinstance(event, Answer) and event.kind == ACKNOWLEDGED for event in self._recorder.events)

    def _sent(self) -> int:
        return sum(isinstance(event, Sent) for event in self._recorder.events)

    def _polled(self) -> int:
        return sum(len(event.records) for event in self._recorder.events if isinstance(event, Polled))

    async def _until_more(self, count: Callable[[], int], more: int, seconds: float) -> bool:
        wanted = count() + more
        return await within(seconds, lambda: count() >= wanted, LOOK_S)

    async def _until_shown(self, act: Act) -> bool:
        end = time.monotonic() + LIMITS[act.do]
        while time.monotonic() < end:
            if await self._shows(act):
                return True
            await asyncio.sleep(LOOK_S)
        return False

    async def _shows(self, act: Act) -> bool:
        """Whether the cluster shows what an act waits for. Who stands still, is down or hears no news is not asked."""
        there = [one for one in self._schedule.replicas if str(one) not in self._down | self._paused]
        asked = [one for one in there if (CONTROLLER, str(one)) not in self._links] or there
        found = await asyncio.gather(*(self._view.told_by(one, self._topic) for one in asked))
        return shows(act, {one: told for one, told in zip(asked, found, strict=True) if told is not None})

    # ---- end

    async def _heal(self) -> None:
        """Undo everything."""
        for broker in sorted(self._paused):
            await self._driver.resume(broker)
        await self._driver.partition(frozenset())
        for broker in sorted(self._down):
            await self._driver.start(broker)
        self._paused.clear()
        self._down.clear()

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


def shows(act: Act, told: Mapping[int, Told]) -> bool:
    """Whether what brokers tell is what an act waits for. The highest leader epoch counts: others have not heard of it.

    Of the ISR all have to tell the same, or old news would do. A broker that is to be in it is not asked itself.
    """
    newest = max((one.leader_epoch for one in told.values()), default=0)
    now = {broker: one for broker, one in told.items() if one.leader_epoch == newest}
    leaders = {one.leader for one in now.values()}
    match act.do:
        case Do.DROP:
            return bool(now) and all(act.broker not in one.isr for one in now.values())
        case Do.JOIN:
            others = [one for broker, one in now.items() if broker != act.broker]
            return bool(others) and all(act.broker in one.isr for one in others)
        case Do.KNOW:
            return act.broker in now and min(leaders) > 0
        case Do.SERVE:
            return act.broker in told
        case _:
            return bool(leaders) and min(leaders) > 0 and (act.broker in leaders) == (act.do is Do.LEAD)


def _create_topic(servers: str, topic: str, schedule: Schedule) -> None:
    """Create the topic with its replicas where the run has them. Raises: `ClusterError`."""
    kafka = library()
    admin = kafka.admin.AdminClient({**CLIENT, "bootstrap.servers": servers})
    config: Mapping[str, str] = {"min.insync.replicas": str(schedule.min_isr)}
    wanted = kafka.admin.NewTopic(topic, 1, replica_assignment=[list(schedule.replicas)], config=dict(config))
    try:
        admin.create_topics([wanted], operation_timeout=30, request_timeout=30)[topic].result(40)
    except kafka.KafkaException as error:
        raise ClusterError(f"cannot create topic {topic}: {error.args[0].str()}") from error


def _read_all(servers: str, topic: str, recorder: Recorder) -> None:
    reader = Reader(servers, topic, [0], "last-reading", recorder)
    try:
        reader.read_to_the_end()
    finally:
        reader.close()
