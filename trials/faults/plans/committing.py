"""Plans about replication: a leader acknowledges, and the acknowledged records must be on the next leader."""

from kspec.trials.faults.plans.plan_run import PlanRun

ELECTED_S = 9.0
"""Long enough for sessions to end, and for an election that must not happen."""

MAY_JOIN_S = 3.0


async def leader_dies_after_acknowledging(run: PlanRun) -> None:
    """Followers fetch many records, and get no responses; records acknowledged meanwhile must be on one of them."""
    a, b, c = run.leader, run.second, run.third
    asks = [run.hold(follower, a) for follower in (b, c)]
    await run.pause(1.0)
    answers = [run.hold(follower, a, answers=True) for follower in (b, c)]
    for hold in asks:
        hold.let_go()
    await run.pause(1.0)
    run.kill(a)
    await run.until_led_by(b, c)
    for hold in answers:
        hold.let_go()
    await run.start(a)


async def leader_is_alone(run: PlanRun) -> None:
    """No follower fetches until the leader is the only one in sync; records acknowledged or polled then must outlive it."""
    a, b, c = run.leader, run.second, run.third
    holds = [run.hold(follower, a) for follower in (b, c)]
    values = await run.send_to(a, 20)
    await run.until_in_sync(a)
    await run.may_be_polled(values)
    await run.may_acknowledge()
    run.kill(a)
    for hold in holds:
        hold.let_go()
    await run.pause(ELECTED_S)
    await run.start(a)


async def follower_is_behind(run: PlanRun) -> None:
    """A follower falls behind, and may fetch, but gets no responses; then it is the only one that is up."""
    a, b, c = run.leader, run.second, run.third
    asks = run.hold(b, a)
    await run.until_in_sync(a, c)
    await run.until_acknowledged(100)
    answers = run.hold(b, a, answers=True)
    asks.let_go()
    await run.within(MAY_JOIN_S, lambda: b in run.in_sync())
    run.kill(a, c)
    answers.lose()
    answers.let_go()
    await run.pause(ELECTED_S)
    await run.start(a, c)


async def smaller_isr_is_not_granted(run: PlanRun) -> None:
    """The leader's proposal of a smaller ISR does not arrive; the follower that would leave is elected, without records."""
    a, b = run.leader, run.second
    proposals = run.hold(a, "controller", "AlterPartition")
    asks = run.hold(b, a)
    await run.until_held(proposals, "a smaller ISR is asked for")
    await run.send_to(a, 20)
    await run.may_acknowledge()
    await run.lead(b)
    asks.let_go()
    await run.pause(1.0)
    proposals.let_go()


async def diverging_follower(run: PlanRun) -> None:
    """A deposed leader fetches behind records that it alone has, and is elected before the response tells it to truncate."""
    a, b, c = run.leader, run.second, run.third
    holds = [run.hold(follower, a) for follower in (b, c)]
    await run.send_to(a, 200)
    deposed = run.hold(a, b)
    await run.lead(b)
    await run.until_held(deposed, f"{a} follows {b}")
    await run.pause(0.5)
    answers = run.hold(a, b, answers=True)
    deposed.let_go()
    await run.may_acknowledge(seconds=2.0)
    await run.lead(a)
    await run.pause(0.5)
    answers.lose()
    for hold in (answers, *holds):
        hold.let_go()


async def late_copy_of_a_request(run: PlanRun) -> None:
    """A producer's request arrives once more after the responses to later ones."""
    a = run.leader
    copy = run.hold("clients", a, "Produce", most=1)
    await run.until_held(copy, "a request is under way")
    await run.until_each_is_acknowledged(50)  # of what had to wait, much is in one batch
    await run.until_each_is_acknowledged(100)
    copy.let_go()
    await run.until_each_is_acknowledged(20)
