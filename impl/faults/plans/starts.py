"""Plans about brokers that come back: without their records, or registered twice."""

from impl.faults.plans.committing import ELECTED_S
from impl.faults.play import Play

CONTROLLER = "controller"
COPY_S = 1.0


async def power_is_lost(play: Play) -> None:
    """A follower loses power and records, and is back before its session ends; then it is the only one that is up."""
    a, b, c = play.leader, play.second, play.third
    await play.until_acknowledged(100)
    asks = play.hold(b, a)
    play.lose_power(b)
    await play.start(b)
    play.kill(a, c)
    await play.pause(ELECTED_S)
    asks.let_go()
    await play.start(a, c)


async def registration_arrives_twice(play: Play) -> None:
    """A broker that is back registers, and its first request arrives after the second."""
    b = play.second
    copy = play.hold(b, CONTROLLER, "BrokerRegistration", most=1)
    play.terminate(b)
    await play.until(f"{b} has stopped", lambda: not play.cluster.processes[b].running)
    await play.start(b)
    await play.pause(COPY_S)
    copy.let_go()
    await play.until_acknowledged(50)


async def leader_stops_while_the_controller_dies(play: Play) -> None:
    """The leader is asked to stop in order, and the controller is killed meanwhile."""
    a, b, c = play.leader, play.second, play.third
    play.terminate(a)
    await play.pause(play.random.uniform(0.0, 0.3))
    play.kill(CONTROLLER)
    await play.pause(1.0)
    await play.start(CONTROLLER)
    await play.until_led_by(b, c)
    await play.until(f"{a} has stopped", lambda: not play.cluster.processes[a].running, 80.0)
    await play.until_acknowledged(50)
    await play.start(a)
