"""This broker's copy of the metadata log: the batches that it has fetched."""

from kspec.impl.metadata.files import MetadataFiles
from kspec.spec.values import Instant, Offset


class MetadataCopy(MetadataFiles):
    """The copy on disk. What of it is committed, the controller says anew after each start."""

    def append(self, batches: bytes, now: Instant) -> None:
        """Append batches as they came."""
        self.files.append_fetched(batches, now)

    def cut(self, end_offset: Offset) -> None:
        """Cut what the controller does not have."""
        self.files.truncate_to(end_offset)
