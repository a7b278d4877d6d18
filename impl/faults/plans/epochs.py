"""Plans about leader epochs: elections that some hear of late, and logs that part."""

from impl.faults.play import Play

CONTROLLER = "controller"
SOON_S = 0.5
ASKED = ("Fetch", "OffsetForLeaderEpoch")
"""What followers ask leaders."""


async def fast_leader_changes(play: Play) -> None:
    """A follower that knows the high watermark late follows another leader for a moment, and is elected itself."""
    a, b, c = play.leader, play.second, play.third
    answers = [play.hold(follower, a, answers=True) for follower in (b, c)]
    await play.pause(SOON_S)
    asks = play.hold(c, b)
    await play.lead(b)
    await play.until_held(asks, f"{c} follows {b}")
    await play.lead(c)
    for hold in (*answers, asks):
        hold.let_go()
    await play.pause(1.0)


async def leaders_do_not_hear_of_each_other(play: Play) -> None:
    """Two leaders write, in turns, and neither follows the other; then one of them leads, and the other after it."""
    a, b, c = play.leader, play.second, play.third
    pairs = ((b, a), (c, a), (a, b), (c, b))
    holds = [play.hold(follower, leader, api) for follower, leader in pairs for api in ASKED]
    await play.send_to(a, 200)
    await play.lead(b)
    await play.until_led_by(b)
    await play.pause(SOON_S)
    await play.send_to(b, 40)
    await play.lead(a)
    await play.until_led_by(a)
    await play.send_to(a, 100)
    for hold in holds:
        hold.let_go()
    await play.until_acknowledged(50)
    await play.until_in_sync(a, b, c)
    await play.lead(b)
    await play.until_led_by(b)
    await play.until_acknowledged(20)


async def tail_of_a_dead_leader(play: Play) -> None:
    """A leader dies with records that nobody else has, follows when it is back, and leads again."""
    a, b, c = play.leader, play.second, play.third
    holds = [play.hold(follower, a) for follower in (b, c)]
    await play.send_to(a, 40)
    play.kill(a)
    for hold in holds:
        hold.let_go()
    await play.until_led_by(b, c)
    await play.until_acknowledged(200)
    await play.start(a)
    await play.until_in_sync(a, b, c)
    await play.lead(a)
    await play.until_led_by(a)
    await play.until_acknowledged(20)


async def missed_epoch(play: Play) -> None:
    """A leader hears of two elections at once, of another broker and of itself; a follower has truncated in between."""
    a, b, c = play.leader, play.second, play.third
    deaf = play.hold(a, CONTROLLER)
    await play.until_held(deaf, f"{a} asks for news")
    lacks = play.hold(c, a)
    values = await play.send_to(a, 40)
    await play.pause(SOON_S)
    await play.reassign([c, a, b])
    await play.lead(c)
    await play.until_led_by(c)
    await play.pause(1.5)
    asks = play.hold(b, a)
    play.kill(c)
    await play.until_led_by(a)
    deaf.let_go()
    await play.may_be_polled(values)
    await play.may_acknowledge(seconds=1.0)
    play.kill(a)
    for hold in (asks, lacks):
        hold.let_go()
    await play.until_led_by(b)
    await play.start(a, c)


async def follower_of_an_old_epoch(play: Play) -> None:
    """A follower that hears of nothing fetches from a leader of a later epoch, truncates in an epoch between, and leads."""
    a, b, c = play.leader, play.second, play.third
    deaf = play.hold(b, CONTROLLER)
    asks = [play.hold(c, a), play.hold(a, c)]
    await play.send_to(a, 40)
    await play.pause(SOON_S)
    late = play.hold(b, a)
    await play.until_held(late, f"{b} asks for more")
    await play.reassign([c, a, b])
    await play.lead(c)
    await play.until_led_by(c)
    await play.until_held(deaf, f"{b} does not hear that")
    news = play.hold(b, CONTROLLER, answers=True)
    deaf.release_one()
    await play.until_held(news, "the news are under way")
    heartbeats = play.hold(c, CONTROLLER, "BrokerHeartbeat")
    stays = play.hold(c, CONTROLLER, answers=True)
    await play.until_led_by(a)
    await play.pause(SOON_S)
    late.let_go()
    await play.pause(1.5)
    await play.read_from(a)
    news.release_one()
    await play.pause(1.5)
    asks.append(play.hold(b, a))
    play.kill(a)
    for hold in (news, deaf):
        hold.let_go()
    await play.until_led_by(b)
    for hold in (*asks, heartbeats, stays):
        hold.let_go()
    await play.start(a)
