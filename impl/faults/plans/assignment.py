"""Plans about reassignments."""

from impl.faults.plans.committing import ELECTED_S
from impl.faults.play import Play


async def replica_is_taken_and_given_back(play: Play) -> None:
    """A replica is taken from a broker, and given back without records; then the others are gone."""
    a, b, c = play.leader, play.second, play.third
    await play.until_acknowledged(50)
    await play.reassign([a, c])
    await play.until_in_sync(a, c)
    await play.pause(1.0)
    await play.until_acknowledged(50)
    play.kill(c)
    await play.until_in_sync(a)
    asks = play.hold(b, a)
    await play.reassign([a, b])
    await play.until(f"{b} is a replica again", lambda: int(b) in play.partition().replicas)
    await play.pause(1.0)
    play.kill(a)
    await play.pause(ELECTED_S)
    asks.let_go()
    await play.start(a, c)
    await play.pause(2.0)


async def fetch_of_before_the_removal(play: Play) -> None:
    """A replica is removed and added again, empty; a fetch that it sent before arrives, and it is elected."""
    a, b, c = play.leader, play.second, play.third
    await play.until_acknowledged(50)
    asks = [play.hold(b, a), play.hold(c, a)]
    await play.until_held(asks[0], f"{b} asks for more")
    await play.until_held(asks[1], f"{c} asks for more")
    await play.reassign([a, c])
    await play.until_in_sync(a, c)
    await play.pause(DELETED_S)
    await play.reassign([a, c, b])
    await play.pause(DELETED_S)
    answers = play.hold(b, a, answers=True)
    asks[0].let_go()
    if await play.within(2.0, lambda: b in play.in_sync()):
        play.tell(f"{b} is admitted")
    await play.lead(b)
    await play.pause(1.0)
    answers.lose()
    for hold in (answers, asks[1]):
        hold.let_go()


DELETED_S = 0.7
"""Long enough for a broker to hear that it has a replica no more, and to delete it."""
