"""The parameters of the model `messages`: bounds, min ISR, and one weakened rule."""

from typing import Any

from kspec.model_check.core.parameters import Parameter, ParameterError
from kspec.model_check.models.carriers import LOG
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS

PARAMETERS = (
    Parameter("brokers", 2, "brokers, ids 1 to N, each with a replica of the one partition", minimum=2, maximum=12),
    Parameter("values", 1, "most records ever produced", minimum=0),
    Parameter("min_isr", 1, "min.insync.replicas; from 2 on, a broker that stops may lose records", minimum=1),
    Parameter("unclean_shutdowns", 0, "how many times a broker may stop without warning", minimum=0),
    Parameter("max_epoch", 1, "highest leader epoch", minimum=0),
    Parameter("max_partition_epoch", 1, "highest partition epoch", minimum=0),
    Parameter("fetches", 3, "most fetches ever sent", minimum=1),
    Parameter("proposals", 1, "most ISR changes ever proposed", minimum=1),
    LOG,
    Parameter(
        "mutant",
        None,
        "weaken one rule",
        choices=tuple(mutant.name for mutant in (*BROKER_MUTANTS, *CONTROLLER_MUTANTS)),
    ),
)


def check(parameters: dict[str, Any]) -> None:
    """Refuse parameters that do not go together: `ParameterError`."""
    if parameters["min_isr"] > parameters["brokers"]:
        most = parameters["brokers"]
        raise ParameterError(f"--min-isr {parameters['min_isr']}: must be {most} or less, the number of brokers")
