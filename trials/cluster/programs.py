"""`kspec broker` as the program of each node."""

import subprocess
from collections.abc import Mapping, Sequence

from kspec.trials.cluster.plan import Node, UsageError

FORMAT_S = 60.0
"""The longest time of a command (s) that takes a moment."""


class KspecProgram:
    """`kspec broker`, with a release, a mutant and a trace for each node."""

    ready = r"^ready \S+:\d+"

    def __init__(
        self,
        program: Sequence[str],
        releases: Mapping[str, str | None],
        mutants: Mapping[str, str | None],
        *,
        trace: bool = False,
    ) -> None:
        self._program = tuple(program)
        self._releases = releases
        self._mutants = mutants
        self._trace = trace

    def prepare(self, node: Node) -> None:
        """Format the node's log directory, unless it is formatted. Raises: `UsageError`, if that fails."""
        if not node.is_formatted:
            given = "storage", "format", "--config", str(node.file), "--cluster-id", node.properties["cluster.id"]
            voters = ("--initial-controllers", node.first_voters) if node.first_voters else ()
            command = [*self._program[:-1], *given, *voters]
            done = subprocess.run(command, capture_output=True, text=True, timeout=FORMAT_S, check=False)
            if done.returncode:
                raise UsageError(done.stderr.strip().removeprefix("kspec: "))

    def command(self, node: Node, start: int) -> Sequence[str]:
        """The command of a node. Each start has a trace of its own."""
        options = {
            "--config": str(node.file),
            "--release": self._releases.get(node.name),
            "--mutant": self._mutants.get(node.name),
            "--trace": str(node.folder / f"steps-{start}.jsonl") if self._trace else None,
        }
        return [*self._program, *(part for name, value in options.items() if value is not None for part in (name, value))]
