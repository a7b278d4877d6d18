"""Plans about leader epochs: elections that some brokers learn of late, and diverging logs."""

from kspec.trials.faults.plans.plan_run import PlanRun

CONTROLLER = "controller"
SOON_S = 0.5
APIS_OF_LEADERS = ("Fetch", "OffsetForLeaderEpoch")
"""The requests of followers to leaders."""


async def fast_leader_changes(run: PlanRun) -> None:
    """A follower that learns the high watermark late follows another leader for a moment, and is elected itself."""
    a, b, c = run.leader, run.second, run.third
    answers = [run.hold(follower, a, answers=True) for follower in (b, c)]
    await run.pause(SOON_S)
    asks = run.hold(c, b)
    await run.lead(b)
    await run.until_held(asks, f"{c} follows {b}")
    await run.lead(c)
    for hold in (*answers, asks):
        hold.let_go()
    await run.pause(1.0)


async def leaders_do_not_hear_of_each_other(run: PlanRun) -> None:
    """Two leaders write, in turns, and neither follows the other; then one of them leads, and the other after it."""
    a, b, c = run.leader, run.second, run.third
    pairs = ((b, a), (c, a), (a, b), (c, b))
    holds = [run.hold(follower, leader, api) for follower, leader in pairs for api in APIS_OF_LEADERS]
    await run.send_to(a, 200)
    await run.lead(b)
    await run.until_led_by(b)
    await run.pause(SOON_S)
    await run.send_to(b, 40)
    await run.lead(a)
    await run.until_led_by(a)
    await run.send_to(a, 100)
    for hold in holds:
        hold.let_go()
    await run.until_acknowledged(50)
    await run.until_in_sync(a, b, c)
    await run.lead(b)
    await run.until_led_by(b)
    await run.until_acknowledged(20)


async def tail_of_a_dead_leader(run: PlanRun) -> None:
    """A leader dies with records that no other replica has, follows when it is back, and leads again."""
    a, b, c = run.leader, run.second, run.third
    holds = [run.hold(follower, a) for follower in (b, c)]
    await run.send_to(a, 40)
    run.kill(a)
    for hold in holds:
        hold.let_go()
    await run.until_led_by(b, c)
    await run.until_acknowledged(200)
    await run.start(a)
    await run.until_in_sync(a, b, c)
    await run.lead(a)
    await run.until_led_by(a)
    await run.until_acknowledged(20)


async def missed_epoch(run: PlanRun) -> None:
    """A leader learns of two elections at once, of another broker and of itself; a follower has truncated in between."""
    a, b, c = run.leader, run.second, run.third
    deaf = run.hold(a, CONTROLLER)
    await run.until_held(deaf, f"{a} asks for news")
    lacks = run.hold(c, a)
    values = await run.send_to(a, 40)
    await run.pause(SOON_S)
    await run.reassign([c, a, b])
    await run.lead(c)
    await run.until_led_by(c)
    await run.pause(1.5)
    asks = run.hold(b, a)
    run.kill(c)
    await run.until_led_by(a)
    deaf.let_go()
    await run.may_be_polled(values)
    await run.may_acknowledge(seconds=1.0)
    run.kill(a)
    for hold in (asks, lacks):
        hold.let_go()
    await run.until_led_by(b)
    await run.start(a, c)


async def follower_of_an_old_epoch(run: PlanRun) -> None:
    """A follower without new metadata fetches from a leader of a later epoch, truncates in an epoch between, and leads."""
    a, b, c = run.leader, run.second, run.third
    deaf = run.hold(b, CONTROLLER)
    asks = [run.hold(c, a), run.hold(a, c)]
    await run.send_to(a, 40)
    await run.pause(SOON_S)
    late = run.hold(b, a)
    await run.until_held(late, f"{b} asks for more")
    await run.reassign([c, a, b])
    await run.lead(c)
    await run.until_led_by(c)
    await run.until_held(deaf, f"{b} does not hear that")
    news = run.hold(b, CONTROLLER, answers=True)
    deaf.release_one()
    await run.until_held(news, "the news are under way")
    heartbeats = run.hold(c, CONTROLLER, "BrokerHeartbeat")
    stays = run.hold(c, CONTROLLER, answers=True)
    await run.until_led_by(a)
    await run.pause(SOON_S)
    late.let_go()
    await run.pause(1.5)
    await run.read_from(a)
    news.release_one()
    await run.pause(1.5)
    asks.append(run.hold(b, a))
    run.kill(a)
    for hold in (news, deaf):
        hold.let_go()
    await run.until_led_by(b)
    for hold in (*asks, heartbeats, stays):
        hold.let_go()
    await run.start(a)


async def leader_is_handed_over_and_stops(run: PlanRun) -> None:
    """A leader gets no metadata, while a follower that is a little behind is elected, and then shut down."""
    a, b, c = run.leader, run.second, run.third
    news = run.hold(a, CONTROLLER, answers=True)
    asks = run.hold(b, a)
    await run.pause(SOON_S)
    await run.lead(b)
    await run.until_led_by(b)
    asks.let_go()
    run.terminate(b)
    await run.until_led_by(a, c)
    news.let_go()
    await run.until_acknowledged(50)
    await run.until_down(b, 80.0)
    await run.start(b)


async def fetch_of_before_two_elections(run: PlanRun) -> None:
    """A fetch arrives at its leader when that has been deposed, has not fetched, and leads again.

    The fetch's follower has records that the leader in between lacked.
    """
    a, b, c = run.leader, run.second, run.third
    behind = run.hold(b, a)
    await run.pause(SOON_S)
    late = run.hold(c, a)
    await run.until_held(late, f"{c} asks for more")
    deposed = run.hold(a, b)
    await run.reassign([b, a, c])
    await run.elect_preferred()
    await run.until_led_by(b)
    behind.let_go()
    run.terminate(b)
    await run.until_led_by(a)
    late.let_go()
    deposed.let_go()
    await run.until_acknowledged(50)
    await run.until_down(b, 80.0)
    await run.start(b)
