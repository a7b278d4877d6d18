"""A story told: the processes go through the run, and are compared with the model after each step."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from conformance.story.acts import ACTS, CLOCKS, SESSIONS, Step, drop_old_answers
from conformance.story.gates import POLL_S, until
from conformance.story.reading import Readings
from conformance.story.runs import Run
from conformance.story.seen import Acknowledged, Replica, Seen, wrongs
from conformance.story.stage import Stage
from conformance.story.telling import Say, table, told_step
from conformance.story.words import StoryError
from conformance.world.play.players import Scene
from impl.cluster.plan import Program

SETTLE_S = 20.0
"""An emergency stop: processes that do not show within this time what the model says have departed from it."""

SHORT_LAG_MS, ENDLESS_LAG_MS = 10_000, 3_600_000
SHORT_SESSION_MS, LONG_SESSION_MS = 6_000, 600_000


class Ending(NamedTuple):
    """How the processes are when the run is over, and when everything has arrived."""

    seen: Seen
    settled: Seen

    @property
    def wrong(self) -> dict[str, str]:
        """What is wrong at the end of the run."""
        return wrongs(self.seen)

    @property
    def wrong_when_settled(self) -> dict[str, str]:
        """What is wrong when everything has arrived."""
        return wrongs(self.settled)


def _needs(run: Run, actions: Sequence[str]) -> bool:
    return any(step.action is not None and step.action.name in actions for step in run.trace)


def settings_of(run: Run) -> dict[str, str]:
    """The settings of the processes: lags and sessions are short only if the run needs them to end."""
    session = SHORT_SESSION_MS if _needs(run, SESSIONS) else LONG_SESSION_MS
    lag = SHORT_LAG_MS if _needs(run, CLOCKS) else ENDLESS_LAG_MS
    return {"broker.session.timeout.ms": str(session), "replica.lag.time.max.ms": str(lag)}


async def play(run: Run, program: Program, folder: Path, port: int, say: Say) -> Ending:
    """Let processes go through a run. Raises: `StoryError`, if they do something else; `UsageError`, `ClusterError`."""
    lag_s = SHORT_LAG_MS / 1000 if _needs(run, CLOCKS) else None
    stage = Stage(folder, port, int(run.model.parameters["brokers"]), program, settings_of(run), lag_s)
    try:
        await stage.start()
        stage.begin()
        return await _Play(stage, run, say).to_the_end()
    finally:
        await stage.end()


class _Play:
    def __init__(self, stage: Stage, run: Run, say: Say) -> None:
        self._stage = stage
        self._run = run
        self._say = say
        self._readings = Readings(stage.brokers, stage.metadata_end())

    async def to_the_end(self) -> Ending:
        before = Scene(self._run.model, self._run.trace[0].state)
        for number, taken in enumerate(self._run.trace[1:], start=1):
            assert taken.action is not None
            step = Step(taken.action, before, Scene(self._run.model, taken.state))
            try:
                await ACTS[step.action.name](self._stage, step)
                await self._read(step)
                await drop_old_answers(self._stage, step)
                seen = await self._settled(step.after)
            except StoryError as error:
                raise StoryError(f"step {number}, {step.action.label}: {error}") from error
            self._say(told_step(number, step.action, seen))
            before = step.after
        seen = self._stage.seen()
        return Ending(seen, await self._everything_arrives())

    # ---- metadata

    async def _read(self, step: Step) -> None:
        """Brokers read what the step lets them read, and nothing else."""
        await self._until_decided(step.after)
        end = self._stage.metadata_end()
        for broker in self._stage.brokers:
            taken = _taken(step, broker)
            cap = self._readings.step(broker, len(step.after.reading(broker)), taken, end)
            if cap != self._stage.caps[broker]:
                await self._stage.read_up_to(broker, cap)

    async def _until_decided(self, after: Scene) -> None:
        topic = after.cluster.topic

        def decided() -> bool:
            seen = self._stage.seen()
            return (seen.leader, seen.leader_epoch, seen.isr) == (topic.leader, topic.leader_epoch, topic.isr)

        what = f"the controller decides: leader {topic.leader}, epoch {topic.leader_epoch}, ISR {sorted(topic.isr)}"
        await until(decided, what, SETTLE_S)

    # ---- comparing

    async def _settled(self, after: Scene) -> Seen:
        """The cluster once it is as the model says. Raises: `StoryError`."""
        end = time.monotonic() + SETTLE_S
        while True:
            seen = self._stage.seen()
            difference = self._difference(after, seen)
            if difference is None:
                return seen
            if time.monotonic() > end:
                raise StoryError(difference)
            await asyncio.sleep(POLL_S)

    def _difference(self, after: Scene, seen: Seen) -> str | None:
        """What of the cluster is not as the model says, if anything."""
        for broker in self._stage.brokers:
            local = after.log(broker)
            expected = Replica(tuple(local.log.records), int(local.high_watermark))
            if after.has_replica(broker) and seen.replicas[broker] != expected:
                return f"broker {broker} has {seen.replicas[broker]}, where the model has {expected}"
        told = frozenset(Acknowledged(int(one.offset), int(one.record.value)) for one in after.clients.told)
        if told != seen.acknowledged:
            return f"{_said(seen.acknowledged)} acknowledged, where the model has {_said(told)}"
        return None

    # ---- in the end

    async def _everything_arrives(self) -> Seen:
        """The gates are open: the cluster once the followers have caught up with the leader."""
        self._stage.let_go()

        def caught_up() -> bool:
            seen = self._stage.seen()
            if seen.leader not in seen.replicas:
                return False
            end = len(seen.replicas[seen.leader].log)
            running = [one for broker, one in seen.replicas.items() if self._stage.process(broker).running]
            return all(len(one.log) == one.high_watermark == end for one in running)

        await until(caught_up, "the followers catch up with the leader")
        seen = self._stage.seen()
        self._say("\n".join(["    Everything that was under way arrives.", *table(seen)]))
        return seen


def _taken(step: Step, broker: int) -> int:
    """How many decisions a broker reads in a step."""
    return int(step.args.get("decisions", 0)) if step.args.get("broker") == broker else 0


def _said(told: frozenset[Acknowledged]) -> str:
    return ", ".join(f"m{one.value} at {one.offset}" for one in sorted(told)) or "nothing"
