"""Plans about the ISR: leader and controller differ, and a member of the controller's ISR is elected."""

from kspec.trials.faults.plans.plan_run import PlanRun

CONTROLLER = "controller"
NEWS_S = 1.0
"""Long enough for a leader to read the controller's last records."""

LAG_S = 4.5
"""Longer than the lag with which a follower counts as caught up (`replica.lag.time.max.ms` of rounds)."""


async def _may_go_on_without(run: PlanRun, behind: str) -> None:
    """Wait until a follower exceeds the lag, and then for acknowledgements without it."""
    await run.pause(LAG_S)
    await run.send_to(run.leader, 20)
    await run.may_acknowledge()
    run.tell(f"{behind} lacks that")


async def admission_is_not_confirmed(run: PlanRun) -> None:
    """A follower is admitted, and its leader does not learn of it; the follower fetches no more, and is elected."""
    await _admitted(run, lost=False)


async def admission_is_lost(run: PlanRun) -> None:
    """As before, and the connection is lost; the leader proposes again, and is refused: the partition has changed."""
    await _admitted(run, lost=True)


async def _admitted(run: PlanRun, *, lost: bool) -> None:
    a, b, c = run.leader, run.second, run.third
    asks = run.hold(b, a)
    await run.until_in_sync(a, c)
    await run.pause(NEWS_S)
    news = run.hold(a, CONTROLLER, answers=True)
    answers = run.hold(a, CONTROLLER, "AlterPartition", answers=True)
    asks.let_go()
    await run.until_in_sync(a, b, c)
    asks = run.hold(b, a)
    if lost:
        await run.until_held(answers, "the confirmation is under way")
        answers.lose()
        answers.let_go()
    await _may_go_on_without(run, b)
    await run.lead(b)
    await run.pause(NEWS_S)
    for hold in (asks, answers, news):
        hold.let_go()


async def late_news(run: PlanRun) -> None:
    """The leader learns late that a follower has left the ISR, while it admits it again; the follower is elected."""
    a, b, c = run.leader, run.second, run.third
    deaf = run.hold(a, CONTROLLER)
    asks = run.hold(b, a)
    await run.until_in_sync(a, c)
    await run.until_held(deaf, "the leader does not hear that")
    news = run.hold(a, CONTROLLER, answers=True)
    deaf.release_one()
    await run.until_held(news, "the news are under way")
    answers = run.hold(a, CONTROLLER, "AlterPartition", answers=True)
    asks.let_go()
    await run.until_in_sync(a, b, c)
    asks = run.hold(b, a)
    news.release_one()
    await _may_go_on_without(run, b)
    await run.lead(b)
    await run.pause(NEWS_S)
    for hold in (asks, answers, news, deaf):
        hold.let_go()


async def stale_proposal(run: PlanRun) -> None:
    """A leader's proposal of a smaller ISR arrives when another replica has left the ISR, and is back without records."""
    a, b, c = run.leader, run.second, run.third
    proposals = run.hold(a, CONTROLLER, "AlterPartition")
    asks = run.hold(b, a)
    await run.until_held(proposals, "a smaller ISR is asked for")
    asks.let_go()
    heartbeats = run.hold(c, CONTROLLER, "BrokerHeartbeat")
    await run.until_in_sync(a, b)
    asks = run.hold(c, a)
    await run.pause(NEWS_S)
    news = run.hold(a, CONTROLLER, answers=True)
    heartbeats.let_go()
    await run.until(f"{c} is unfenced", lambda: not run.is_fenced(c))
    answers = run.hold(a, CONTROLLER, "AlterPartition", answers=True)
    proposals.let_go()
    if await run.within(2.0, lambda: c in run.in_sync()):
        run.tell("the stale request is granted")
    await run.may_acknowledge()
    await run.lead(c)
    await run.pause(NEWS_S)
    for hold in (asks, answers, news):
        hold.let_go()


async def early_join(run: PlanRun) -> None:
    """A new leader does not know the high watermark yet; a follower that lacks committed records joins, and leads."""
    a, b, c = run.leader, run.second, run.third
    heartbeats = run.hold(b, CONTROLLER, "BrokerHeartbeat")
    await run.until_in_sync(a, c)
    asks = run.hold(c, a)
    lacks = run.hold(b, a)
    await run.until_held(asks, f"{c} asks for more")
    values = await run.send_to(a, 40)
    answers = run.hold(c, a, answers=True)
    asks.let_go()
    await run.until_held(answers, f"{c} is answered")
    answers.release_one()
    await run.may_be_polled(values)
    heartbeats.let_go()
    await run.until(f"{b} is unfenced", lambda: not run.is_fenced(b))
    deposed = run.hold(a, c)
    unanswered = run.hold(b, c, answers=True)
    await run.lead(c)
    await run.until_led_by(c)
    if await run.within(2.0, lambda: b in run.in_sync()):
        run.tell(f"{b} is admitted")
    await run.lead(b)
    await run.pause(NEWS_S)
    unanswered.lose()
    for hold in (unanswered, deposed, answers, lacks):
        hold.let_go()
