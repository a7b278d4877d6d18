"""Output of a running cluster: `ready`, lines about its processes, and on a terminal its partitions."""

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table

if TYPE_CHECKING:
    from kspec.trials.cluster.plan import Node
    from kspec.trials.cluster.view import PartitionView

SECONDS = 1.0
LINES_ROUND_IT = 6


class ClusterDisplay:
    """Display of a cluster. Without a terminal it consists of lines alone."""

    def __init__(self, nodes: "Sequence[Node]", *, plain: bool) -> None:
        self.console = Console()
        self.plain = plain or not self.console.is_terminal
        self._nodes = [node for node in nodes if node.is_broker]

    def ready(self, addresses: str) -> None:
        """Say that all serve."""
        sys.stdout.write(f"ready {addresses}\n")
        sys.stdout.flush()

    def say(self, line: str) -> None:
        """Say what has happened to a process."""
        if self.plain:
            click.echo(f"kspec: {line}", err=True)
        else:
            self.console.print(line, highlight=False, markup=False)

    async def keep_showing(self) -> None:
        """Show the partitions, once a second, as the brokers tell them now."""
        from kspec.trials.cluster.plan import HOST
        from kspec.trials.cluster.view import ClusterProbe

        view = ClusterProbe({node.node_id: (HOST, node.port) for node in self._nodes})
        with Live(console=self.console, auto_refresh=False) as live:
            try:
                while True:
                    live.update(table(await view.partitions(), self.console.height - LINES_ROUND_IT), refresh=True)
                    await asyncio.sleep(SECONDS)
            finally:
                view.close()


def table(partitions: "Sequence[PartitionView]", most: int) -> Table:
    """The partitions as a table: of each replica the log end offset and the high watermark, as its broker tells them."""
    brokers = sorted({broker for one in partitions for broker in one.replicas})
    made = Table(title="log end offset / high watermark of each replica", title_justify="left")
    for heading in ("partition", "leader", "epoch", "ISR", *(f"broker {broker}" for broker in brokers)):
        made.add_column(heading)
    for one in partitions[: max(most, 1)]:
        leader = str(one.leader) if one.leader >= 0 else "none"
        replicas = [_replica(one, broker) for broker in brokers]
        made.add_row(
            f"{one.topic}-{one.partition}", leader, str(one.leader_epoch), ", ".join(map(str, sorted(one.isr))), *replicas
        )
    if len(partitions) > max(most, 1):
        made.caption = f"and {len(partitions) - max(most, 1)} more"
    return made


def _replica(one: "PartitionView", broker: int) -> str:
    if broker not in one.replicas:
        return ""
    seen = one.seen.get(broker)
    if seen is None:
        return "no answer"
    return f"{seen.end_offset} / {'?' if seen.high_watermark is None else seen.high_watermark}"
