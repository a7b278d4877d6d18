"""The parameters of the model `messages`."""

from model_check.core.parameters import Parameter
from spec.releases.broker_mutants import BROKER_MUTANTS
from spec.releases.kraft_mutants import CONTROLLER_MUTANTS

PARAMETERS = (
    Parameter("brokers", 2, "replicas of the partition, ids 1 to N", minimum=2),
    Parameter("values", 1, "records written in all", minimum=0),
    Parameter("min_isr", 1, "min.insync.replicas; from 2 on, a broker that stops may lose records", minimum=1),
    Parameter("unclean_shutdowns", 0, "how often brokers stop without warning, in all", minimum=0),
    Parameter("max_epoch", 1, "highest leader epoch", minimum=0),
    Parameter("max_partition_epoch", 1, "highest partition epoch", minimum=0),
    Parameter("fetches", 3, "fetches sent in all", minimum=1),
    Parameter("proposals", 1, "ISR changes proposed in all", minimum=1),
    Parameter(
        "mutant",
        None,
        "weaken one rule",
        choices=tuple(mutant.name for mutant in (*BROKER_MUTANTS, *CONTROLLER_MUTANTS)),
    ),
)
