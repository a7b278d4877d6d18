"""Plans about brokers that come back: without their records, or registered twice."""

from impl.faults.plans.committing import ELECTED_S
from impl.faults.play import Play

CONTROLLER = "controller"
COPY_S = 1.0


async def power_is_lost(play: Play) -> None:
    """One of two replicas in sync loses power and records, and is back; then the other is gone.

    Whether the session ends before the broker is back: it is in the ISR, or it was, and is eligible (KIP-966).
    """
    a, b, c = play.leader, play.second, play.third
    lacks = play.hold(c, a)
    await play.until_in_sync(a, b)
    await play.until_acknowledged(100)
    asks = play.hold(b, a)
    play.lose_power(b)
    await play.start(b)
    play.kill(a)
    await play.pause(ELECTED_S)
    for hold in (asks, lacks):
        hold.let_go()
    await play.start(a)


async def proposal_of_an_earlier_incarnation(play: Play) -> None:
    """The leader asks to admit a follower, which loses power before that arrives; back without records, it is elected."""
    a, b, c = play.leader, play.second, play.third
    asks = play.hold(b, a)
    await play.until_in_sync(a, c)
    await play.pause(1.0)
    proposals = play.hold(a, CONTROLLER, "AlterPartition")
    asks.let_go()
    await play.until_held(proposals, f"{a} asks to admit {b}")
    news = play.hold(a, CONTROLLER, answers=True)
    asks = play.hold(b, a)
    play.lose_power(b)
    await play.start(b)
    proposals.let_go()
    if await play.within(2.0, lambda: b in play.in_sync()):
        play.tell(f"{b} is admitted")
    await play.lead(b)
    await play.pause(1.0)
    for hold in (asks, news):
        hold.let_go()


async def registration_arrives_twice(play: Play) -> None:
    """A broker that is back registers, and its first request arrives after the second."""
    b = play.second
    copy = play.hold(b, CONTROLLER, "BrokerRegistration", most=1)
    play.terminate(b)
    await play.until(f"{b} has stopped", lambda: not play.cluster.processes[b].running)
    await play.start(b)
    await play.pause(COPY_S)
    copy.let_go()
    await play.pause(COPY_S)
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
