"""The cleanup after a run, so that another one can begin on the same process."""

from kspec.conformance.world.replay.parties import Parties
from kspec.impl.wire.values import Message


async def leave_as_before(parties: Parties) -> None:
    """Remove the run's topic; all brokers are registered and unfenced again, and the one under test serves."""
    world, registry = parties.world, parties.world.registry
    if not world.process.started:
        await _come_back(parties)
    world.log.show()
    await world.applied()
    world.log.append([("RemoveTopicRecord", Message(topic_id=parties.topic_id))])
    back = [registry.change(node, fenced=False) for node in sorted(registry.fenced)]
    if back:
        world.log.append(back)
    for node in sorted(registry.leaving):
        world.log.append([registry.new_incarnation(node, world.log.end)])
    world.log.show()
    await world.applied()


async def _come_back(parties: Parties) -> None:
    """Bring a broker that is on its way back to where a new run can begin: registered, unfenced, serving."""
    world = parties.world
    for held in (parties.registration, world.controller.held):
        if held is not None:
            held.answer(world.controller.register(held))
    world.log.frozen = False
    world.log.show()
    await world.serves()
