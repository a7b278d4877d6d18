"""`kspec broker` as the program of each node."""

from collections.abc import Mapping, Sequence

from impl.cluster.plan import Node


class KspecProgram:
    """`kspec broker`, with a release, a mutant, a trace and a clock for each node."""

    ready = r"^ready \S+:\d+"

    def __init__(
        self,
        program: Sequence[str],
        releases: Mapping[str, str | None],
        mutants: Mapping[str, str | None],
        *,
        trace: bool = False,
        clocks: bool = False,
    ) -> None:
        self._program = tuple(program)
        self._releases = releases
        self._mutants = mutants
        self._trace = trace
        self.has_clocks = clocks
        """Whether the clock of each node can be moved."""

    def prepare(self, node: Node) -> None:
        """The node makes its folder for logs itself."""
        if self.has_clocks:
            node.move_clock(0)

    def command(self, node: Node, start: int) -> Sequence[str]:
        """The command of a node. Each start has a trace of its own."""
        options = {
            "--config": str(node.file),
            "--release": self._releases.get(node.name),
            "--mutant": self._mutants.get(node.name),
            "--trace": str(node.folder / f"steps-{start}.jsonl") if self._trace else None,
            "--clock-offset": str(node.clock) if self.has_clocks else None,
        }
        return [*self._program, *(part for name, value in options.items() if value is not None for part in (name, value))]
