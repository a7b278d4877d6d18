"""Voter sets: who votes, and since where in the log."""

from typing import NamedTuple, TypeAlias

from kspec.spec.values import NO_DIRECTORY, UNKNOWN_OFFSET, BrokerId, Offset, ReplicaKey

VoterSet: TypeAlias = frozenset[ReplicaKey]
"""Voters, one for each id. Kafka: `VoterSet`. **Leaves out:** their addresses, and which versions they support."""


class VoterSetEntry(NamedTuple):
    """A voter set, and the offset of its record; `UNKNOWN_OFFSET` for that of the configuration.

    Kafka: `LogHistory.Entry`.
    """

    offset: Offset
    voters: VoterSet


VoterSets: TypeAlias = tuple[VoterSetEntry, ...]
"""The voter sets in a log, in the order of their offsets. Kafka: `VoterSetHistory`."""


def fixed_voters(voters: VoterSet) -> VoterSets:
    """The voter set of the configuration. **Kafka:** `VoterSetHistory` of `kraft.version` 0."""
    return (VoterSetEntry(UNKNOWN_OFFSET, voters),)


def matches(known: ReplicaKey, replica: ReplicaKey) -> bool:
    """Whether a replica is the one that is known: the same server, and the same directory, if one is known.

    **Kafka:** `VoterSet.VoterNode.isVoter`, `LeaderState.ReplicaState.matchesKey`.
    """
    return known.id == replica.id and known.directory in (NO_DIRECTORY, replica.directory)


def is_voter(voters: VoterSet, replica: ReplicaKey) -> bool:
    """Whether a replica is a voter. **Kafka:** `VoterSet.isVoter`."""
    return any(matches(voter, replica) for voter in voters)


def ids_of(voters: VoterSet) -> frozenset[BrokerId]:
    """The ids of the voters. **Kafka:** `VoterSet.voterIds`."""
    return frozenset(voter.id for voter in voters)
