"""Plans about reassignments."""

from kspec.trials.faults.plans.committing import ELECTED_S
from kspec.trials.faults.plans.plan_run import PlanRun


async def replica_is_taken_and_given_back(run: PlanRun) -> None:
    """A replica is taken from a broker, and given back without records; then the others are gone."""
    a, b, c = run.leader, run.second, run.third
    await run.until_acknowledged(50)
    await run.reassign([a, c])
    await run.until_in_sync(a, c)
    await run.pause(1.0)
    await run.until_acknowledged(50)
    run.kill(c)
    await run.until_in_sync(a)
    asks = run.hold(b, a)
    await run.reassign([a, b])
    await run.until(f"{b} is a replica again", lambda: int(b) in run.partition().replicas)
    await run.pause(1.0)
    run.kill(a)
    await run.pause(ELECTED_S)
    asks.let_go()
    await run.start(a, c)
    await run.pause(2.0)


async def fetch_of_before_the_removal(run: PlanRun) -> None:
    """A replica is removed and added again, empty; a fetch that it sent before arrives, and it is elected."""
    a, b, c = run.leader, run.second, run.third
    await run.until_acknowledged(50)
    asks = [run.hold(b, a), run.hold(c, a)]
    await run.until_held(asks[0], f"{b} asks for more")
    await run.until_held(asks[1], f"{c} asks for more")
    await run.reassign([a, c])
    await run.until_in_sync(a, c)
    await run.pause(DELETED_S)
    await run.reassign([a, c, b])
    await run.pause(DELETED_S)
    answers = run.hold(b, a, answers=True)
    asks[0].let_go()
    if await run.within(2.0, lambda: b in run.in_sync()):
        run.tell(f"{b} is admitted")
    await run.lead(b)
    await run.pause(1.0)
    answers.lose()
    for hold in (answers, asks[1]):
        hold.let_go()


async def leader_is_paused_while_its_follower_is_reassigned(run: PlanRun) -> None:
    """The leader is paused until its session ends, and a follower's replica is removed meanwhile; then it comes back."""
    a, b, c = run.leader, run.second, run.third
    await run.until_acknowledged(50)
    run.suspend(a)
    await run.reassign([a, c])
    await run.until_led_by(c)
    run.resume(a)
    await run.until_in_sync(a, c)
    await run.until_acknowledged(50)
    await run.reassign([a, c, b])
    await run.until_in_sync(a, b, c)


DELETED_S = 0.7
"""Long enough for a broker to learn that a replica was removed, and to delete it."""
