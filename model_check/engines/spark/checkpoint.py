"""Checkpoints of a search on Spark: the states are already in Parquet files, so a checkpoint says which files count.

The manifest is replaced in one step, and files that it names are removed only after the next one is written. So whenever
the driver dies, the folder holds the last completed checkpoint. `docs/spark.md` describes the files.
"""

import hashlib
import json
import time
from typing import Any

from kspec.model_check.core.exploration import CheckpointError, CheckpointPlan
from kspec.model_check.engines.compiled.checkpoint import difference
from kspec.model_check.engines.compiled.written_values import UnknownValueError, value_as_text, value_from_text
from kspec.model_check.engines.spark.worker.core import Numbering
from kspec.model_check.engines.spark.worker.runs import Folder, FolderError, StateFile

FORMAT = 1
MANIFEST = "spark-manifest.json"
_OURS = ("states/", "waiting/", f"{MANIFEST}.")


class SparkCheckpoint:
    """The checkpoints of one exploration in its folder."""

    def __init__(self, asked: CheckpointPlan, ours: dict[str, Any]) -> None:
        self.address = asked.address or str(asked.folder)
        self.resumes = asked.resume
        self._every, self._tell = asked.every, asked.tell
        self._ours = json.loads(json.dumps(ours))
        self._next = time.monotonic() + self._every
        self._replaced: list[str] = []
        try:
            self.folder = Folder(self.address)
            self.folder.create()
            names = self.folder.names()
        except (FolderError, OSError) as error:
            raise CheckpointError(f"{self.address} cannot hold checkpoints: {error}") from error
        if self.resumes and MANIFEST not in names:
            raise CheckpointError(f"there is no checkpoint of engine spark in {self.address} to resume")
        if not self.resumes:
            self._refuse_used(names)
            self.folder.remove(names)

    def _refuse_used(self, names: list[str]) -> None:
        if MANIFEST in names:
            raise CheckpointError(
                f"{self.address} holds a checkpoint already: go on from it with --resume {self.address}, or remove it"
            )
        foreign = sorted(name for name in names if not name.startswith(_OURS))
        if foreign:
            raise CheckpointError(f"{self.address} holds other files ({foreign[0]}); checkpoints need a folder of their own")

    @property
    def due(self) -> bool:
        """Whether it is time for the next one."""
        return time.monotonic() >= self._next

    def replaced(self, names: list[str]) -> None:
        """Note that these files are obsolete once the next checkpoint is written."""
        self._replaced += names

    # ---- writing

    def save(self, moment: dict[str, Any], numbering: Numbering, visited: list[list[StateFile]], last: bool = False) -> None:
        """Write a checkpoint. If that fails, the previous one stays valid, and the search need not stop."""
        try:
            files = [run.file for runs in visited for run in runs]
            checkpoint = {
                "format": FORMAT,
                "identity": self._ours,
                "moment": moment,
                "values": [[value_as_text(value) for value in values] for values in numbering.values],
                "layouts": numbering.layouts,
                "visited": visited,
                "bytes": self.folder.size(files),
            }
            text = json.dumps(checkpoint)
            self.folder.write_json(MANIFEST, {"sha256": _digest(text), "checkpoint": text})
        except (OSError, UnknownValueError) as error:
            self._tell(f"no checkpoint could be written to {self.address}: {error}")
        else:
            self.folder.remove(sorted(set(self._replaced) - set(files)))
            self._replaced = []
            if last:
                states = sum(run.states for runs in visited for run in runs)
                self._tell(f"a checkpoint of {states:,} states is in {self.address}; --resume {self.address} goes on")
        self._next = time.monotonic() + self._every

    # ---- reading

    def load(self) -> tuple[dict[str, Any], Numbering, list[list[StateFile]]]:
        """The knowledge at the checkpoint; `CheckpointError` if it cannot be resumed."""
        try:
            described = self.folder.read_json(MANIFEST)
            text, digest = described["checkpoint"], described["sha256"]
            checkpoint = json.loads(text)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CheckpointError(f"{self.address}/{MANIFEST} is damaged, or no checkpoint's") from error
        if digest != _digest(text):
            raise CheckpointError(f"{self.address}/{MANIFEST} is damaged: its digest is not that of its content")
        if checkpoint["format"] != FORMAT:
            raise CheckpointError(
                f"the checkpoint in {self.address} has format {checkpoint['format']}; this version reads format {FORMAT}"
            )
        for part, value in self._ours.items():
            theirs = checkpoint["identity"].get(part)
            if theirs != value:
                raise CheckpointError(f"the checkpoint in {self.address} is of {difference(part, theirs, value)}")
        visited = [
            [StateFile(file, layout, tuple((level, count) for level, count in levels)) for file, layout, levels in runs]
            for runs in checkpoint["visited"]
        ]
        self._make_sure_of(visited, checkpoint["bytes"])
        try:
            values = [[value_from_text(text) for text in texts] for texts in checkpoint["values"]]
        except UnknownValueError as error:
            raise CheckpointError(f"{self.address}/{MANIFEST} cannot be resumed: {error}") from error
        layouts = [(tuple(widths), tuple(words)) for widths, words in checkpoint["layouts"]]
        return checkpoint["moment"], Numbering(0, values, layouts), visited

    def _make_sure_of(self, visited: list[list[StateFile]], size: int) -> None:
        """Make sure that all files are there as they were written, and remove files from after the checkpoint."""
        named = {run.file for runs in visited for run in runs}
        there = set(self.folder.names())
        missing = sorted(named - there)
        if missing:
            raise CheckpointError(f"{self.address}/{missing[0]} is missing; start anew in another folder")
        if self.folder.size(sorted(named)) != size:
            raise CheckpointError(f"the files in {self.address}/states are not as they were written; start anew")
        self.folder.remove([name for name in there - named if name.startswith(_OURS)])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
