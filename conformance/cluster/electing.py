"""An election without a failure, by Kafka's requests: a new order of the replicas, and a preferred election."""

from collections.abc import Mapping, Sequence

from kspec.conformance.cluster.driver import DriverError
from kspec.impl.wire.apis import PREFERRED_ELECTION
from kspec.impl.wire.values import Message
from kspec.trials.cluster.asking import NOT_REACHED, NodeClient

REASSIGN_VERSION, ELECT_VERSION = 0, 2
TIMEOUT_MS = 10_000


async def elect_by_wire(brokers: Mapping[str, tuple[str, int]], topic: str, replicas: Sequence[int]) -> None:
    """Send the requests to one broker after the other, until one has forwarded them. Raises: `DriverError`."""
    for place in brokers.values():
        asking = NodeClient(*place)
        try:
            moved = Message(partition_index=0, replicas=list(replicas))
            topics = [Message(name=topic, partitions=[moved])]
            await asking.ask("AlterPartitionReassignments", REASSIGN_VERSION, timeout_ms=TIMEOUT_MS, topics=topics)
            named = [Message(topic=topic, partitions=[0])]
            fields = {"election_type": PREFERRED_ELECTION, "topic_partitions": named, "timeout_ms": TIMEOUT_MS}
            await asking.ask("ElectLeaders", ELECT_VERSION, **fields)
        except NOT_REACHED:
            continue
        finally:
            asking.close()
        return
    raise DriverError("no broker has forwarded the election to the controller")
