"""A loss of power on the files of a broker that has been killed: what was not synced is gone."""

from pathlib import Path

from conformance.story.seen import HIGH_WATERMARKS, checkpoints_in
from impl.records.batch import headers

MADE_ANEW = ("*.index", "*.timeindex", "*.snapshot")
"""Files that a broker makes anew from its log."""


def lose_power(data: Path, topic: str, kept: int, high_watermark: int) -> None:
    """Of the log of partition 0 only the first records are left, and this checkpoint of its high watermark."""
    folder = data / f"{topic}-0"
    for segment in folder.glob("*.log"):
        content = segment.read_bytes()
        whole = [header for header in headers(content) if header.last_offset < kept]
        segment.write_bytes(content[: sum(header.size for header in whole)])
    for pattern in MADE_ANEW:
        for file in folder.glob(pattern):
            file.unlink()
    left = {**checkpoints_in(data), f"{topic} 0": high_watermark}
    lines = [f"{place} {offset}" for place, offset in left.items()]
    (data / HIGH_WATERMARKS).write_text("\n".join(["0", str(len(lines)), *lines, ""]), encoding="utf-8")
