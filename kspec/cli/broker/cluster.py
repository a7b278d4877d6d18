"""`kspec cluster`: controllers and brokers as processes."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kspec.cli.broker.cluster_story import list_stories, tell_story
from kspec.cli.broker.serve import NEXT, PROGRAM, rules_of
from kspec.cli.statuses import ALL_HOLD, StoppedError
from kspec.impl.config.properties import ConfigError, parse_overrides

if TYPE_CHECKING:
    from kspec.trials.cluster.plan import Node, Program


@click.command()
@click.option("--log-dir", metavar="DIR", help="The folder of the cluster, with one for each process.")
@click.option("--brokers", default=3, show_default=True, metavar="N", help="How many brokers.")
@click.option("--controllers", default=1, show_default=True, metavar="N", help="How many controllers.")
@click.option("--port", default=19192, show_default=True, metavar="PORT", help="Of broker 1; broker N is on PORT+N-1.")
@click.option("--override", "overrides", multiple=True, metavar="NAME=VALUE", help="A setting of all processes.")
@click.option("--release", metavar="R", help="The rules of all nodes, or of each: 1=3.9,controller=4.4.  [default: next]")
@click.option("--mutant", metavar="NAME", help="Weaken one rule, on all nodes or on one: 2=NAME.")
@click.option("--kafka", metavar="RELEASE", help="Run this release of Apache Kafka, such as 4.4.0, to compare with.")
@click.option("--combined", is_flag=True, help="With --brokers 1: one process is broker and controller.")
@click.option("--no-restart", is_flag=True, help="Do not restart a node that ends.")
@click.option("--trace", is_flag=True, help="Each process writes its steps, for `kspec replay`.")
@click.option("--plain", is_flag=True, help="No view of the partitions.")
@click.option("--rounds", type=click.IntRange(1), metavar="N", help="Rounds of load and faults, with a verdict each.")
@click.option("--seed", default=1, show_default=True, metavar="S", help="Of the first round; the next ones have S+1, ...")
@click.option("--seconds", default=20.0, show_default=True, metavar="T", help="How long faults go on in a round.")
@click.option("--faults", metavar="KIND,...", help="Kinds of faults; all, if not given.")
@click.option("--plans", metavar="PLAN,...", help="Plans of rounds, in turn; or all. By default the seed chooses.")
@click.option("--acks", type=click.Choice(["all", "1"]), default="all", show_default=True, help="What producers wait for.")
@click.option("--rate", default=100, show_default=True, metavar="R", help="Records per second of each of two producers.")
@click.option(
    "--groups",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    metavar="N",
    help="In rounds: N members of one group, and N consumers without a group, commit offsets.",
)
@click.option(
    "--consumers",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="In rounds: N members of a group by the newer protocol (KIP-848; brokers of 4.0 and later).",
)
@click.option(
    "--transactions",
    is_flag=True,
    help="In rounds: transactional clients of librdkafka, Java and franz-go, and no others unless there are --plans.",
)
@click.option(
    "--bank",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Ten such clients move amounts between 100 accounts, while coordinators and leaders are killed.",
)
@click.option(
    "--members",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Members of two groups, one for each protocol, of all client families, while coordinators are killed.",
)
@click.option(
    "--group-size", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="With --members: of each group."
)
@click.option("--start", metavar="N", help="Start broker N by hand, in the cluster that runs in DIR.")
@click.option("--story", metavar="NAME", help="Go through the run of a study, where it fails and where it does not.")
@click.option("--stories", is_flag=True, help="List the studies, with what processes show of them.")
def cluster(
    log_dir: str | None,
    brokers: int,
    controllers: int,
    port: int,
    overrides: tuple[str, ...],
    release: str | None,
    mutant: str | None,
    kafka: str | None,
    combined: bool,
    no_restart: bool,
    trace: bool,
    plain: bool,
    rounds: int | None,
    seed: int,
    seconds: float,
    faults: str | None,
    plans: str | None,
    acks: str,
    rate: int,
    groups: int,
    consumers: int,
    transactions: bool,
    bank: float | None,
    members: float | None,
    group_size: int,
    start: str | None,
    story: str | None,
    stories: bool,
) -> int:
    """Run a cluster on this machine, controllers and brokers as processes, until SIGTERM or Ctrl-C.

    It prints `ready HOST:PORT,...` when all serve, and shows the partitions. DIR/pids.json has the process ids. Who dies is
    started again.

    With --rounds clients send, poll and commit while nodes are killed, stand still, are parted, run out of disk and are
    restarted; what the clients saw is judged. Exit status: 0 if nothing was lost, 1 if something was, 3 if a round did not
    end.

    With --bank transactional clients of all families that there are move amounts between accounts, and the sum of all
    accounts must be the same in each snapshot of what is committed. Exit status as with --rounds.

    With --members clients of all families that there are join two groups, one for each protocol, and commit offsets; each
    acknowledged commit must be there, a partition may have two owners only shortly, and the groups must come to rest.

    With --story processes go through the run of a study, first with the release where it fails, then with the repaired one.
    Exit status: 0 if it went as told, 1 if not. Without --log-dir nothing of it is kept.
    """
    is_trial = is_one_trial(rounds, bank, members)
    if stories:
        return list_stories()
    if story is not None:
        return tell_story(story, release, mutant, log_dir, port)
    if log_dir is None:
        raise click.UsageError("Missing option '--log-dir'.")
    from kspec.cli.broker.cluster_rounds import SOON, rounds_of, run_bank, run_members, run_rounds, with_transactions
    from kspec.cli.broker.cluster_view import ClusterDisplay
    from kspec.impl.config.folders import check_folder
    from kspec.trials.cluster.clocks import MovableClocks, faketime_library
    from kspec.trials.cluster.folder import ClusterFolder
    from kspec.trials.cluster.foreground import run_in_foreground, start_by_hand
    from kspec.trials.cluster.plan import ClusterError, UsageError, nodes_of, ports_behind, ports_from
    from kspec.trials.cluster.supervisor import ClusterSupervisor

    try:
        check_folder(Path(log_dir), "--log-dir")
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    folder = ClusterFolder(Path(log_dir))
    try:
        if start is not None:
            click.echo(start_by_hand(folder, start))
            return ALL_HOLD
        given = parse_overrides(overrides)
        ports = (ports_from if rounds is None else ports_behind)(port, brokers, controllers)
        given = {**SOON, **given} if is_trial else given
        in_log = may_change_voters(release, kafka, (*ports.controllers, *map(str, range(1, brokers + 1))))
        nodes = nodes_of(folder.path, brokers, ports, given, combined=combined, voters_in_log=in_log)
        check_settings([] if kafka is not None else nodes)
        program = program_of(nodes, release, mutant, kafka, trace=trace)
        library = faketime_library() if rounds is not None else None
        program = program if library is None else MovableClocks(program, library)
        shown = ClusterDisplay(nodes, plain=plain)
        running = ClusterSupervisor(folder, nodes, program, shown.say, restarts=is_trial or not no_restart)
        if bank is not None:
            return asyncio.run(run_bank(running, shown, bank, seed))
        if members is not None:
            return asyncio.run(run_members(running, shown, members, group_size))
        if rounds is not None:
            given_load = (acks, rate, groups, consumers)
            clocks = library is not None
            settings = rounds_of(rounds, seed, seconds, faults, plans, *given_load, clocks=clocks, nodes=nodes)
            if transactions:
                settings = with_transactions(settings, folder.path, others=plans is not None)
            settings = settings if mutant is None else settings.impatient()
            return asyncio.run(run_rounds(running, shown, settings))
        beside = None if shown.plain else shown.keep_showing
        if not asyncio.run(run_in_foreground(running, lambda: shown.ready(running.addresses), beside)):
            raise StoppedError("not all processes stopped in order")
    except (ConfigError, UsageError) as error:
        raise click.UsageError(str(error)) from error
    except ClusterError as error:
        raise StoppedError(str(error)) from error
    return ALL_HOLD


def is_one_trial(rounds: int | None, bank: float | None, members: float | None) -> bool:
    """Whether a trial is asked for. Raises: `UsageError`, if several are."""
    asked = sum(one is not None for one in (rounds, bank, members))
    if asked > 1:
        raise click.UsageError("--rounds, --bank and --members are three trials: give one of them")
    return asked == 1


FIRST_WITH_VOTERS_IN_LOG = (3, 9)
"""The first release of Apache Kafka with `kraft.version` 1."""


def may_change_voters(release: str | None, kafka: str | None, nodes: Sequence[str]) -> bool:
    """Whether all controllers are of releases in which the voters may be in the log (KIP-853). Raises: `UsageError`."""
    from kspec.spec.releases.features import kraft_versions, release_of
    from kspec.trials.cluster.plan import CONTROLLER, by_node

    if kafka is not None:
        return tuple(int(part) for part in kafka.split(".")[:2] if part.isdecimal()) >= FIRST_WITH_VOTERS_IN_LOG
    named = by_node(release, nodes, otherwise=NEXT)
    rules = (rules_of(named[one] or NEXT, None).controller for one in nodes if one.startswith(CONTROLLER))
    return all(kraft_versions(release_of(one.protocol.name)).highest > 0 for one in rules)


def check_settings(nodes: "list[Node]") -> None:
    """Refuse settings with which the nodes would not start, before a file has them. Raises: `ConfigError`."""
    from kspec.impl.config.broker import BrokerConfig
    from kspec.impl.config.controller import ControllerConfig, is_controller_alone

    for node in nodes:
        (ControllerConfig if is_controller_alone(node.properties) else BrokerConfig)(node.properties)


def program_of(nodes: "list[Node]", release: str | None, mutant: str | None, kafka: str | None, *, trace: bool) -> "Program":
    """The programs that run as nodes. Raises: `UsageError`; bad usage."""
    from kspec.trials.cluster.plan import UsageError, by_node
    from kspec.trials.cluster.programs import KspecProgram

    if kafka is None:
        names = [node.name for node in nodes]
        releases, mutants = by_node(release, names, otherwise=NEXT), by_node(mutant, names, otherwise=None)
        for name in names:
            rules_of(releases[name] or NEXT, mutants[name])
        return KspecProgram(PROGRAM, releases, mutants, trace=trace)
    if release or mutant or trace:
        raise UsageError("--release, --mutant and --trace are for brokers of this project, not for --kafka")
    from kspec.conformance.kafka.cluster import KafkaProgram
    from kspec.conformance.kafka.jars import KafkaMissingError, find_jars, java

    try:
        java()
        return KafkaProgram(find_jars(kafka))
    except KafkaMissingError as error:
        raise StoppedError(str(error)) from error
