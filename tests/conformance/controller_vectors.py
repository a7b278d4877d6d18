"""Components of test vectors that concern the controller; `tests.conformance.vectors` replays them."""

from dataclasses import replace
from typing import Any

from kspec.spec.controller.decisions import change_partition
from kspec.spec.controller.protocol import Controller, ControllerProtocol, ControllerSettings
from kspec.spec.controller.rules.partition_change import (
    Election,
    PartitionTarget,
    never_recovering,
    removes_replica_or_shrinks_isr,
    unchanged,
)
from kspec.spec.metadata import (
    NO_LEADER_CHANGE,
    LeaderRecoveryState,
    PartitionChangeRecord,
    PartitionRecord,
    PartitionRegistration,
)
from kspec.spec.releases.kraft import KRAFT_4_0
from kspec.spec.values import NO_LEADER, BrokerId, Epoch, PartitionEpoch, PartitionId
from tests.conformance.components import BrokerIds, VectorAnswer
from tests.conformance.outcomes import UnsupportedError
from tests.conformance.vocabulary import field_of

Json = dict[str, Any]

PARTITION = PartitionId(0)
NO_CHANGE = (None, NO_LEADER_CHANGE, "NO_CHANGE")
"""Values of a vector by which a field of the record stays unchanged."""


class VectorFields(dict[str, Any]):
    """The fields of a record that change something; an expectation has all of them, under any of their names."""

    def matches(self, expected: Any) -> bool:
        if expected is None:
            return not self
        if not isinstance(expected, dict):
            return False
        named = {_field(name): value for name, value in expected.items() if value not in NO_CHANGE}
        recovery = named.get("leader_recovery")
        if type(recovery) is int:
            named["leader_recovery"] = _recovery(recovery).name
        return dict(self) == named


class ElectionAnswer(dict[str, Any]):
    """The leader of an election, and whether it is unclean: by name, as a pair, or the leader alone."""

    def matches(self, expected: Any) -> bool:
        if isinstance(expected, dict):
            named = {_field(name): value for name, value in expected.items()}
            return named != {} and named.items() <= self.items()
        return expected in ([self["leader"], self["unclean"]], self["leader"])


FIELDS = ("isr", "leader", "replicas", "leader_recovery", "elr", "last_known_elr", "adding", "removing", "unclean")


def _field(name: str) -> str:
    field = field_of(FIELDS, name)
    if field is None:
        raise UnsupportedError(f"expected {name}")
    return field


class PartitionChange:
    """`controller_partition_change`: Kafka's `PartitionChangeBuilder` is `change_partition` and its rules.

    The rules are those of 4.0; `metadata_version` asks for the ones of an earlier version of the metadata.
    """

    def final_state(self) -> Json:
        return {}

    def elect_leader(
        self,
        registration: Json,
        acceptable: list[int] | str | None = None,
        election: str = "ONLINE",
        **given: Any,
    ) -> VectorAnswer:
        """The leader of an election, and whether it is unclean; nothing is written down."""
        asked = _known(given)
        rules, settings = _rules(asked), _settings(asked)
        partition = _registration(registration)
        target, alive = _target(partition, asked), _acceptable(acceptable, partition, asked)
        remembers = rules.elr_enabled(settings) and settings.last_known_leader
        last_known = rules.last_known_leader(partition, target, alive, remembers)
        elected = rules.elect(partition, target, alive, _election(election), last_known)
        answer = ElectionAnswer(leader=elected.leader, unclean=elected.unclean)
        return VectorAnswer(value=answer, named=dict(answer))

    def build_change(
        self,
        registration: Json,
        acceptable: list[int] | str | None = None,
        election: str = "ONLINE",
        **given: Any,
    ) -> VectorAnswer:
        """The fields of the record; none if there is no record."""
        asked = _known(given)
        partition = _registration(registration)
        record = change_partition(
            Controller(_rules(asked), _settings(asked)),
            PartitionRecord(PARTITION, partition),
            _target(partition, asked),
            _acceptable(acceptable, partition, asked),
            _election(election),
            _brokers(asked.get("unclean_shutdown", [])),
        )
        fields = VectorFields() if record is None else _fields(record)
        return VectorAnswer(value=fields, named=dict.fromkeys(FIELDS) | fields)


def _acceptable(given: list[int] | str | None, partition: PartitionRegistration, asked: Json) -> frozenset[BrokerId]:
    """Brokers that may lead; all replicas unless the operation says otherwise."""
    if isinstance(given, str) and given not in ("all", "none"):
        raise UnsupportedError(f"acceptable {given}")
    if isinstance(given, list):
        return _brokers(given)
    everybody = frozenset(partition.replicas) | frozenset(_target(partition, asked).replicas)
    return frozenset() if given == "none" else everybody


def _brokers(ids: list[int]) -> frozenset[BrokerId]:
    return frozenset(BrokerId(broker) for broker in ids)


def _replicas(ids: list[int]) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(broker) for broker in ids)


def _election(name: str) -> Election:
    plain = name.upper().removeprefix("ELECTION.")
    if plain not in Election.__members__:
        raise UnsupportedError(f"election {name}")
    return Election[plain]


def _known(given: Json) -> Json:
    """Arguments of an operation, by the names here; complains about what it gives and nobody reads."""
    asked = {field_of(KNOWN, name) or name: value for name, value in given.items()}
    unread = sorted(set(asked) - KNOWN)
    if unread:
        raise UnsupportedError(f"argument {', '.join(unread)}")
    return asked


def _rules(asked: Json) -> ControllerProtocol:
    """The rules for the version of the metadata, or of the record, that an operation names."""
    version = RECORD_VERSIONS[asked["record_version"]] if "record_version" in asked else "4.0"
    major, minor = (int(part) for part in str(asked.get("metadata_version", version)).split("-")[0].split(".")[:2])
    rules = KRAFT_4_0
    if (major, minor) < (3, 6):
        rules = replace(rules, opens_epoch=removes_replica_or_shrinks_isr)
    return rules if (major, minor) >= (3, 2) else replace(rules, marks_recovering=never_recovering)


RECORD_VERSIONS = {0: "3.7-IV0", 1: "3.7-IV2", 2: "4.0-IV1"}
"""The first version of the metadata that writes a version of the record. Kafka: `MetadataVersion`."""


def _settings(asked: Json) -> ControllerSettings:
    return ControllerSettings(
        min_isr=asked.get("min_isr", 1),
        eligible_leader_replicas=asked.get("elr_enabled", False),
        last_known_leader=asked.get("use_last_known_leader", True),
    )


def _registration(given: Json) -> PartitionRegistration:
    """A partition as the controller knows it; what is not given has the value of a partition without it."""
    names = {*PartitionRegistration._fields, "leader_recovery", "directories"} - {"recovery"}
    known = {field_of(names, name) or name: value for name, value in given.items()}
    if unread := sorted(set(known) - names):
        raise UnsupportedError(f"registration's {', '.join(unread)}")
    return PartitionRegistration(
        replicas=_replicas(known["replicas"]),
        isr=_brokers(known.get("isr", [])),
        leader=BrokerId(NO_LEADER if known.get("leader") is None else known["leader"]),
        leader_epoch=Epoch(known.get("leader_epoch", 0)),
        partition_epoch=PartitionEpoch(known.get("partition_epoch", 0)),
        recovery=_recovery(known.get("leader_recovery", "RECOVERED")),
        elr=_brokers(known.get("elr") or []),
        last_known_elr=_brokers(known.get("last_known_elr") or []),
        adding=_brokers(known.get("adding") or []),
        removing=_brokers(known.get("removing") or []),
    )


def _recovery(state: str | int) -> LeaderRecoveryState:
    return LeaderRecoveryState(state) if isinstance(state, int) else LeaderRecoveryState[state.upper()]


def _target(partition: PartitionRegistration, given: Json) -> PartitionTarget:
    """The target that the operation names, with the partition's own values for the rest."""
    target = unchanged(partition)
    if "target_replicas" in given:
        target = target._replace(replicas=_replicas(given["target_replicas"]))
    sets: Json = {
        name: _brokers(given[f"target_{name}"])
        for name in ("isr", "adding", "removing", "elr", "last_known_elr")
        if f"target_{name}" in given
    }
    target = target._replace(**sets)
    if "target_recovery" in given:
        target = target._replace(recovery=_recovery(given["target_recovery"]))
    return target


def _fields(record: PartitionChangeRecord) -> VectorFields:
    fields = VectorFields()
    if record.leader != NO_LEADER_CHANGE:
        fields["leader"] = record.leader
    if record.replicas is not None:
        fields["replicas"] = list(record.replicas)
    if record.recovery is not None:
        fields["leader_recovery"] = record.recovery.name
    for name in ("isr", "elr", "last_known_elr", "adding", "removing"):
        members = getattr(record, name)
        if members is not None:
            fields[name] = BrokerIds(sorted(members))
    return fields


KNOWN = {
    "min_isr",
    "elr_enabled",
    "use_last_known_leader",
    "unclean_shutdown",
    "metadata_version",
    "record_version",
    "target_recovery",
    *(f"target_{name}" for name in ("replicas", "isr", "adding", "removing", "elr", "last_known_elr")),
}

CONTROLLER_COMPONENTS: dict[str, type[PartitionChange]] = {"controller_partition_change": PartitionChange}
