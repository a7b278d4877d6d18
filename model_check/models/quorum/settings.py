"""The parameters of the model."""

from collections.abc import Mapping
from typing import Any

from kspec.model_check.core.parameters import Parameter
from kspec.spec.quorum.rules import votes
from kspec.spec.releases.mutants.quorum import QUORUM_MUTANTS
from kspec.spec.releases.quorum import QUORUM_NEXT, QUORUM_RELEASES

NEWEST = QUORUM_RELEASES[-2].name
"""The newest release of Kafka: `next` comes after it."""

REPAIRS: Mapping[str, Mapping[str, Any]] = {
    "refuse-while-served": {"takes_epoch_of_vote": votes.takes_epoch_unless_served},
}
"""By name: the rules in place of those of the release."""

PARAMETERS = (
    Parameter(
        "release",
        NEWEST,
        "the first release of Kafka that has these rules (next with a mutant)",
        choices=tuple(release.name for release in QUORUM_RELEASES),
    ),
    Parameter("servers", 3, "servers, ids 1 to N", minimum=1),
    Parameter("voters", 0, "how many of them vote at first, the others observe; 0: all", minimum=0),
    Parameter("voter_changes", 0, "how often a voter may be added or removed (kraft.version 1)", minimum=0),
    Parameter("upgrades", 0, "how often kraft.version may be raised from 0 to 1, so that voters are in the log", minimum=0),
    Parameter("max_epoch", 2, "the last epoch that may begin", minimum=1),
    Parameter("records", 1, "how many records leaders append, but for the first one of an epoch", minimum=0),
    Parameter("answer_size", 0, "how many records an answer to a fetch has at most; 0: all", minimum=0),
    Parameter("restarts", 0, "how often a server may stop and start again, with all that it has written", minimum=0),
    Parameter("power_losses", 0, "how often a server may lose what it has not flushed, and start again", minimum=0),
    Parameter("wipes", 0, "how often a server may lose its disk, and start again with another", minimum=0),
    Parameter("resignations", 0, "how often a leader may resign, since it stops or hears of nobody", minimum=0),
    Parameter("lost_answers", 0, "how many answers may be lost, to requests that were handled", minimum=0),
    Parameter("late_requests", 0, "how many requests may be under way for any time, and arrive once more", minimum=0),
    Parameter("late_answers", 0, "how many answers may be under way for any time", minimum=0),
    Parameter("snapshots", 0, "how often a server may take a snapshot, and drop the records before its end", minimum=0),
    Parameter("fair_timers", False, "a timer ends only for a server that reaches nobody who would answer in time"),
    Parameter("cuts", 0, "how often two servers may be cut off from each other, and for how long", minimum=0),
    Parameter("strangers", 0, "how often one who is no voter may ask for a vote in a later epoch", minimum=0),
    Parameter("without_directories", False, "kraft.version 0: a server with another disk is the same voter"),
    Parameter("repair", (), "rules to repair that no release has repaired", choices=tuple(REPAIRS), many=True),
    Parameter("mutant", None, "weaken one rule", choices=tuple(mutant.name for mutant in QUORUM_MUTANTS)),
)


def defaults_with(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The defaults that depend on what is given: with a mutant the release that has no known defect."""
    return {"release": QUORUM_NEXT.name if given.get("mutant") else NEWEST}
