"""Standard output and standard error: what happens when they cannot be written to, and how `kspec` ends."""

import errno
import os
import re
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click
import click.utils

from kspec.cli.statuses import StoppedError

CLOSED_PIPE = 128 + 13
"""Exit status when nobody reads the output any more: that of other programs, which SIGPIPE ends."""


class Commands(click.Group):
    """The commands of `kspec`. Output that cannot be written is bad usage; a pipe that is closed ends a command quietly."""

    def make_context(self, *given: Any, **more: Any) -> click.Context:
        """Read the command line, and print help if it asks for that."""
        try:
            return super().make_context(*given, **more)
        except OSError as error:
            raise _ending(error) from error
        except KeyboardInterrupt as stop:  # for which click would print an empty line
            raise click.Abort from stop

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and make sure that all it prints is written."""
        try:
            status = super().invoke(ctx)
            sys.stdout.flush()
        except OSError as error:
            raise _ending(error) from error
        except KeyboardInterrupt as stop:
            raise click.Abort from stop
        return status


def _ending(error: OSError) -> click.ClickException | click.exceptions.Exit:
    """The end of a command that could not read or write a file, which the error names, or else standard output."""
    if error.filename is not None:
        return click.UsageError(f"cannot read or write {error.filename}: {error.strerror}")
    if error.errno == errno.ENOMEM:
        return StoppedError(f"out of memory: {error.strerror}")
    if not _is_of_output(error):
        return StoppedError(f"the operating system refuses: {error.strerror or error}")
    _drop(sys.stdout)
    if error.errno == errno.EPIPE:
        return click.exceptions.Exit(CLOSED_PIPE)
    return click.UsageError(f"cannot write the output: {error.strerror or error}")


def _is_of_output(error: OSError) -> bool:
    """Whether an error came up where standard output is written: by `click.echo`, by `print`, or here."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and (
        Path(frames[-1].filename) in (Path(click.utils.__file__), Path(__file__)) or "print(" in (frames[-1].line or "")
    )


def _drop(stream: TextIO) -> None:
    """Let what is written to a stream from now on go nowhere: Python would complain about it when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _without_numbers(sentence: str) -> str:
    """The sentence, with an error of the operating system in words: `[Errno 2] No such file: 'x'` is `x: No such file`."""
    sentence = re.sub(r"\[[Ee]rrno -?\d+\] ([^:\[\]]+): '([^']+)'", r"\2: \1", sentence)
    return re.sub(r"\[[Ee]rrno -?\d+\] ", "", sentence)


def end(sentence: str, status: int) -> NoReturn:
    """End with one line on standard error."""
    with suppress(OSError):
        click.echo(f"kspec: {' '.join(_without_numbers(sentence).split())}", err=True)
    try:
        sys.stdout.flush()
    except OSError:
        _drop(sys.stdout)
    sys.exit(status)
