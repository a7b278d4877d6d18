"""`kspec broker`."""

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kspec.cli.statuses import StoppedError

if TYPE_CHECKING:
    from kspec.impl.server.startup import BrokerRules

PROGRAM = (sys.executable, "-c", "from kspec.cli.start import main; main()", "broker")
"""The command line of this command as a process of its own."""

NEXT = "next"
"""The rules that clusters follow if no release is named: those with all repairs, which lose nothing."""

REPAIRED = "repaired:"
"""In place of a mutant's name, before `RULE@RELEASE`: the rules of a release with this one rule as another has it, `next` if
none is named. So it is tried whether a loss comes from that rule."""


def rules_of(release: str, mutant: str | None) -> "BrokerRules":
    """The rules of a release, possibly with one weakened. Raises: bad usage, if there is no such release or mutant."""
    from kspec.impl.server.startup import BrokerRules
    from kspec.spec.controller.protocol import Controller
    from kspec.spec.releases.broker import BROKER_RELEASES
    from kspec.spec.releases.names import KRAFT_NAMES, kraft_of, quorum_of

    brokers = {protocol.name: protocol for protocol in BROKER_RELEASES}
    if release not in brokers:
        raise click.UsageError(f"there is no release {release!r}; releases: {', '.join(brokers)}")
    protocol, kraft = brokers[release], kraft_of(release if release in KRAFT_NAMES else KRAFT_NAMES[0])
    quorum = quorum_of(release)
    if mutant is None:
        return BrokerRules(protocol, Controller(kraft), quorum)

    if mutant.startswith(REPAIRED):
        return _repaired(
            BrokerRules(protocol, Controller(kraft), quorum), *mutant.removeprefix(REPAIRED).partition("@")[::2]
        )

    from dataclasses import replace

    from kspec.spec.mutation import weaken
    from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
    from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
    from kspec.spec.releases.mutants.quorum import QUORUM_MUTANTS
    from kspec.spec.releases.transactions.mutants import TRANSACTION_MUTANTS

    broker_mutants = {one.name: one for one in BROKER_MUTANTS}
    kraft_mutants = {one.name: one for one in CONTROLLER_MUTANTS}
    of_transactions = {one.name: one for one in TRANSACTION_MUTANTS}
    of_quorum = {one.name: one for one in QUORUM_MUTANTS}
    if mutant in of_transactions:
        protocol = replace(protocol, transactions=weaken(protocol.transactions, of_transactions[mutant]))
    elif mutant in broker_mutants:
        protocol = weaken(protocol, broker_mutants[mutant])
    elif mutant in kraft_mutants:
        kraft = weaken(kraft, kraft_mutants[mutant])
    elif mutant in of_quorum:
        quorum = weaken(quorum, of_quorum[mutant])
    else:
        known = ", ".join([*broker_mutants, *kraft_mutants, *of_transactions, *of_quorum])
        raise click.UsageError(f"there is no mutant {mutant!r}; mutants: {known}")
    return BrokerRules(protocol, Controller(kraft), quorum)


def _repaired(rules: "BrokerRules", field: str, release: str) -> "BrokerRules":
    """Rules with one of them as a release has it. Raises: bad usage, if there is no such rule or release."""
    from dataclasses import fields, replace

    from kspec.spec.mutation import names_of_rules, with_field_of

    other = rules_of(release or NEXT, None)
    of_controller = field.removeprefix(OF_CONTROLLER)
    if field in names_of_rules(rules.broker):
        return rules._replace(broker=with_field_of(rules.broker, field, other.broker))
    if field != of_controller and of_controller in names_of_rules(rules.controller.protocol):
        protocol = with_field_of(rules.controller.protocol, of_controller, other.controller.protocol)
        return rules._replace(controller=replace(rules.controller, protocol=protocol))
    of_voter = field.removeprefix(OF_QUORUM)
    if field != of_voter and of_voter in {one.name for one in fields(rules.quorum)}:
        return rules._replace(quorum=with_field_of(rules.quorum, of_voter, other.quorum))
    raise click.UsageError(f"there is no rule {field!r}")


OF_CONTROLLER, OF_QUORUM = "controller: ", "quorum: "


def _new_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    """The event loop: uvloop's if it is installed (extra `fast`), else that of the standard library."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    new_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return new_loop


@click.command()
@click.option("--config", "config_file", metavar="FILE", help="Settings by Kafka's names: a server.properties.")
@click.option("--override", "overrides", multiple=True, metavar="NAME=VALUE", help="A setting; may be given again.")
@click.option("--log-dir", metavar="DIR", help="The folder for logs; the same as --override log.dirs=DIR.")
@click.option("--release", metavar="R", help="Follow the rules of this release of Kafka: the newest, or next with a mutant.")
@click.option("--mutant", metavar="NAME", help="Weaken one rule, to see what it is good for.")
@click.option("--trace", metavar="FILE", help="Write each step as a line of JSON, for `kspec replay`.")
def broker(
    config_file: str | None,
    overrides: tuple[str, ...],
    log_dir: str | None,
    release: str | None,
    mutant: str | None,
    trace: str | None,
) -> None:
    """Run a broker that Kafka's clients can talk to, until SIGTERM or Ctrl-C; with process.roles=controller a controller.

    It prints `ready HOST:PORT` when it serves. Without any option it keeps its logs in ./kspec-broker and listens on
    127.0.0.1:9092. Without --config a new folder is formatted, and a cluster of its own; with it, and for each broker whose
    controller is another process, `kspec storage format` comes first.
    """
    from kspec.impl.config.folders import check_folder
    from kspec.impl.config.properties import ConfigError, parse_overrides, read_properties

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)")
    try:
        given = read_properties(Path(config_file)) if config_file else {}
        given |= parse_overrides(overrides)
        if log_dir is not None:
            if not log_dir.strip():
                raise ConfigError("--log-dir is empty; name a folder, or leave it out")
            check_folder(Path(log_dir), "--log-dir")
            given["log.dirs"] = log_dir
        _run(given, release, mutant, Path(trace) if trace else None, may_format=config_file is None)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        what = error.filename or (log_dir if log_dir is not None else config_file) or "the network"
        raise click.UsageError(f"cannot use {what}: {error.strerror or error}") from error


def _run(given: dict[str, str], release: str | None, mutant: str | None, trace: Path | None, may_format: bool) -> None:
    """Run the process that the settings describe. It listens first, and then loads what it needs.

    `may_format`: whether a new folder may be formatted, if the process makes a cluster of its own.
    """
    from kspec.impl.config.broker import BrokerConfig
    from kspec.impl.config.controller import ControllerConfig, is_controller_alone
    from kspec.impl.config.folders import check_folder
    from kspec.impl.server.network.listening import bind

    config = ControllerConfig(given) if is_controller_alone(given) else BrokerConfig(given)
    check_folder(config.log_dir, config.log_dir_name)
    listening = bind(config.listener, config.number("socket.listen.backlog.size"))

    from kspec.impl.server.files import BrokerFailureError
    from kspec.impl.server.startup import run
    from kspec.impl.storage import StorageError
    from kspec.impl.trace.steps import TraceWriter
    from kspec.spec.releases.names import default_release

    release = release or default_release(mutant)
    rules = rules_of(release, mutant)
    writer = TraceWriter(trace, release, mutant) if trace else None
    try:
        if isinstance(config, ControllerConfig):
            from kspec.impl.server.controller import run_controller

            run_controller(config, rules.controller, listening, _new_loop(), writer, may_format, rules.quorum)
            return
        run(config, rules, listening, _new_loop(), writer, may_format)
    except BrokerFailureError as error:
        raise StoppedError(str(error)) from error
    except StorageError as error:
        raise click.UsageError(str(error)) from error
