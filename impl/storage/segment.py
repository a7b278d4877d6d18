"""A segment: a `.log` file with its two indexes."""

from dataclasses import dataclass

from impl.storage.disk import Handle
from spec.values import Offset


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Whole batches that lie behind each other in one segment file, to be sent from there.

    `first_offset` is the base offset of the first batch, which may be below the offset asked for. `next_offset` is the one
    after the last batch. An empty slice has length 0, and both are the offset asked for. The slice keeps its file open: it
    can be read even if the segment is deleted meanwhile.
    """

    handle: Handle
    position: int
    length: int
    first_offset: Offset
    next_offset: Offset

    def bytes(self) -> bytes:
        """The batches themselves."""
        return self.handle.read(self.position, self.length)
