"""`kspec cluster --rounds`: a cluster behind proxies, under load and faults."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kspec.cli.broker.cluster_view import ClusterDisplay
from kspec.cli.broker.recorded import STEPS, departed, replay_record
from kspec.cli.statuses import ALL_HOLD, STOPPED, VIOLATED, StoppedError

if TYPE_CHECKING:
    from kspec.trials.cluster.plan import Node
    from kspec.trials.cluster.supervisor import ClusterSupervisor
    from kspec.trials.faults.members.families import MemberFamily
    from kspec.trials.faults.rounds import RoundSettings
    from kspec.trials.faults.transactors.families import ClientFamily

SOON = {
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "4000",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "6",
    "log.message.timestamp.after.max.ms": str(2**63 - 1),
    "log.retention.ms": "-1",
    "producer.id.expiration.ms": str(2**31 - 1),
}
"""Settings by which a cluster notices a fault soon, and has little else to do. --override goes before them."""

ALL = "all"
"""All plans in turn."""

CLIENTS_OF = "4.4.0"
"""The release of Kafka whose Java client writes transactions."""


def rounds_of(
    rounds: int,
    seed: int,
    seconds: float,
    faults: str | None,
    plans: str | None,
    acks: str,
    rate: int,
    groups: int,
    consumers: int,
    *,
    clocks: bool,
    nodes: "Sequence[Node]",
) -> "RoundSettings":
    """The settings of rounds: with random faults alone, if kinds of faults are named, and plans are not.

    `clocks`: whether those of the nodes can be moved. With several controllers there are no plans, and voters change where
    the log has them.

    Raises: `UsageError`.
    """
    from kspec.trials.cluster.clocks import MISSING
    from kspec.trials.cluster.plan import UsageError
    from kspec.trials.faults.group_load import GroupSettings
    from kspec.trials.faults.kinds import CLOCK, KINDS, VOTERS
    from kspec.trials.faults.load import LoadSettings
    from kspec.trials.faults.plans.catalogue import PLANS, RANDOM
    from kspec.trials.faults.rounds import RoundSettings

    if sys.platform != "linux":
        raise UsageError("rounds need Linux: the process of a connection is read in /proc")
    controllers, changing = sum(not one.is_broker for one in nodes), any(one.first_voters for one in nodes)
    possible = [kind for kind in KINDS if (clocks or kind != CLOCK) and (changing or kind != VOTERS)]
    kinds = tuple(possible) if faults is None else tuple(faults.split(","))
    if not clocks and CLOCK in kinds:
        raise UsageError(MISSING)
    if not changing and VOTERS in kinds:
        raise UsageError(f"the fault {VOTERS!r} needs --controllers 3 or more, of releases from 3.9 on")
    if not clocks:
        click.echo(f"NOT RUN: the fault {CLOCK!r}: {MISSING}", err=True)
    unknown = [kind for kind in kinds if kind not in possible]
    if unknown:
        raise UsageError(f"there is no fault {unknown[0]!r}; faults: {', '.join(possible)}")
    chosen: tuple[str, ...] = (RANDOM,) if faults is not None else ()
    if plans is not None and controllers > 1:
        raise UsageError("plans are for clusters with one controller; --faults are for all")
    if plans is not None:
        chosen = tuple(PLANS) if plans == ALL else tuple(plans.split(","))
    unknown = [name for name in chosen if name not in {RANDOM, *PLANS}]
    if unknown:
        raise UsageError(f"there is no plan {unknown[0]!r}; plans: {', '.join((RANDOM, *PLANS))}")
    if seconds <= 0 or rate < 1:
        raise UsageError("a round takes more than 0 seconds, and a producer sends at least 1 record per second")
    load, members = LoadSettings(rate=rate, acks=acks), GroupSettings(groups, groups, consumers)
    return RoundSettings(rounds, seed, seconds, kinds, load, chosen, members)


def with_transactions(settings: "RoundSettings", folder: Path, *, others: bool) -> "RoundSettings":
    """The same rounds with transactional clients of all families that there are; without other clients, unless `others`.

    Raises: `UsageError`, if there is none.
    """
    from kspec.trials.faults.group_load import GroupSettings
    from kspec.trials.faults.plans.catalogue import RANDOM

    found = families(folder)
    if others:
        return settings._replace(families=found)
    load = settings.load._replace(producers=0, consumers=0)
    return settings._replace(families=found, load=load, groups=GroupSettings(), plans=(RANDOM,))


def families(folder: Path) -> "tuple[ClientFamily, ...]":
    """All families of transactional clients that can be built here; it says which cannot. Raises: `UsageError`."""
    from kspec.conformance.kafka.jars import KafkaMissingError, find_jars
    from kspec.trials.cluster.plan import UsageError
    from kspec.trials.faults.transactors.families import FAMILIES, MissingFamilyError, built

    found = []
    for name in FAMILIES:
        try:
            found.append(built(name, folder / "clients" / name, lambda: find_jars(CLIENTS_OF).class_path))
        except (MissingFamilyError, KafkaMissingError) as error:
            click.echo(f"NOT RUN: transactional clients of {name}: {error}", err=True)
    if not found:
        raise UsageError("there is no family of transactional clients")
    return tuple(found)


async def run_bank(cluster: "ClusterSupervisor", shown: ClusterDisplay, seconds: float, seed: int) -> int:
    """Start the cluster, run the bank, and stop it; the exit status. Raises: `UsageError`, `ClusterError`."""
    from kspec.trials.cluster.foreground import run_in_foreground, unless
    from kspec.trials.faults.load import library
    from kspec.trials.faults.transactors.bank import BankSettings, BankTrial, BankVerdict

    library()
    settings = BankSettings(seconds, families(cluster.folder.path), seed=seed)
    found: list[BankVerdict] = []

    async def work() -> None:
        found.append(await BankTrial(cluster, settings).run())
        print(found[0], flush=True)

    async def beside() -> None:
        showing = [] if shown.plain else [shown.keep_showing()]
        await unless(asyncio.Event(), work(), *showing)

    in_order = await run_in_foreground(cluster, lambda: shown.ready(cluster.addresses), beside)
    if any(verdict.is_bad for verdict in found):
        return VIOLATED
    return ALL_HOLD if in_order and found else STOPPED


def member_families(folder: Path) -> "tuple[MemberFamily, ...]":
    """All families of members that can be built here; it says which cannot. Raises: `UsageError`, if there is none."""
    from kspec.conformance.kafka.jars import KafkaMissingError, find_jars
    from kspec.trials.cluster.plan import UsageError
    from kspec.trials.faults.members.families import PROTOCOLS, built
    from kspec.trials.faults.transactors.families import MissingFamilyError

    found = []
    for name in PROTOCOLS:
        try:
            found.append(built(name, folder / "clients" / name, lambda: find_jars(CLIENTS_OF).class_path))
        except (MissingFamilyError, KafkaMissingError) as error:
            click.echo(f"NOT RUN: members of {name}: {error}", err=True)
    if not found:
        raise UsageError("there is no family of members")
    return tuple(found)


async def run_members(cluster: "ClusterSupervisor", shown: ClusterDisplay, seconds: float, size: int) -> int:
    """Start the cluster, let members join and commit, and stop it; the exit status. Raises: `UsageError`, `ClusterError`."""
    from kspec.trials.cluster.foreground import run_in_foreground, unless
    from kspec.trials.faults.load import library
    from kspec.trials.faults.members.trial import MembersSettings, MembersTrial, MembersVerdict

    library()
    settings = MembersSettings(seconds, member_families(cluster.folder.path), size)
    found: list[MembersVerdict] = []

    async def work() -> None:
        found.append(await MembersTrial(cluster, settings).run())
        print(found[0], flush=True)

    async def beside() -> None:
        showing = [] if shown.plain else [shown.keep_showing()]
        await unless(asyncio.Event(), work(), *showing)

    in_order = await run_in_foreground(cluster, lambda: shown.ready(cluster.addresses), beside)
    if any(verdict.is_bad for verdict in found):
        return VIOLATED
    return ALL_HOLD if in_order and found else STOPPED


async def run_rounds(cluster: "ClusterSupervisor", shown: ClusterDisplay, settings: "RoundSettings") -> int:
    """Start the cluster, run the rounds, and stop it; the exit status. Raises: `UsageError`, `ClusterError`."""
    from kspec.trials.cluster.foreground import run_in_foreground, unless
    from kspec.trials.cluster.plan import UsageError
    from kspec.trials.faults.links import Links
    from kspec.trials.faults.load import library
    from kspec.trials.faults.plans.catalogue import PLANS
    from kspec.trials.faults.rounds import Rounds

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
    from kspec.impl.trace.values import TraceError

    if not any(folder.glob(STEPS)):
        return True
    try:
        record = replay_record(folder)
    except TraceError as error:
        raise StoppedError(str(error)) from error
    click.echo(str(record))
    return record.difference is None
