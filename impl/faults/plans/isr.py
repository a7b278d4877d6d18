"""Plans about the ISR: leader and controller do not know the same, and a member of the controller's ISR is elected."""

from impl.faults.play import Play

CONTROLLER = "controller"
NEWS_S = 1.0
"""Long enough for a leader to hear what the controller has written."""

LAG_S = 4.5
"""Longer than the lag with which a follower counts as caught up (`replica.lag.time.max.ms` of rounds)."""


async def _may_go_on_without(play: Play, behind: str) -> None:
    """Wait until a follower no longer counts as about to join, and then for what is acknowledged without it."""
    await play.pause(LAG_S)
    await play.send_to(play.leader, 20)
    await play.may_acknowledge()
    play.tell(f"{behind} lacks that")


async def admission_is_not_confirmed(play: Play) -> None:
    """A follower is admitted, and its leader does not hear that; the follower fetches no more, and is elected."""
    await _admitted(play, lost=False)


async def admission_is_lost(play: Play) -> None:
    """As before, and the connection is lost; the leader asks again, and is told that the partition has changed."""
    await _admitted(play, lost=True)


async def _admitted(play: Play, *, lost: bool) -> None:
    a, b, c = play.leader, play.second, play.third
    asks = play.hold(b, a)
    await play.until_in_sync(a, c)
    await play.pause(NEWS_S)
    news = play.hold(a, CONTROLLER, answers=True)
    answers = play.hold(a, CONTROLLER, "AlterPartition", answers=True)
    asks.let_go()
    await play.until_in_sync(a, b, c)
    asks = play.hold(b, a)
    if lost:
        await play.until_held(answers, "the confirmation is under way")
        answers.lose()
        answers.let_go()
    await _may_go_on_without(play, b)
    await play.lead(b)
    await play.pause(NEWS_S)
    for hold in (asks, answers, news):
        hold.let_go()


async def late_news(play: Play) -> None:
    """The leader hears late that a follower was dropped, while it admits it again; the follower is elected."""
    a, b, c = play.leader, play.second, play.third
    deaf = play.hold(a, CONTROLLER)
    asks = play.hold(b, a)
    await play.until_in_sync(a, c)
    await play.until_held(deaf, "the leader does not hear that")
    news = play.hold(a, CONTROLLER, answers=True)
    deaf.release_one()
    await play.until_held(news, "the news are under way")
    answers = play.hold(a, CONTROLLER, "AlterPartition", answers=True)
    asks.let_go()
    await play.until_in_sync(a, b, c)
    asks = play.hold(b, a)
    news.release_one()
    await _may_go_on_without(play, b)
    await play.lead(b)
    await play.pause(NEWS_S)
    for hold in (asks, answers, news, deaf):
        hold.let_go()


async def stale_proposal(play: Play) -> None:
    """A leader's request for a smaller ISR arrives when another replica has left the ISR, and is back without records."""
    a, b, c = play.leader, play.second, play.third
    proposals = play.hold(a, CONTROLLER, "AlterPartition")
    asks = play.hold(b, a)
    await play.until_held(proposals, "a smaller ISR is asked for")
    asks.let_go()
    heartbeats = play.hold(c, CONTROLLER, "BrokerHeartbeat")
    await play.until_in_sync(a, b)
    asks = play.hold(c, a)
    await play.pause(NEWS_S)
    news = play.hold(a, CONTROLLER, answers=True)
    heartbeats.let_go()
    await play.until(f"{c} is unfenced", lambda: not play.is_fenced(c))
    answers = play.hold(a, CONTROLLER, "AlterPartition", answers=True)
    proposals.let_go()
    if await play.within(2.0, lambda: c in play.in_sync()):
        play.tell("the stale request is granted")
    await play.may_acknowledge()
    await play.lead(c)
    await play.pause(NEWS_S)
    for hold in (asks, answers, news):
        hold.let_go()


async def early_join(play: Play) -> None:
    """A new leader does not know yet what is committed; a follower that lacks the last of it asks to join, and leads."""
    a, b, c = play.leader, play.second, play.third
    heartbeats = play.hold(b, CONTROLLER, "BrokerHeartbeat")
    await play.until_in_sync(a, c)
    asks = play.hold(c, a)
    lacks = play.hold(b, a)
    await play.until_held(asks, f"{c} asks for more")
    values = await play.send_to(a, 40)
    answers = play.hold(c, a, answers=True)
    asks.let_go()
    await play.until_held(answers, f"{c} is answered")
    answers.release_one()
    await play.may_be_polled(values)
    heartbeats.let_go()
    await play.until(f"{b} is unfenced", lambda: not play.is_fenced(b))
    deposed = play.hold(a, c)
    unanswered = play.hold(b, c, answers=True)
    await play.lead(c)
    await play.until_led_by(c)
    if await play.within(2.0, lambda: b in play.in_sync()):
        play.tell(f"{b} is admitted")
    await play.lead(b)
    await play.pause(NEWS_S)
    unanswered.lose()
    for hold in (unanswered, deposed, answers, lacks):
        hold.let_go()
