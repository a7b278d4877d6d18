"""The run of a story on a cluster, which is compared with the model after each step."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kspec.conformance.story.cluster import StoryCluster
from kspec.conformance.story.errors import StoryError
from kspec.conformance.story.metadata_caps import MetadataCaps
from kspec.conformance.story.processes import ProcessStoryCluster
from kspec.conformance.story.rendering import Say, step_text, table
from kspec.conformance.story.runs import StoryRun
from kspec.conformance.story.simulated import SimulatedStoryCluster
from kspec.conformance.story.snapshots import AckedRecord, ClusterSnapshot, ReplicaSnapshot, wrongs
from kspec.conformance.story.steps import CLOCKS, SESSIONS, STEP_FUNCTIONS, StoryStep, drop_old_answers
from kspec.conformance.world.replay.model_state import ModelState
from kspec.impl.server.startup import BrokerRules
from kspec.trials.cluster.plan import Program

SETTLE_S = 20.0
"""The longest wait (s) until the cluster is as the model says. After it, it has departed from the model."""

SHORT_LAG_MS, ENDLESS_LAG_MS = 10_000, 3_600_000
SHORT_SESSION_MS, LONG_SESSION_MS = 6_000, 600_000


class StoryEnding(NamedTuple):
    """The cluster at the end of the run, and when all messages have arrived."""

    seen: ClusterSnapshot
    settled: ClusterSnapshot

    @property
    def wrong(self) -> dict[str, str]:
        """Violations at the end of the run."""
        return wrongs(self.seen)

    @property
    def wrong_when_settled(self) -> dict[str, str]:
        """Violations when all messages have arrived."""
        return wrongs(self.settled)


def _needs(run: StoryRun, actions: Sequence[str]) -> bool:
    return any(step.action is not None and step.action.name in actions for step in run.trace)


def settings_of(run: StoryRun) -> dict[str, str]:
    """The settings of the nodes: lags and sessions are short only if the run needs them to end."""
    session = SHORT_SESSION_MS if _needs(run, SESSIONS) else LONG_SESSION_MS
    lag = SHORT_LAG_MS if _needs(run, CLOCKS) else ENDLESS_LAG_MS
    return {"broker.session.timeout.ms": str(session), "replica.lag.time.max.ms": str(lag)}


def lag_of(run: StoryRun) -> float | None:
    """The lag (s) after which a follower leaves the ISR, if the run needs that."""
    return SHORT_LAG_MS / 1000 if _needs(run, CLOCKS) else None


async def run_on_processes(run: StoryRun, program: Program, folder: Path, port: int, say: Say) -> StoryEnding:
    """Take processes through a run. Raises: `StoryError`, if they depart from it; `UsageError`, `ClusterError`."""
    brokers = int(run.model.parameters["brokers"])
    return await _ended(ProcessStoryCluster(folder, port, brokers, program, settings_of(run), lag_of(run)), run, say)


def run_simulated(run: StoryRun, rules: BrokerRules, say: Say) -> StoryEnding:
    """Take a simulated cluster through a run. Raises: `StoryError`, if it departs from it."""
    cluster = SimulatedStoryCluster(int(run.model.parameters["brokers"]), rules, settings_of(run), lag_of(run))
    return cluster.carried_out(_ended(cluster, run, say))


async def _ended(cluster: StoryCluster, run: StoryRun, say: Say) -> StoryEnding:
    try:
        await cluster.start()
        return await _DirectedRun(cluster, run, say).to_the_end()
    finally:
        await cluster.end()


class _DirectedRun:
    def __init__(self, cluster: StoryCluster, run: StoryRun, say: Say) -> None:
        self._cluster = cluster
        self._run = run
        self._say = say
        self._caps = MetadataCaps(cluster.brokers, cluster.metadata_end())

    async def to_the_end(self) -> StoryEnding:
        before = ModelState(self._run.model, self._run.trace[0].state)
        for number, taken in enumerate(self._run.trace[1:], start=1):
            assert taken.action is not None
            step = StoryStep(taken.action, before, ModelState(self._run.model, taken.state))
            try:
                await STEP_FUNCTIONS[step.action.name](self._cluster, step)
                await self._read(step)
                await drop_old_answers(self._cluster, step)
                seen = await self._settled(step.after)
            except StoryError as error:
                raise StoryError(f"step {number}, {step.action.label}: {error}") from error
            self._say(step_text(number, step.action, seen))
            before = step.after
        seen = self._cluster.seen()
        return StoryEnding(seen, await self._everything_arrives())

    # ---- metadata

    async def _read(self, step: StoryStep) -> None:
        """Let brokers read the decisions of the step, and no others."""
        await self._until_decided(step.after)
        end = self._cluster.metadata_end()
        for broker in self._cluster.brokers:
            taken = _taken(step, broker)
            cap = self._caps.step(broker, len(step.after.reading(broker)), taken, end)
            if cap != self._cluster.caps[broker]:
                await self._cluster.read_up_to(broker, cap)

    async def _until_decided(self, after: ModelState) -> None:
        topic = after.cluster.topic

        def decided() -> bool:
            seen = self._cluster.seen()
            return (seen.leader, seen.leader_epoch, seen.isr) == (topic.leader, topic.leader_epoch, topic.isr)

        what = f"the controller decides: leader {topic.leader}, epoch {topic.leader_epoch}, ISR {sorted(topic.isr)}"
        await self._cluster.until(decided, what, SETTLE_S)

    # ---- comparison

    async def _settled(self, after: ModelState) -> ClusterSnapshot:
        """The cluster once it is as in the model. Raises: `StoryError`."""
        last = [self._cluster.seen()]

        def is_same() -> bool:
            last[0] = self._cluster.seen()
            return self._difference(after, last[0]) is None

        if not await self._cluster.within(SETTLE_S, is_same):
            raise StoryError(self._difference(after, last[0]) or "")
        return last[0]

    def _difference(self, after: ModelState, seen: ClusterSnapshot) -> str | None:
        """The difference between the cluster and the model, if there is one."""
        for broker in self._cluster.brokers:
            local = after.log(broker)
            expected = ReplicaSnapshot(tuple(local.log.records), int(local.high_watermark))
            if after.has_replica(broker) and seen.replicas[broker] != expected:
                return f"broker {broker} has {seen.replicas[broker]}, where the model has {expected}"
        acknowledged = frozenset(AckedRecord(int(one.offset), int(one.record.value)) for one in after.clients.told)
        if acknowledged != seen.acknowledged:
            return f"{_in_words(seen.acknowledged)} acknowledged, where the model has {_in_words(acknowledged)}"
        return None

    # ---- after the run

    async def _everything_arrives(self) -> ClusterSnapshot:
        """Open the proxies; the cluster once the followers have caught up with the leader."""
        self._cluster.let_go()

        def caught_up() -> bool:
            seen = self._cluster.seen()
            if seen.leader not in seen.replicas:
                return False
            end = len(seen.replicas[seen.leader].log)
            running = [one for broker, one in seen.replicas.items() if self._cluster.is_running(broker)]
            return all(len(one.log) == one.high_watermark == end for one in running)

        await self._cluster.until(caught_up, "the followers catch up with the leader")
        seen = self._cluster.seen()
        self._say("\n".join(["    Everything that was under way arrives.", *table(seen)]))
        return seen


def _taken(step: StoryStep, broker: int) -> int:
    """The number of decisions that a broker reads in a step."""
    return int(step.args.get("decisions", 0)) if step.args.get("broker") == broker else 0


def _in_words(acknowledged: frozenset[AckedRecord]) -> str:
    return ", ".join(f"m{record.value} at {record.offset}" for record in sorted(acknowledged)) or "nothing"
