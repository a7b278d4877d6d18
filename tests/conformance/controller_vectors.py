"""Components of test vectors that concern the controller; `tests.conformance.vectors` replays them."""

from dataclasses import replace
from typing import Any

from spec.controller.decisions import change_partition
from spec.controller.protocol import Controller, ControllerProtocol, ControllerSettings
from spec.controller.rules.partition_change import (
    Election,
    Target,
    never_recovering,
    removes_replica_or_shrinks_isr,
    unchanged,
)
from spec.metadata import (
    NO_LEADER_CHANGE,
    LeaderRecoveryState,
    PartitionChangeRecord,
    PartitionRecord,
    PartitionRegistration,
)
from spec.releases.kraft import KRAFT_4_0
from spec.values import BrokerId, Epoch, PartitionEpoch, PartitionId
from tests.conformance.outcomes import UnsupportedError

Json = dict[str, Any]

PARTITION = PartitionId(0)
ALIASES = {"recovery": "leader_recovery", "leader_recovery_state": "leader_recovery", "node": "leader"}


class Unordered(list[int]):
    """Broker ids in any order: Kafka keeps some sets as lists, whose order decides nothing."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and sorted(self) == sorted(other)

    def __ne__(self, other: object) -> bool:
        return not self == other


class Fields(dict[str, Any]):
    """An answer by name, whichever of several names an expectation uses."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, dict):
            return False
        renamed = {ALIASES.get(name, name): value for name, value in other.items()}
        return dict.__eq__(self, renamed)

    def __ne__(self, other: object) -> bool:
        return not self == other


class ElectionAnswer(Fields):
    """Who would lead, and whether uncleanly: by name, as a pair, or the leader alone."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, dict):
            renamed = {ALIASES.get(name, name): value for name, value in other.items()}
            return renamed != {} and renamed.items() <= self.items()
        return other in ([self["leader"], self["unclean"]], self["leader"])

    def __ne__(self, other: object) -> bool:
        return not self == other


class PartitionChange:
    """`controller_partition_change`: Kafka's `PartitionChangeBuilder` is `change_partition` and its rules.

    The rules are those of 4.0; `metadata_version` asks for the ones of an earlier version of the metadata.
    """

    def final_state(self) -> Json:
        return {}

    def elect_leader(
        self, registration: Json, acceptable: list[int], election: str = "ONLINE", **given: Any
    ) -> ElectionAnswer:
        """Who would lead, and whether that is unclean; nothing is written down."""
        rules, settings = _rules(given), _settings(given)
        partition = _registration(registration)
        target = _target(partition, given)
        remembers = rules.elr_enabled(settings) and settings.last_known_leader
        last_known = rules.last_known_leader(partition, target, _brokers(acceptable), remembers)
        elected = rules.elect(partition, target, _brokers(acceptable), _election(election), last_known)
        return ElectionAnswer(leader=elected.leader, unclean=elected.unclean)

    def build_change(
        self, registration: Json, acceptable: list[int], election: str = "ONLINE", **given: Any
    ) -> Fields | None:
        """The fields of the record, `None` if there is none."""
        partition = _registration(registration)
        record = change_partition(
            Controller(_rules(given), _settings(given)),
            PartitionRecord(PARTITION, partition),
            _target(partition, given),
            _brokers(acceptable),
            _election(election),
            _brokers(given.get("unclean_shutdown", [])),
        )
        return None if record is None else _fields(record)


def _brokers(ids: list[int]) -> frozenset[BrokerId]:
    return frozenset(BrokerId(broker) for broker in ids)


def _replicas(ids: list[int]) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(broker) for broker in ids)


def _election(name: str) -> Election:
    if name.upper() not in Election.__members__:
        raise UnsupportedError(f"election {name}")
    return Election[name.upper()]


def _rules(given: Json) -> ControllerProtocol:
    """The rules for what an operation gives; complains about what it gives and nobody reads."""
    unread = sorted(set(given) - KNOWN)
    if unread:
        raise UnsupportedError(f"argument {', '.join(unread)}")
    major, minor = (int(part) for part in given.get("metadata_version", "4.0").split("-")[0].split(".")[:2])
    rules = KRAFT_4_0
    if (major, minor) < (3, 6):
        rules = replace(rules, opens_epoch=removes_replica_or_shrinks_isr)
    return rules if (major, minor) >= (3, 2) else replace(rules, marks_recovering=never_recovering)


def _settings(given: Json) -> ControllerSettings:
    return ControllerSettings(
        min_isr=given.get("min_isr", 1),
        eligible_leader_replicas=given.get("elr_enabled", False),
        last_known_leader=given.get("use_last_known_leader", True),
    )


def _registration(given: Json) -> PartitionRegistration:
    return PartitionRegistration(
        replicas=_replicas(given["replicas"]),
        isr=_brokers(given["isr"]),
        leader=BrokerId(given["leader"]),
        leader_epoch=Epoch(given["leader_epoch"]),
        partition_epoch=PartitionEpoch(given["partition_epoch"]),
        recovery=LeaderRecoveryState[given.get("leader_recovery", "RECOVERED")],
        elr=_brokers(given.get("elr", [])),
        last_known_elr=_brokers(given.get("last_known_elr", [])),
        adding=_brokers(given.get("adding", [])),
        removing=_brokers(given.get("removing", [])),
    )


def _target(partition: PartitionRegistration, given: Json) -> Target:
    """What the operation asks for by name, and for the rest what the partition has."""
    target = unchanged(partition)
    if "target_replicas" in given:
        target = target._replace(replicas=_replicas(given["target_replicas"]))
    sets: Json = {
        name: _brokers(given[f"target_{name}"])
        for name in ("isr", "adding", "removing", "elr", "last_known_elr")
        if f"target_{name}" in given
    }
    target = target._replace(**sets)
    for argument in ("target_recovery", "target_leader_recovery"):
        if argument in given:
            target = target._replace(recovery=LeaderRecoveryState[given[argument]])
    return target


def _fields(record: PartitionChangeRecord) -> Fields:
    fields = Fields()
    if record.leader != NO_LEADER_CHANGE:
        fields["leader"] = record.leader
    if record.replicas is not None:
        fields["replicas"] = list(record.replicas)
    if record.recovery is not None:
        fields["leader_recovery"] = record.recovery.name
    for name in ("isr", "elr", "last_known_elr", "adding", "removing"):
        members = getattr(record, name)
        if members is not None:
            fields[name] = Unordered(sorted(members))
    return fields


KNOWN = {
    "min_isr",
    "elr_enabled",
    "use_last_known_leader",
    "unclean_shutdown",
    "metadata_version",
    "target_recovery",
    "target_leader_recovery",
    *(f"target_{name}" for name in ("replicas", "isr", "adding", "removing", "elr", "last_known_elr")),
}

CONTROLLER_COMPONENTS: dict[str, type[PartitionChange]] = {"controller_partition_change": PartitionChange}
