"""What the world is brought back to when a run is over, so that another can begin on the same process."""

from conformance.world.play.cast import Cast
from impl.wire.values import Message


async def leave_as_before(cast: Cast) -> None:
    """Remove the run's topic; all brokers are registered and unfenced again, and the one under test serves."""
    world, registry = cast.world, cast.world.registry
    if not world.process.started:
        await _come_back(cast)
    world.log.show()
    await world.applied()
    world.log.append([("RemoveTopicRecord", Message(topic_id=cast.topic_id))])
    back = [registry.change(node, fenced=False) for node in sorted(registry.fenced)]
    if back:
        world.log.append(back)
    for node in sorted(registry.leaving):
        world.log.append([registry.new_incarnation(node, world.log.end)])
    world.log.show()
    await world.applied()


async def _come_back(cast: Cast) -> None:
    """Bring a broker that is on its way back to where a new run can begin: registered, unfenced, serving."""
    world = cast.world
    for held in (cast.registration, world.controller.held):
        if held is not None:
            held.answer(world.controller.register(held))
    world.log.frozen = False
    world.log.show()
    await world.serves()
