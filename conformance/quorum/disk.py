"""A disk that keeps what was synced, and nothing else, for a process of Kafka: its syncs may be held up.

The system keeps what a killed process has written. So a library, loaded before the C library, notes how far each segment of
the metadata log was synced, and a loss of power cuts the segments back to that.
"""

import shutil
import subprocess
from pathlib import Path

from kspec.conformance.kafka.jars import Jars, KafkaMissingError
from kspec.conformance.kafka.process import KafkaProcess

SOURCE = Path(__file__).with_name("disk.c")


def build_library(folder: Path) -> Path:
    """Compile the library. Raises: `KafkaMissingError`, if there is no C compiler, or it fails."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise KafkaMissingError("there is no C compiler (cc), and a disk that loses what was not synced needs one")
    library = folder / "disk.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise KafkaMissingError(f"{compiler} does not compile {SOURCE.name}: {done.stderr.strip().splitlines()[:1]}")
    return library


class ProcessOnDisk(KafkaProcess):
    """A process of Kafka whose metadata log lies on such a disk."""

    def __init__(self, jars: Jars, folder: Path, library: Path) -> None:
        super().__init__(jars, folder, {})
        self._library = library
        self._notes = folder / "synced"
        self._notes.mkdir(parents=True, exist_ok=True)

    def command(self) -> list[str]:
        """The command of the process, with the library loaded first."""
        return ["env", f"LD_PRELOAD={self._library}", f"KSPEC_DISK={self._notes}", *super().command()]

    def hold_syncs(self) -> None:
        """Let every sync of the metadata log that begins from now on take for ever."""
        (self._notes / "hold").touch()

    def let_sync(self) -> None:
        """Let syncs go on."""
        (self._notes / "hold").unlink(missing_ok=True)

    def written_and_synced(self, data: Path) -> tuple[int, int]:
        """The bytes of the metadata log that are written, and those of them that are synced."""
        segments = self._segments(data)
        return sum(file.stat().st_size for file in segments), sum(map(self._synced, segments))

    def lose_power(self, data: Path) -> int:
        """End the process, and cut its log back to what was synced; how many bytes that takes."""
        self.kill()
        lost = 0
        for file in self._segments(data):
            size, synced = file.stat().st_size, self._synced(file)
            with file.open("r+b") as segment:
                segment.truncate(min(size, synced))
            lost += size - min(size, synced)
        self.let_sync()
        return lost

    @staticmethod
    def _segments(data: Path) -> list[Path]:
        return sorted((data / "__cluster_metadata-0").glob("*.log"))

    def _synced(self, segment: Path) -> int:
        note = self._notes / segment.name
        return int(note.read_text(encoding="utf-8") or 0) if note.exists() else 0
