"""Plans about what counts as replicated: a leader acknowledges, and what it has acknowledged is looked for elsewhere."""

from impl.faults.play import Play

ELECTED_S = 9.0
"""Long enough for sessions to end, and for an election that must not happen."""

MAY_JOIN_S = 3.0


async def leader_dies_after_acknowledging(play: Play) -> None:
    """Followers ask for many records, and get no answers; what is acknowledged meanwhile must be on one of them."""
    a, b, c = play.leader, play.second, play.third
    asks = [play.hold(follower, a) for follower in (b, c)]
    await play.pause(1.0)
    answers = [play.hold(follower, a, answers=True) for follower in (b, c)]
    for hold in asks:
        hold.let_go()
    await play.pause(1.0)
    play.kill(a)
    await play.until_led_by(b, c)
    for hold in answers:
        hold.let_go()
    await play.start(a)


async def leader_is_alone(play: Play) -> None:
    """Nobody fetches until the leader is the only one in sync; what is acknowledged or polled then must outlive it."""
    a, b, c = play.leader, play.second, play.third
    holds = [play.hold(follower, a) for follower in (b, c)]
    values = await play.send_to(a, 20)
    await play.until_in_sync(a)
    await play.may_be_polled(values)
    await play.may_acknowledge()
    play.kill(a)
    for hold in holds:
        hold.let_go()
    await play.pause(ELECTED_S)
    await play.start(a)


async def follower_is_behind(play: Play) -> None:
    """A follower falls behind, and may fetch, but gets no answers; then it is the only one that is up."""
    a, b, c = play.leader, play.second, play.third
    asks = play.hold(b, a)
    await play.until_in_sync(a, c)
    await play.until_acknowledged(100)
    answers = play.hold(b, a, answers=True)
    asks.let_go()
    await play.within(MAY_JOIN_S, lambda: b in play.in_sync())
    play.kill(a, c)
    answers.lose()
    answers.let_go()
    await play.pause(ELECTED_S)
    await play.start(a, c)


async def smaller_isr_is_not_granted(play: Play) -> None:
    """The leader's request for a smaller ISR does not arrive; whoever it would drop is elected, without records."""
    a, b = play.leader, play.second
    proposals = play.hold(a, "controller", "AlterPartition")
    asks = play.hold(b, a)
    await play.until_held(proposals, "a smaller ISR is asked for")
    await play.send_to(a, 20)
    await play.may_acknowledge()
    await play.lead(b)
    asks.let_go()
    await play.pause(1.0)
    proposals.let_go()


async def diverging_follower(play: Play) -> None:
    """A deposed leader fetches behind records that it alone has; it is elected before it hears that they are not there."""
    a, b, c = play.leader, play.second, play.third
    holds = [play.hold(follower, a) for follower in (b, c)]
    await play.send_to(a, 200)
    deposed = play.hold(a, b)
    await play.lead(b)
    await play.until_held(deposed, f"{a} follows {b}")
    await play.pause(0.5)
    answers = play.hold(a, b, answers=True)
    deposed.let_go()
    await play.may_acknowledge(seconds=2.0)
    await play.lead(a)
    await play.pause(0.5)
    answers.lose()
    for hold in (answers, *holds):
        hold.let_go()


async def late_copy_of_a_request(play: Play) -> None:
    """A producer's request arrives once more, when later ones have been answered."""
    a = play.leader
    copy = play.hold("clients", a, "Produce", most=1)
    await play.until_held(copy, "a request is under way")
    await play.until_each_is_acknowledged(50)  # of what had to wait, much is in one batch
    await play.until_each_is_acknowledged(100)
    copy.let_go()
    await play.until_each_is_acknowledged(20)
