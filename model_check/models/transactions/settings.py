"""The parameters of the model."""

from kspec.model_check.core.parameters import Parameter
from kspec.spec.releases.transactions.history import TRANSACTION_RELEASES
from kspec.spec.releases.transactions.mutants import TRANSACTION_MUTANTS
from kspec.spec.releases.transactions.offset_mutants import OFFSET_MUTANTS
from kspec.spec.values import LAST_PRODUCER_EPOCH

VERSIONS = ("0", "1", "2")

PARAMETERS = (
    Parameter(
        "release",
        TRANSACTION_RELEASES[-1].name,
        "the rules of coordinator and leaders: the first release of Kafka that has them",
        choices=tuple(release.name for release in TRANSACTION_RELEASES),
    ),
    Parameter("transaction_version", "2", "transaction.version of the cluster and its producers", choices=VERSIONS),
    Parameter("producers", 1, "incarnations of the producer, 1 to N, each of which may start", minimum=1),
    Parameter("topic_partitions", 1, "partitions that are written to", minimum=1),
    Parameter("transactions", 2, "how many transactions a producer may begin", minimum=1),
    Parameter("records", 1, "how many records a producer may write to a partition in a transaction", minimum=1),
    Parameter("late_requests", 0, "how many requests on a broken connection may arrive all the same", minimum=0),
    Parameter("disconnects", 0, "how often a connection may break, with a request or its answer", minimum=0),
    Parameter("timeouts", 0, "how often a transaction may take too long", minimum=0),
    Parameter("moves", 0, "how often another broker becomes the coordinator", minimum=0),
    Parameter(
        "uncommitted_loads", 0, "how often another broker may coordinate by a record that is not committed", minimum=0
    ),
    Parameter("refusals", 0, "how often the log of the coordinator may refuse a record", minimum=0),
    Parameter("unknown_appends", 0, "how often a record may be committed after the coordinator has given it up", minimum=0),
    Parameter("late_markers", 0, "how many markers may arrive, or be answered, late", minimum=0),
    Parameter("leader_changes", 0, "how often a partition may get another leader", minimum=0),
    Parameter("inputs", 0, "records that processes of a group read, each of which is one producer", minimum=0),
    Parameter("rebalances", 0, "how often another process becomes the member of the group", minimum=0),
    Parameter("own_ids", False, "each producer has a transactional id of its own"),
    Parameter("unnamed_members", False, "who commits offsets in a transaction does not say of which member (before 2.5)"),
    Parameter("unstable_reads", False, "a process takes a committed offset though a transaction is to commit another"),
    Parameter("first_epoch", 0, "the epoch that the first producer gets", minimum=0, maximum=LAST_PRODUCER_EPOCH),
    Parameter(
        "mutant",
        None,
        "weaken one rule of coordinator or leaders",
        choices=tuple(mutant.name for mutant in (*TRANSACTION_MUTANTS, *OFFSET_MUTANTS)),
    ),
)
