"""An operator of the simulated cluster: creates the topic, moves partitions, asks for preferred leaders."""

from collections.abc import Sequence

from impl.broker.calls import Ask, Channel
from impl.sim.clients import Asker, Surroundings, nothing
from impl.sim.network import Take
from impl.sim.setup import ADMIN_ID, CONTROLLER_ID
from impl.wire.apis import PREFERRED_ELECTION
from impl.wire.values import Message


def no_matter(answer: Message | None) -> None:
    """Nobody waits for the answer."""


class Operator:
    """Sends requests to the controller."""

    def __init__(self, around: Surroundings) -> None:
        self._client = Asker(ADMIN_ID)
        self._network, self._topic = around.network, around.topic

    def _ask(self, api: str, message: Message, take: Take = no_matter) -> None:
        self._network.ask(self._client, Ask(Channel(CONTROLLER_ID, "admin"), api, message, nothing), take)

    def create_topic(self, assignments: Sequence[Sequence[int]], unclean_elections: bool, take: Take) -> None:
        """Create the topic, with these replicas for each partition."""
        placed = [Message(partition_index=index, broker_ids=list(replicas)) for index, replicas in enumerate(assignments)]
        configs = [Message(name="unclean.leader.election.enable", value="true")] if unclean_elections else []
        fields = {"num_partitions": -1, "replication_factor": -1, "assignments": placed, "configs": configs}
        self._ask("CreateTopics", Message(topics=[Message(name=self._topic, **fields)], timeout_ms=30_000), take)

    def reassign(self, index: int, replicas: Sequence[int] | None) -> None:
        """Move a partition to other replicas, or cancel its move."""
        wanted = Message(partition_index=index, replicas=None if replicas is None else list(replicas))
        self._ask("AlterPartitionReassignments", Message(topics=[Message(name=self._topic, partitions=[wanted])]))

    def prefer(self, partitions: Sequence[int]) -> None:
        """Ask for the preferred leaders of partitions."""
        named = [Message(topic=self._topic, partitions=list(partitions))]
        self._ask("ElectLeaders", Message(election_type=PREFERRED_ELECTION, topic_partitions=named))
