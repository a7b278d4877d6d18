"""The operator of the simulated cluster, which sends each request to the controller once."""

from collections.abc import Callable, Sequence

from kspec.impl.broker.calls import Ask, ChannelKey
from kspec.impl.wire.apis import PREFERRED_ELECTION
from kspec.impl.wire.values import Message
from kspec.trials.simulated.clients.client import ClientEndpoint, ClientEnvironment, nothing
from kspec.trials.simulated.ids import ADMIN_ID, CONTROLLER_ID
from kspec.trials.simulated.network import Take


def no_matter(answer: Message | None) -> None:
    """Ignore a response."""


class Operator:
    """A sender of requests to the controller."""

    def __init__(self, environment: ClientEnvironment, controller: Callable[[], int] = lambda: CONTROLLER_ID) -> None:
        self._controller = controller
        self._client = ClientEndpoint(ADMIN_ID)
        self._network, self._topic = environment.network, environment.topic

    def _ask(self, api: str, message: Message, take: Take = no_matter) -> None:
        self._network.ask(self._client, Ask(ChannelKey(self._controller(), "admin"), api, message, nothing), take)

    def create_topic(
        self,
        assignments: Sequence[Sequence[int]],
        unclean_elections: bool,
        take: Take,
        more: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Create the topic, with these replicas for each partition, and `more` settings."""
        placed = [Message(partition_index=index, broker_ids=list(replicas)) for index, replicas in enumerate(assignments)]
        settings = [*([("unclean.leader.election.enable", "true")] if unclean_elections else []), *more]
        configs = [Message(name=name, value=value) for name, value in settings]
        fields = {"num_partitions": -1, "replication_factor": -1, "assignments": placed, "configs": configs}
        self._ask("CreateTopics", Message(topics=[Message(name=self._topic, **fields)], timeout_ms=30_000), take)

    def reassign(self, index: int, replicas: Sequence[int] | None, take: Take = no_matter) -> None:
        """Move a partition to other replicas, or cancel its move."""
        wanted = Message(partition_index=index, replicas=None if replicas is None else list(replicas))
        self._ask("AlterPartitionReassignments", Message(topics=[Message(name=self._topic, partitions=[wanted])]), take)

    def unregister(self, broker: int) -> None:
        """Remove the registration of a broker, which must be down."""
        self._ask("UnregisterBroker", Message(broker_id=broker))

    def prefer(self, partitions: Sequence[int], take: Take = no_matter) -> None:
        """Elect the preferred leaders of partitions."""
        named = [Message(topic=self._topic, partitions=list(partitions))]
        self._ask("ElectLeaders", Message(election_type=PREFERRED_ELECTION, topic_partitions=named), take)
