"""The parameters of the model, and what may not stand together."""

from typing import Any

from kspec.model_check.core.parameters import Parameter, ParameterError
from kspec.spec.messages.produce import ACKS_ALL, ACKS_LEADER, ACKS_NONE
from kspec.spec.releases.names import NEWEST_RELEASE, RELEASES

ACKS = {"0": ACKS_NONE, "1": ACKS_LEADER, "all": ACKS_ALL}
BEFORE, AFTER, NOBODY = "before", "after", "nobody"
WHEN_COMMITTED = (NOBODY, BEFORE, AFTER)

PARAMETERS = (
    Parameter("release", NEWEST_RELEASE, "Kafka's release", choices=RELEASES),
    Parameter("acks", "all", "the producer's acks", choices=tuple(ACKS)),
    Parameter("retries", False, "the producer sends a record again that may be lost"),
    Parameter("idempotent", False, "the producer has an id, and numbers its records (with acks=all and retries)"),
    Parameter(
        "commits", NOBODY, "when a process commits its offset, if any reads: before or after work", choices=WHEN_COMMITTED
    ),
    Parameter("records", 2, "records that the producer has to write", minimum=1),
    Parameter("disconnects", 0, "how often a connection of the producer may break, with a request or its answer", minimum=0),
    Parameter("late_requests", 0, "how many requests on a broken connection may arrive all the same", minimum=0),
    Parameter("restarts", 0, "how often the producer may start again", minimum=0),
    Parameter(
        "leader_changes", 0, "how often another replica becomes the leader, and the former one may have died", minimum=0
    ),
    Parameter("unclean", False, "another leader may lack records that are committed (unclean.leader.election.enable)"),
    Parameter("rebalances", 0, "how often another process takes over, whether the one before lives or not", minimum=0),
    Parameter("crashes", 0, "how many processes may end at any moment", minimum=0),
    Parameter("late_commits", 0, "how many commits on a broken connection may arrive all the same", minimum=0),
)


def check(parameters: dict[str, Any]) -> None:
    """Refuse settings that Kafka's producer refuses. Kafka: `ProducerConfig.postProcessAndValidateIdempotenceConfigs`."""
    if parameters["idempotent"] and not (parameters["acks"] == "all" and parameters["retries"]):
        raise ParameterError("delivery: an idempotent producer has acks=all and retries")
