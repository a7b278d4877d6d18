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
