"""Ways from a run that a command has found to the page: an address, one file of HTML, a browser."""

import os
import socket
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import click

from kspec.cli.common import called_as
from kspec.cli.terminal.output import Output
from kspec.model_check.models import MODELS

if TYPE_CHECKING:
    from kspec.model_check.core.exploration import Trace
    from kspec.model_check.core.model import Model

PORT = 8120
"""The port, if it is free and no other is asked for."""


class PageOptions(NamedTuple):
    """Options of a command that finds a run: to write it as a page, and to show it."""

    html: str | None
    explore: bool


PAGE_OPTIONS = (
    click.option("--html", metavar="FILE", help="Write it as a page to step through: one file, without a network."),
    click.option("--explore", is_flag=True, help="Show it in the browser until Ctrl-C, as `kspec explore` does."),
)


def check_page_options(command: str, model: str, options: PageOptions) -> None:
    """Refuse the options of a command before anything is explored, where they could not be met."""
    if not (options.html or options.explore):
        return
    name = "--html" if options.html else "--explore"
    if model not in MODELS:
        raise click.UsageError(f"{name} shows runs of the models that `{called_as()} models` lists, not of {model}")
    if options.explore:
        need_server(f"{called_as()} {command} --explore")


def need_server(purpose: str) -> None:
    """Make sure that the libraries of the server are there."""
    from kspec.model_check.extras import MissingExtraError, need

    try:
        need(("starlette", "uvicorn"), purpose, extra="explore")
    except MissingExtraError as error:
        raise click.UsageError(str(error)) from error


def address_of_run(model: "Model", trace: "Trace") -> str:
    """The address of a run that has been found."""
    from kspec.model_check.explorer.run import address_of

    return address_of(MODELS[model.name], model.parameters, trace)


def show_run(model: "Model", trace: "Trace", description: str, options: PageOptions, file: Output) -> None:
    """Write a run as a page, and show it, if that is asked for. Ctrl-C ends the page, and leaves the command's verdict."""
    if not (options.html or options.explore):
        return
    from kspec.model_check.explorer.explorer import MOST_STEPS

    if len(trace) - 1 > MOST_STEPS:
        raise click.UsageError(f"a page shows runs of {MOST_STEPS:,} steps at most, and this one has {len(trace) - 1:,}")
    address = address_of_run(model, trace)
    write_page(file, address, description)
    if options.explore:
        with suppress(KeyboardInterrupt):
            show(address)


def write_page(file: Output, address: str, title: str) -> None:
    """Write a run as one file of HTML, if one is asked for."""
    if file.path is None:
        return
    from kspec.cli.explorer.one_file import one_file
    from kspec.cli.explorer.recording import RecordingError, recorded

    try:
        file.write(one_file(recorded(address), title))
    except RecordingError as error:
        raise click.UsageError(f"this run cannot be shown: {error}") from error


def show_recording(recording: "dict[str, Any]", file: Output, port: int | None = None, browser: bool = True) -> None:
    """Write a recording as one file of HTML, or show it until Ctrl-C if no file is asked for."""
    from kspec.cli.explorer.one_file import one_file
    from kspec.cli.explorer.recording import RecordingError, title_of

    try:
        title = title_of(recording)
    except RecordingError as error:
        raise click.UsageError(str(error)) from error
    if file.path is not None:
        file.write(one_file(recording, title))
        return
    show(None, port, browser, kind="recorded", recording=recording, live={"kind": "server"})


def show(address: str | None, port: int | None = None, browser: bool = True, **told: Any) -> None:
    """Serve the page until Ctrl-C; `told` is what the page is told besides."""
    with _listening(port) as listening:
        fragment = f"#{quote(address, safe='~%._-@')}" if address else ""
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/{fragment}"
        click.echo(f"{url}\nCtrl-C ends it.")
        if browser and has_screen():
            webbrowser.open(url)
        _serve(listening, told)


def has_screen() -> bool:
    """Whether a browser can open a window: without a screen, one that draws letters would take the terminal."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


@contextmanager
def _listening(port: int | None) -> Iterator[socket.socket]:
    """A socket that listens on this machine's own address; without a port on the usual one, or on any."""
    for number in (PORT, 0) if port is None else (port,):
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", number))
            listening.listen(128)
        except OSError as error:
            listening.close()
            if port is not None or number == 0:
                raise click.UsageError(f"cannot listen on 127.0.0.1:{number}: {error.strerror or error}") from error
            continue
        with listening:
            yield listening
        return


def _serve(listening: socket.socket, told: dict[str, Any]) -> None:
    """Serve until Ctrl-C, which ends the command as it ends every other."""
    from kspec.cli.explorer.server import ExplorerServer

    ExplorerServer(told).run(sockets=[listening])
