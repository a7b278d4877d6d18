"""The command line: `kspec`."""

import importlib
import signal
import sys
from types import FrameType
from typing import NoReturn

import click

from model_check.cli.statuses import ALL_HOLD, BAD_USAGE, STOPPED, StoppedError
from model_check.version import VERSION

COMMANDS = {
    "models": "explore",
    "audit": "explore",
    "study": "explore",
    "history": "explore",
    "check": "check",
    "simulate": "simulate",
    "graph": "graphs",
    "stats": "graphs",
    "liveness": "graphs",
    "cover": "spark",
    "mutants": "mutants",
    "matrix": "mutants",
    "prove": "prove",
    "broker": "broker.serve",
    "replay": "broker.serve",
    "dump-log": "broker.dump_log",
    "topics": "broker.topics",
    "configs": "broker.topics",
    "get-offsets": "broker.topics",
    "delete-records": "broker.topics",
    "console-producer": "broker.console",
    "console-consumer": "broker.console",
    "producer-perf-test": "broker.console",
    "consumer-perf-test": "broker.console",
}
"""The module of each command in this folder. It is imported when the command is used, so that a broker starts at once."""


class Commands(click.Group):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"model_check.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command


def main() -> NoReturn:
    """Run `kspec`. Bad usage is reported in one line, with exit status 2."""
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)
    try:
        status = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("kspec: interrupted", err=True)
        sys.exit(STOPPED)
    except click.ClickException as error:
        click.echo(f"kspec: {' '.join(error.format_message().split())}", err=True)
        sys.exit(error.exit_code if isinstance(error, StoppedError) else BAD_USAGE)
    except MemoryError as error:
        click.echo(f"kspec: out of memory{f': {error}' if str(error) else ''}", err=True)
        sys.exit(STOPPED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(ALL_HOLD)
    sys.exit(status or ALL_HOLD)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    """Handle SIGTERM like Ctrl-C, even where Ctrl-C is ignored, as in the background of a script."""
    at_ctrl_c = signal.getsignal(signal.SIGINT)
    if not callable(at_ctrl_c):
        raise KeyboardInterrupt
    at_ctrl_c(signal.SIGINT, frame)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(VERSION, prog_name="kspec")
def cli() -> None:
    """Kafka's replication protocol, stated once and checked exhaustively.

    Start with `kspec history`, then `kspec study`.
    """
