"""Voter sets (KIP-853), as records of the metadata log and configurations have them."""

from typing import NamedTuple, TypeAlias

from kspec.spec.values import Offset, ReplicaKey

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
