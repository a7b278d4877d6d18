"""`kspec cluster --rounds`: a cluster behind proxies, under load and faults."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from model_check.cli.broker.cluster_view import Shown
from model_check.cli.broker.recorded import STEPS, departed, replay_record
from model_check.cli.statuses import ALL_HOLD, STOPPED, VIOLATED, StoppedError

if TYPE_CHECKING:
    from impl.cluster.supervisor import Cluster
    from impl.faults.rounds import RoundSettings

SOON = {
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "4000",
    "offsets.topic.num.partitions": "1",
}
"""Settings by which a cluster notices a fault soon, and has little else to do. --override goes before them."""

ALL = "all"
"""All plans in turn."""


def rounds_of(
    rounds: int, seed: int, seconds: float, faults: str | None, plans: str | None, acks: str, rate: int, *, clocks: bool
) -> "RoundSettings":
    """The settings of rounds: with random faults alone, if kinds of faults are named, and plans are not.

    `clocks`: whether those of the nodes can be moved.

    Raises: `UsageError`.
    """
    from impl.cluster.plan import UsageError
    from impl.faults.load import LoadSettings
    from impl.faults.plans.catalogue import PLANS, RANDOM
    from impl.faults.rounds import RoundSettings
    from impl.faults.schedule import CLOCK, KINDS

    if sys.platform != "linux":
        raise UsageError("rounds need Linux: who opens a connection is read in /proc")
    possible = [kind for kind in KINDS if clocks or kind != CLOCK]
    kinds = tuple(possible) if faults is None else tuple(faults.split(","))
    unknown = [kind for kind in kinds if kind not in possible]
    if unknown:
        raise UsageError(f"there is no fault {unknown[0]!r}; faults: {', '.join(possible)}")
    chosen: tuple[str, ...] = (RANDOM,) if faults is not None else ()
    if plans is not None:
        chosen = tuple(PLANS) if plans == ALL else tuple(plans.split(","))
    unknown = [name for name in chosen if name not in {RANDOM, *PLANS}]
    if unknown:
        raise UsageError(f"there is no plan {unknown[0]!r}; plans: {', '.join((RANDOM, *PLANS))}")
    if seconds <= 0 or rate < 1:
        raise UsageError("a round takes more than 0 seconds, and a producer sends at least 1 record per second")
    return RoundSettings(rounds, seed, seconds, kinds, LoadSettings(rate=rate, acks=acks), chosen)


async def run_rounds(cluster: "Cluster", shown: Shown, settings: "RoundSettings") -> int:
    """Start the cluster, run the rounds, and stop it; the exit status. Raises: `UsageError`, `ClusterError`."""
    from impl.cluster.foreground import run_in_foreground, unless
    from impl.cluster.plan import UsageError
    from impl.faults.links import Links
    from impl.faults.load import library
    from impl.faults.plans.catalogue import PLANS
    from impl.faults.rounds import Rounds

    library()
    nodes = [process.node for process in cluster.processes.values()]
    ports = {node.name: (node.told, node.port) for node in nodes}
    links = Links(ports, cluster.folder.pids)
    try:
        await links.open()
    except OSError as error:
        await links.close()
        raise UsageError(f"the proxies cannot listen: {error.strerror or error}") from error
    rounds = Rounds(cluster, links, settings, lambda line: print(line, flush=True))

    async def beside() -> None:
        showing = [] if shown.plain else [shown.keep_showing()]
        await unless(asyncio.Event(), rounds.run(), *showing)

    try:
        in_order = await run_in_foreground(cluster, lambda: shown.ready(cluster.addresses), beside)
    finally:
        await links.close()
    as_recorded = _as_recorded(cluster.folder.path)
    bad = [verdict for verdict in rounds.verdicts if verdict.is_bad or verdict.allowed]
    if bad:
        aimed_at = {rule for verdict in bad if verdict.plan in PLANS for rule in PLANS[verdict.plan].rules}
        for rule in sorted(departed(cluster.folder.path.glob(STEPS)), key=lambda one: one.rule not in aimed_at):
            click.echo(str(rule))
    if any(verdict.is_bad for verdict in rounds.verdicts) or not as_recorded:
        return VIOLATED
    return ALL_HOLD if in_order and len(rounds.verdicts) == settings.rounds else STOPPED


def _as_recorded(folder: Path) -> bool:
    """Whether the record that the processes have written, if they have, is one of the rules."""
    from impl.trace.values import TraceError

    if not any(folder.glob(STEPS)):
        return True
    try:
        record = replay_record(folder)
    except TraceError as error:
        raise StoppedError(str(error)) from error
    click.echo(str(record))
    return record.difference is None
