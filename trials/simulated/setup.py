"""The inputs of a run: the seed, the rules of each node, and the clients' acks; all else follows from the seed."""

from collections.abc import Mapping
from dataclasses import dataclass

from kspec.impl.metadata.voters import RECONFIGURABLE
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.protocol import Controller
from kspec.spec.controller.rules.features import KRAFT_VERSION, FeatureLevel, supports
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.releases.features import kraft_versions, release_of
from kspec.trials.simulated.ids import OFFSETS_PARTITIONS
from kspec.trials.simulated.kinds.connections import RequestCopy
from kspec.trials.simulated.plan import RunConditions, conditions_of, with_voters

CODED_ONE_IN = 10

COPIES, MOST_PAUSE_MS = 0.4, 1_500
"""The share of copied requests among the faults of clusters with transactions, and the longest pause between two faults."""

HEARTBEATS = 6
"""The number of heartbeats within a session timeout. Kafka: 9,000 and 2,000 ms by default."""

SETTINGS: Mapping[str, str] = {
    "replica.fetch.wait.max.ms": "300",
    "replica.fetch.backoff.ms": "200",
    "auto.create.topics.enable": "false",
    "log.segment.bytes": "4096",
    "log.index.interval.bytes": "256",
    "log.retention.ms": "-1",
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": str(OFFSETS_PARTITIONS),
    "transaction.state.log.replication.factor": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "200",
    "group.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "200",
    "producer.id.expiration.ms": str(2**31 - 1),  # a wall clock that jumps a day ahead makes nobody repeat himself
}
"""Shorter times than Kafka's, so that more happens in a run."""

DELETING: Mapping[str, str] = {
    "log.retention.bytes": "6000",
    "leader.imbalance.check.interval.seconds": "3",
}
"""The settings where records are deleted: a log is as long as two segments or three."""

UNCLEAN: Mapping[str, str] = {"unclean.leader.election.interval.ms": "1000"}


@dataclass(frozen=True, slots=True)
class RunSetup:
    """The inputs of a run. `protocols`: the rules of each broker by its id."""

    seed: int
    protocols: Mapping[int, BrokerProtocol]
    controller: Controller
    replication_factor: int = 3
    acks: int = ACKS_ALL
    relies_on_acks: bool = True
    """Whether an acknowledgement is a promise. With acks=1 it is none, and only what a consumer has read must stay."""
    unclean_elections: bool = False
    """Whether the topic allows unclean elections, by which acknowledged records may be lost."""
    conditions: RunConditions | None = None
    """The conditions of the run; by default those of the seed."""
    coded: bool | None = None
    """Whether all messages are encoded and decoded as on a real wire; by default in one seed of `CODED_ONE_IN`."""

    loses_epoch_files: bool = False
    """Whether a broker that is killed, or loses power, may lose its epoch files alone: empty, zeros, or behind the log.

    Kafka 3.7.0 writes them without fsync (KAFKA-16541).
    """

    controllers: int = 1
    """The number of controllers."""

    quorum: QuorumProtocol | None = None
    """The rules of controllers as voters, if they are not those of their release."""

    transactions: bool = False
    """Whether there are producers of transactions, and readers of what is committed, beside all other clients."""

    @property
    def conditions_now(self) -> RunConditions:
        """The conditions of this run. With transactions requests are copied often: what arrives late is their hazard."""
        conditions = self.conditions
        if conditions is None:
            conditions = conditions_of(self.seed)
            if self.controllers > 1:
                conditions = with_voters(self.seed, conditions)
        if not self.transactions:
            return conditions
        others = [(kind, weight) for kind, weight in conditions.weights if kind is not RequestCopy]
        copies = COPIES * sum(weight for _, weight in others) / (1 - COPIES)
        pauses = (conditions.pauses[0], min(conditions.pauses[1], max(MOST_PAUSE_MS, conditions.pauses[0])))
        return conditions._replace(weights=((RequestCopy, copies), *others), pauses=pauses)

    @property
    def has_voters_in_log(self) -> bool:
        """Whether the voters are in the log, and may be changed: several, whose release can do so (KIP-853)."""
        known = (kraft_versions(release_of(self.controller.protocol.name)),)
        return self.controllers > 1 and supports(known, FeatureLevel(KRAFT_VERSION, RECONFIGURABLE))

    @property
    def is_coded(self) -> bool:
        """Whether messages are encoded. The run is the same if they are not."""
        return self.coded if self.coded is not None else self.seed % CODED_ONE_IN == 0

    def settings(self) -> dict[str, str]:
        """The settings of all nodes."""
        conditions = self.conditions_now
        own = {
            "replica.lag.time.max.ms": str(conditions.max_lag),
            "min.insync.replicas": str(conditions.min_isr),
            "transaction.state.log.min.isr": str(conditions.min_isr),
            "broker.session.timeout.ms": str(conditions.session),
            "broker.heartbeat.interval.ms": str(conditions.session // HEARTBEATS),
            "metadata.log.max.record.bytes.between.snapshots": str(conditions.snapshot_bytes),
        }
        deleting = DELETING if conditions.deletes else {}
        unclean = UNCLEAN if self.unclean_elections else {}
        return {**SETTINGS, **own, **deleting, **unclean}
