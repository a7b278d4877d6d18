"""Plans about brokers that start again: without their records, or registered twice."""

from kspec.trials.faults.plans.committing import ELECTED_S
from kspec.trials.faults.plans.plan_run import PlanRun

CONTROLLER = "controller"
COPY_S = 1.0
STOPS_IN_ORDER, JOINS_S = 0.5, 12.0
"""The share of clean shutdowns before files are damaged; the time in which a broker with usable files gets in sync (s)."""


async def power_is_lost(run: PlanRun) -> None:
    """One of two replicas in sync loses power and records, and is back; then the other is gone.

    Its session may end before it is back: it is still in the ISR, or it has left it, and is eligible (KIP-966).
    """
    a, b, c = run.leader, run.second, run.third
    lacks = run.hold(c, a)
    await run.until_in_sync(a, b)
    await run.until_acknowledged(100)
    asks = run.hold(b, a)
    run.lose_power(b)
    await run.start(b)
    run.kill(a)
    await run.pause(ELECTED_S)
    for hold in (asks, lacks):
        hold.let_go()
    await run.start(a)


async def proposal_of_an_earlier_incarnation(run: PlanRun) -> None:
    """The leader asks to admit a follower, which loses power before that arrives; back without records, it is elected."""
    a, b, c = run.leader, run.second, run.third
    asks = run.hold(b, a)
    await run.until_in_sync(a, c)
    await run.pause(1.0)
    proposals = run.hold(a, CONTROLLER, "AlterPartition")
    asks.let_go()
    await run.until_held(proposals, f"{a} asks to admit {b}")
    news = run.hold(a, CONTROLLER, answers=True)
    asks = run.hold(b, a)
    run.lose_power(b)
    await run.start(b)
    proposals.let_go()
    if await run.within(2.0, lambda: b in run.in_sync()):
        run.tell(f"{b} is admitted")
    await run.lead(b)
    await run.pause(1.0)
    for hold in (asks, news):
        hold.let_go()


async def registration_arrives_twice(run: PlanRun) -> None:
    """A broker that is back registers, and its first request arrives after the second."""
    b = run.second
    copy = run.hold(b, CONTROLLER, "BrokerRegistration", most=1)
    run.terminate(b)
    await run.until_down(b)
    await run.start(b)
    await run.pause(COPY_S)
    copy.let_go()
    await run.pause(COPY_S)
    await run.until_acknowledged(50)


async def leader_stops_while_the_controller_dies(run: PlanRun) -> None:
    """The leader is asked to stop in order, and the controller is killed meanwhile."""
    a, b, c = run.leader, run.second, run.third
    run.terminate(a)
    await run.pause(run.random.uniform(0.0, 0.3))
    run.kill(CONTROLLER)
    await run.pause(1.0)
    await run.start(CONTROLLER)
    await run.until_led_by(b, c)
    await run.until_down(a, 80.0)
    await run.until_acknowledged(50)
    await run.start(a)


async def files_are_damaged(run: PlanRun) -> None:
    """Each broker in turn is down, stopped in order or killed, and finds some of its files damaged when it starts.

    The others are in sync meanwhile. A broker that can use its log comes back into the ISR. If the partition is offline
    there, its files are deleted, and the broker starts once more without them.
    """
    for broker in (run.second, run.third, run.leader):
        await run.until_in_sync(run.leader, run.second, run.third)
        if run.random.random() < STOPS_IN_ORDER:
            run.terminate(broker)
        else:
            run.kill(broker)
        await run.until_down(broker)
        await run.until(f"{broker} leads no more", lambda gone=broker: str(run.partition().leader) != gone)  # type: ignore[misc]
        run.damage(broker)
        await run.start(broker)
        await run.until_acknowledged(50)
        if not await run.within(JOINS_S, lambda back=broker: back in run.in_sync()):  # type: ignore[misc]
            run.tell(f"the partition is offline on {broker}")
            run.kill(broker)
            run.forget_partition(broker)
            await run.start(broker)
    await run.until_in_sync(run.leader, run.second, run.third)
