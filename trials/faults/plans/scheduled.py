"""Plans whose steps are data: runs of a schedule on processes, or on a simulated cluster."""

from collections.abc import Callable
from functools import partial

from kspec.trials.faults.links import Link
from kspec.trials.faults.plans.isr import LAG_S
from kspec.trials.faults.plans.losses import LOSSES
from kspec.trials.faults.plans.plan import Plan
from kspec.trials.faults.plans.plan_run import PlanError, PlanRun
from kspec.trials.faults.plans.steps import ALL, ClusterStep, Schedule, StepKind, StepRun


class ScheduledSteps(StepRun):
    """Steps of a schedule, taken in the run of a plan. The schedule's replicas are the plan's leader, second and third."""

    lag_s = LAG_S

    def __init__(self, run: PlanRun, schedule: Schedule) -> None:
        super().__init__()
        self._run = run
        self._names = dict(zip(schedule.replicas, (run.leader, run.second, run.third), strict=True))

    def _name(self, broker: int) -> str:
        return self._names[broker]

    def _end(self, name: str) -> str:
        """An end of a link: a broker, the controller, or clients."""
        return self._names[int(name)] if name.isdigit() else name

    def in_words(self, step: ClusterStep) -> str:
        """A step in words, with the brokers' names in the cluster."""
        links = frozenset((self._end(source), self._end(target)) for source, target in step.links)
        return str(step._replace(broker=int(self._names.get(step.broker, "0")), links=links))

    async def cut(self, links: frozenset[Link]) -> None:
        """Cut exactly these links."""
        self._run.cut(frozenset((self._end(source), self._end(target)) for source, target in links))

    async def kill(self, broker: int) -> None:
        """Kill a broker."""
        self._run.kill(self._name(broker))

    async def stop(self, broker: int) -> None:
        """Shut a broker down, and wait until it has ended; it is killed if that takes too long."""
        self._run.terminate(self._name(broker))
        if not await self._run.within(STOPS_S, lambda: not self._run.is_running(self._name(broker))):
            self._run.kill(self._name(broker))

    async def start(self, broker: int) -> None:
        """Let a broker start."""
        self._run.let_start(self._name(broker))

    async def pause(self, broker: int) -> None:
        """Pause a broker."""
        self._run.suspend(self._name(broker))

    async def resume(self, broker: int) -> None:
        """Resume a broker."""
        self._run.resume(self._name(broker))

    async def erase(self, broker: int) -> None:
        """Delete a broker's records."""
        self._run.erase(self._name(broker))

    async def elect(self, broker: int) -> bool:
        """Request the election of a replica."""
        try:
            await self._run.lead(self._name(broker))
        except PlanError:
            return False
        return True

    def add_producer(self) -> None:
        """Let another producer begin."""
        self._run.add_producer()

    async def within(self, seconds: float, holds: Callable[[], bool]) -> bool:
        """Whether a condition holds within so many seconds."""
        return await self._run.within(seconds, holds)

    async def until_shown(self, step: ClusterStep, seconds: float) -> bool:
        """Whether the controller, or the broker itself, is as a step waits for."""
        run, name = self._run, self._name(step.broker)
        if step.kind is StepKind.KNOW_LEADER:
            return await run.learns_leader(name, seconds)
        conditions: dict[StepKind, Callable[[], bool]] = {
            StepKind.LEAD: lambda: str(run.partition().leader) == name,
            StepKind.LOSE_LEADERSHIP: lambda: run.partition().leader > 0 and str(run.partition().leader) != name,
            StepKind.LEAVE_ISR: lambda: name not in run.in_sync(),
            StepKind.JOIN_ISR: lambda: name in run.in_sync(),
            StepKind.SERVE: lambda: run.serves(name),
        }
        return await self.within(seconds, conditions[step.kind])

    def sending(self, more: int) -> Callable[[], bool]:
        """A condition: producers have sent."""
        return self._run.sending(more)

    def acknowledged(self) -> int:
        """The number of records acknowledged so far."""
        return self._run.acknowledged()

    def polled(self) -> int:
        """The number of records polled so far."""
        return self._run.polled()


TOLD = frozenset({StepKind.KILL, StepKind.STOP, StepKind.PAUSE, StepKind.RESUME, StepKind.ERASE, StepKind.ELECT})
"""The steps that the run of a plan notes itself."""

STOPS_S = 60.0
"""The longest controlled shutdown."""


async def carry_out(schedule: Schedule, run: PlanRun) -> None:
    """Take all steps of a schedule, and undo its faults. Replicas are preferred in the schedule's order."""
    await run.reassign([run.leader, run.second, run.third])
    steps = ScheduledSteps(run, schedule)
    for step in schedule.steps:
        came = await steps.take(step)
        if step.kind not in TOLD:
            run.tell(f"{steps.in_words(step)}{'' if came else ': that does not come'}")
    await steps.heal()


def plan_of(name: str, meaning: str, rule: str, schedule: Schedule, acks: str = ALL, mutant: str = "") -> Plan:
    """A plan with the steps of a schedule. `mutant`: the one of a rule's mutants that it is aimed at."""
    return Plan(
        name,
        meaning,
        (rule,) if rule else (),
        partial(carry_out, schedule),
        {"min.insync.replicas": str(schedule.min_isr)},
        acks=acks,
        one_by_one=schedule.one_by_one,
        mutants=(mutant,) if mutant else (),
    )


LOSS_PLANS = tuple(
    plan_of(f"loss-{mutant}", loss.meaning, loss.rule, loss.schedule, loss.acks, mutant) for mutant, loss in LOSSES.items()
)
"""The losses as plans."""
