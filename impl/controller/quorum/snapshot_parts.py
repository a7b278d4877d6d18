"""A snapshot of the metadata log as a voter fetches it, piece by piece."""

from dataclasses import dataclass

from kspec.spec.messages.quorum.fetch import SnapshotId
from kspec.spec.values import BrokerId


@dataclass(slots=True)
class PartOfSnapshot:
    """A snapshot that is being fetched, as far as it is there. `generation`: of the requests among which it is."""

    snapshot: SnapshotId
    leader: BrokerId
    generation: int
    content: bytes = b""
