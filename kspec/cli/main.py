"""The command line: `kspec`."""

import importlib
import signal
import sys
import traceback
from types import FrameType
from typing import NoReturn

import click

from kspec.cli.statuses import ALL_HOLD, BAD_USAGE, STOPPED, StoppedError
from kspec.cli.terminal.streams import Commands, end
from kspec.model_check.version import VERSION

COMMANDS = {
    "models": "models",
    "audit": "explore",
    "study": "explore",
    "history": "explore",
    "explore": "explorer.commands",
    "check": "check",
    "simulate": "simulate",
    "graph": "graphs",
    "stats": "graphs",
    "liveness": "graphs",
    "cover": "spark",
    "mutants": "mutants",
    "matrix": "mutants",
    "prove": "prove",
    "site": "site.command",
    "broker": "broker.serve",
    "cluster": "broker.cluster",
    "storage": "broker.storage",
    "replay": "broker.recorded",
    "simulate-cluster": "broker.simulate_cluster",
    "dump-log": "broker.dump_log",
    "topics": "broker.topics",
    "consumer-groups": "broker.groups.command",
    "transactions": "broker.transactions.command",
    "metadata-quorum": "broker.quorum.command",
    "features": "broker.quorum.features",
    "configs": "broker.topics",
    "get-offsets": "broker.topics",
    "delete-records": "broker.topics",
    "console-producer": "broker.console",
    "console-consumer": "broker.console",
    "producer-perf-test": "broker.console",
    "consumer-perf-test": "broker.console",
    "world": "world.commands",
    "conformance": "conformance.commands",
}
"""The module of each command in this folder. It is imported when the command is used, so that a broker starts at once."""

DRIVEN = "conformance"
"""A command that knows no models: FILE.py:NAME is a driver there."""


class CommandsWhenUsed(Commands):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"kspec.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command


def main() -> NoReturn:
    """Run `kspec`. Bad usage is reported in one line, with exit status 2."""
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)
    try:
        for argument in [argument for argument in sys.argv[1:] if ".py:" in argument and sys.argv[1] != DRIVEN]:
            _know(argument)
        status = cli.main(prog_name="kspec", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        end("interrupted", STOPPED)
    except click.ClickException as error:
        end(error.format_message(), error.exit_code if isinstance(error, StoppedError) else BAD_USAGE)
    except MemoryError as error:
        end(f"out of memory{f': {error}' if str(error) else ''}", STOPPED)
    except RuntimeError as error:
        if "can't start new thread" not in str(error):
            _unexpected(error)
        end("out of memory, or of threads: can't start new thread; --workers takes fewer", STOPPED)
    except SystemExit as error:
        _end_of_own(error)
        raise
    except Exception as error:
        _unexpected(error)
    sys.exit(status or ALL_HOLD)


def _unexpected(error: Exception) -> NoReturn:
    """End with an error of a model: one line. Any other is a rule's, or our own: status 1 would say that one is violated."""
    from kspec.model_check.core.model import ModelError  # a broker needs none

    if isinstance(error, ModelError):
        end(str(error), BAD_USAGE)
    _end_of_own(error)
    traceback.print_exception(error)
    sys.exit(STOPPED)


def _end_of_own(error: BaseException) -> None:
    """End in one line, if a function in a user's file has raised this error."""
    own = sys.modules.get("kspec.model_check.models.own")
    said = own.raised_by_own(error) if own is not None else None
    if said is not None:
        end(said, BAD_USAGE)


def _know(model: str) -> None:
    """Let the command know the parameters of a model of the user's own, which are options then."""
    from kspec.cli.common import know_parameters
    from kspec.model_check.models.own import own_entry

    know_parameters(cli.get_command(click.Context(cli), sys.argv[1]) or cli, own_entry(model))


def _interrupt(signum: int, frame: FrameType | None) -> None:
    """Handle SIGTERM like Ctrl-C, even where Ctrl-C is ignored, as in the background of a script."""
    at_ctrl_c = signal.getsignal(signal.SIGINT)
    if not callable(at_ctrl_c):
        raise KeyboardInterrupt
    at_ctrl_c(signal.SIGINT, frame)


@click.group(cls=CommandsWhenUsed, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(VERSION, prog_name="kspec")
def cli() -> None:
    """Kafka's replication protocol, stated once and checked exhaustively.

    Start with `kspec history`, then `kspec study`.
    """
