"""The parameters of the model."""

from kspec.model_check.core.parameters import Parameter
from kspec.spec.consumer.modern.protocol import HEARTBEAT_PROTOCOLS
from kspec.spec.consumer.rules import CONSUMER_PROTOCOLS
from kspec.spec.releases.coordinator import COORDINATOR_RELEASES, LATE_REQUESTS_REPAIRED
from kspec.spec.releases.group_mutants import CONSUMER_MUTANTS, COORDINATOR_MUTANTS, HEARTBEAT_MUTANTS

COORDINATORS = (*COORDINATOR_RELEASES, LATE_REQUESTS_REPAIRED)
"""The coordinators that the model knows by their names."""

PARAMETERS = (
    Parameter(
        "release",
        COORDINATOR_RELEASES[-1].name,
        "the coordinator's rules: the first release of Kafka that has them, or a repair",
        choices=tuple(release.name for release in COORDINATORS),
    ),
    Parameter(
        "protocol",
        CONSUMER_PROTOCOLS[0].name,
        "how members give up partitions: in the classic protocol, or in a consumer group (KIP-848)",
        choices=tuple(protocol.name for protocol in (*CONSUMER_PROTOCOLS, *HEARTBEAT_PROTOCOLS)),
    ),
    Parameter("consumers", 2, "consumers, 1 to N, each of which may join", minimum=1),
    Parameter("topic_partitions", 1, "partitions of the one topic", minimum=1),
    Parameter("generations", 2, "how many generations may begin, or epochs in which something has changed", minimum=1),
    Parameter("lives", 1, "how many member ids a consumer may get", minimum=1),
    Parameter("records", 1, "how far a consumer may read, and commit", minimum=0),
    Parameter("writes", 2, "how many writes of the coordinator may wait to be committed", minimum=1),
    Parameter("expiries", 0, "how often a session of a living member, or the time of a rebalance, may end", minimum=0),
    Parameter("disconnects", 0, "how often a connection may break, with a request or its answer", minimum=0),
    Parameter("late_requests", 0, "how many requests on a broken connection may arrive all the same", minimum=0),
    Parameter("moves", 0, "how often another broker becomes the coordinator", minimum=0),
    Parameter("zombies", 0, "how often the coordinator before goes on answering for a while", minimum=0),
    Parameter("lags", 0, "how often a coordinator begins without knowing that the last write is committed", minimum=0),
    Parameter("leaves", 0, "how often a consumer may leave; it may come back", minimum=0),
    Parameter("unstable_reads", False, "offsets are read without waiting for what is on its way, as clients before 2.5 do"),
    Parameter("static_members", False, "each consumer has an instance id, and comes back under another member id"),
    Parameter("member_id_first", False, "a new member is told its id, and joins again with it (KIP-394)"),
    Parameter(
        "mutant",
        None,
        "weaken one rule of the coordinator or of the consumers",
        choices=tuple(mutant.name for mutant in (*COORDINATOR_MUTANTS, *CONSUMER_MUTANTS, *HEARTBEAT_MUTANTS)),
    ),
)
