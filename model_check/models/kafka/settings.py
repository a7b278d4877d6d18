"""The parameters of the model `kafka`: releases, bounds, settings; and the rules of a release."""

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from kspec.model_check.core.parameters import Parameter, ParameterError
from kspec.model_check.models.carriers import LOG
from kspec.model_check.models.kafka.party import PartyRules
from kspec.model_check.models.kafka.reductions import Reduction
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.isr.request import IsrWriter
from kspec.spec.controller.protocol import Controller, ControllerSettings
from kspec.spec.mutation import Mutant, weaken
from kspec.spec.releases.broker import BROKER_RELEASES
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.kraft import KRAFT_RELEASES
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from kspec.spec.releases.names import FIRST_KRAFT, RELEASES, default_release, kraft_of
from kspec.spec.releases.zookeeper import ZK_RELEASES
from kspec.spec.zookeeper.protocol import ZkController, ZkControllerSettings

FIRST_PROPOSING = [release.isr_writer for release in BROKER_RELEASES].index(IsrWriter.CONTROLLER)
"""From this release on leaders ask the controller for an ISR; before, they write it to ZooKeeper themselves."""

PARAMETERS = (
    Parameter(
        "release",
        default_release(),
        "Kafka's release, or one for each broker, with commas (next with a mutant)",
        choices=RELEASES,
        listed=True,
        repeated=True,
    ),
    Parameter(
        "brokers",
        3,
        "brokers, ids 1 to N, each with a replica of the one partition (2 with 0.11 to 1.1)",
        minimum=1,
        maximum=12,
    ),
    Parameter("values", 1, "most records ever produced (3 with 0.11 to 1.1)", minimum=0),
    Parameter("min_isr", 2, "min.insync.replicas", minimum=1),
    Parameter("acks", "all", "the acknowledgement that producers require", choices=("1", "all")),
    Parameter(
        "elections", 1, "elections of another leader, beyond the first, without a failure (2 with 0.11 to 2.0)", minimum=0
    ),
    Parameter("isr_shrinks", 0, "how many times a leader may find a follower too slow", minimum=0),
    Parameter("fencings", 0, "how many times the session of a running broker may end", minimum=0),
    Parameter("clean_shutdowns", 0, "how many times a broker may shut down cleanly", minimum=0),
    Parameter(
        "unclean_shutdowns",
        0,
        "how many times a broker may stop without warning, and lose records that were not flushed",
        minimum=0,
    ),
    Parameter(
        "epoch_file_losses",
        0,
        "how many times a broker may stop without warning, keep its log, and lose the epoch file beside it (--log epochs)",
        minimum=0,
    ),
    Parameter("reassignments", 0, "how many times a reassignment may begin or be cancelled", minimum=0),
    Parameter("late_registrations", 0, "how many times a registration may arrive a second time, long after", minimum=0),
    Parameter(
        "earlier_registrations",
        0,
        "how many times a registration of the incarnation before may arrive after that of the present one",
        minimum=0,
    ),
    Parameter(
        "slow_registrations",
        0,
        "how many times a registration may take so long that the started broker acts before (3.5 and later)",
        minimum=0,
    ),
    Parameter(
        "late_proposals",
        0,
        "how many times a copy of an AlterPartition request may arrive after the answer to the request",
        minimum=0,
    ),
    Parameter("only_stops", 0, "the only broker that may stop, which is not the first leader; 0: any may", minimum=0),
    Parameter("failovers", 0, "how many times the controller may be replaced (up to 2.8)", minimum=0),
    Parameter(
        "lost_confirmations",
        0,
        "how many times ZooKeeper's confirmation of an ISR that a leader writes may be lost (up to 2.6)",
        minimum=0,
    ),
    Parameter(
        "late_fetches",
        0,
        "how many fetches may be delayed: their sender or leader changes while they are under way",
        minimum=0,
    ),
    Parameter("retries", 0, "how many times an idempotent producer's request may arrive again", minimum=0),
    Parameter("unclean", False, "unclean.leader.election.enable"),
    Parameter(
        "endless_lag",
        False,
        "infinite replica.lag.time.max.ms: a follower that was caught up once in an epoch stays caught up",
    ),
    Parameter("without_elr", False, "no eligible leader replicas (4.0 and later)"),
    LOG,
    Parameter(
        "mutant",
        None,
        "weaken one rule, or several with commas",
        choices=tuple(mutant.name for mutant in (*BROKER_MUTANTS, *CONTROLLER_MUTANTS)),
        listed=True,
    ),
    Parameter(
        "without_reduction",
        None,
        "switch off a reduction, or several with commas: no verdict changes",
        choices=tuple(reduction.value for reduction in Reduction),
        listed=True,
    ),
)


KIP_279_BOUNDS: Mapping[str, Any] = {"brokers": 2, "values": 3, "elections": 2}
KIP_320_BOUNDS: Mapping[str, Any] = {"elections": 2}

BOUNDS_OF_RELEASE: Mapping[str, Mapping[str, Any]] = {
    **dict.fromkeys(("0.11", "1.0", "1.1"), KIP_279_BOUNDS),
    "2.0": KIP_320_BOUNDS,
}
"""The smallest bounds that show the defect which the next release repaired, where they are not the general defaults.

0.10 truncates to the high watermark: one value and one election show it. 0.11 to 1.1 keep a wrong record after two quick
leader changes (KIP-279), which needs three records. 2.0 follows deposed leaders (KIP-320), which needs a third broker.
"""


def defaults_with(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The defaults that depend on what is given: the release, and bounds of it. A mixed cluster has the general bounds."""
    release = given.get("release", default_release(given.get("mutant")))
    return {"release": release, **BOUNDS_OF_RELEASE.get(release, {})}


def _position(release: str) -> int:
    return RELEASES.index(release)


def releases_of(parameters: dict[str, Any]) -> tuple[str, ...]:
    """The release of each broker."""
    releases = tuple(str(parameters["release"]).split(","))
    count: int = parameters["brokers"]
    if parameters["min_isr"] > count:
        raise ParameterError(f"--min-isr {parameters['min_isr']}: must be {count} or less, the number of brokers")
    if parameters["only_stops"] > count:
        raise ParameterError(f"--only-stops {parameters['only_stops']}: must be {count} or less, the number of brokers")
    if parameters["endless_lag"] and parameters["isr_shrinks"]:
        raise ParameterError("--endless-lag: no follower is ever too slow, so --isr-shrinks must be 0")
    if parameters["epoch_file_losses"] and parameters[LOG.name] != "epochs":
        raise ParameterError("--epoch-file-losses: only with --log epochs, as a log of records has no epoch file")
    if len(releases) not in (1, count):
        raise ParameterError(f"--release {parameters['release']}: one release, or one for each of {count} brokers")
    _check_era(releases, parameters)
    return releases * count if len(releases) == 1 else releases


FIRST_WITH_ELR = next(
    RELEASES.index(release.name)
    for release in KRAFT_RELEASES
    if release.elr_enabled(ControllerSettings(eligible_leader_replicas=True))
)
"""From this release on there are eligible leader replicas."""

ONLY_ZOOKEEPER = ("failovers", "lost_confirmations")
ONLY_KRAFT = ("earlier_registrations", "late_proposals", "late_registrations", "slow_registrations", "without_elr")


def _check_era(releases: tuple[str, ...], parameters: dict[str, Any]) -> None:
    """Refuse releases that have no common controller here, and settings that its kind does not have."""
    given = f"--release {parameters['release']}"
    positions = [_position(release) for release in releases]
    if min(positions) < FIRST_KRAFT <= max(positions):
        raise ParameterError(
            f"{given}: up to 2.8 the controller works on ZooKeeper, from 3.0 on it is a KRaft controller; all of one kind"
        )
    kind = "works on ZooKeeper" if has_zookeeper(releases) else "is a KRaft controller"
    for name in ONLY_KRAFT if has_zookeeper(releases) else ONLY_ZOOKEEPER:
        if parameters[name]:
            raise ParameterError(f"--{name.replace('_', '-')}: not with {given}, whose controller {kind}")
    if parameters["lost_confirmations"] and min(positions) >= FIRST_PROPOSING:
        raise ParameterError(f"--lost-confirmations: not with {given}, whose leaders do not write the ISR themselves")
    if parameters["without_elr"] and min(positions) < FIRST_WITH_ELR:
        first = RELEASES[FIRST_WITH_ELR]
        raise ParameterError(f"--without-elr: {given} has no eligible leader replicas anyhow; {first} has, and later ones")
    weakened = _chosen(CONTROLLER_MUTANTS, parameters)
    if has_zookeeper(releases) and weakened:
        raise ParameterError(
            f"--mutant {weakened[0].name}: weakens a KRaft controller, which {given} has not; choose 3.0 or later"
        )


def rules_of(
    releases: tuple[str, ...], parameters: dict[str, Any], own: Mapping[str, BrokerProtocol] | None = None
) -> dict[int, PartyRules]:
    """Each broker's rules and settings. `own` are rules in place of those of the releases with these names.

    Up to 2.8 all brokers of a cluster change an ISR as its oldest release does (`inter.broker.protocol.version`).
    """
    mutants = _chosen(BROKER_MUTANTS, parameters)
    oldest = BROKER_RELEASES[min(_position(release) for release in releases)]
    known = {}
    for release in BROKER_RELEASES:
        released = (own or {}).get(release.name, release)
        if has_zookeeper(releases):
            released = replace(
                released,
                asks_for_isr=oldest.asks_for_isr,
                isr_writer=oldest.isr_writer,
                on_isr_error=oldest.on_isr_error,
            )
        known[release.name] = reduce(weaken, mutants, released)
    reductions = reductions_of(parameters)
    return {
        number: PartyRules(known[release], parameters["min_isr"], parameters["endless_lag"], reductions)
        for number, release in enumerate(releases, start=1)
    }


def reductions_of(parameters: dict[str, Any]) -> frozenset[Reduction]:
    """The reductions that are on: all except those that are switched off."""
    off = (parameters["without_reduction"] or "").split(",")
    return frozenset(reduction for reduction in Reduction if reduction.value not in off)


def has_zookeeper(releases: tuple[str, ...]) -> bool:
    """Whether the controller works on ZooKeeper: with brokers up to 2.8. From 3.0 on it is a KRaft controller."""
    return all(_position(release) < FIRST_KRAFT for release in releases)


def controller_of(releases: tuple[str, ...], parameters: dict[str, Any]) -> Controller | ZkController:
    """The controller's rules and settings: those of the oldest release, because an upgrade is completed last."""
    oldest = min(_position(release) for release in releases)
    if has_zookeeper(releases):
        rules = [release for release in ZK_RELEASES if _position(release.name) <= oldest]
        return ZkController(rules[-1], ZkControllerSettings(parameters["unclean"]))
    settings = ControllerSettings(
        min_isr=parameters["min_isr"],
        unclean_election=parameters["unclean"],
        eligible_leader_replicas=not parameters["without_elr"],
    )
    return Controller(reduce(weaken, _chosen(CONTROLLER_MUTANTS, parameters), kraft_of(RELEASES[oldest])), settings)


def _chosen(mutants: tuple[Mutant, ...], parameters: dict[str, Any]) -> list[Mutant]:
    names = (parameters["mutant"] or "").split(",")
    return [mutant for mutant in mutants if mutant.name in names]
