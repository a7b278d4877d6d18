"""`kspec explore`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from kspec.cli.common import called_as, entry_named, model_options
from kspec.cli.explorer.pages import PORT, need_server, show, show_recording, write_page
from kspec.cli.terminal.help import ModelCommand, examples
from kspec.cli.terminal.output import Output


@click.command(
    cls=ModelCommand,
    **examples(
        ("kspec explore", "Choose a model on the page"),
        ("kspec explore kip-101 --replicas 2", "Begin with a model"),
        ("kspec explore kip-101~replicas.2~~ControllerElectLeader_replica.1", "Open the address of a run"),
        ("kspec explore --run trace.itf.json --html run.html", "Make a page of a trace, to send it to somebody"),
    ),
)
@click.argument("model", metavar="[MODEL|ADDRESS]", required=False)
@click.option(
    "--run",
    "run_file",
    metavar="FILE",
    help="Open a trace of `kspec check`, results of `kspec conformance run --json`, or a recording.",
)
@click.option(
    "--html", metavar="FILE", help="Write the run as a page of one file, and serve nothing (`-`: standard output)."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="N", help=f"Listen on this port, 0: any.  [default: {PORT}, or any]"
)
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.")
@model_options
def explore(
    model: str | None,
    run_file: str | None,
    html: str | None,
    port: int | None,
    browser: bool,
    parameters: dict[str, Any],
) -> None:
    """Show runs of models in the browser, step by step, until Ctrl-C.

    It serves a page to this machine alone, and prints its address.
    """
    if html is None:
        need_server(f"{called_as()} explore")
    file = Output(html)
    given = {name: value for name, value in parameters.items() if value not in (None, ())}
    address = _from_file(run_file, model, given) if run_file else _from_words(model, given)
    if isinstance(address, dict):
        show_recording(address, file, port, browser)
    elif html is None:
        show(address, port, browser)
    elif address is None:
        raise click.UsageError("--html writes a run: name a model, the address of a run, or a file with --run")
    else:
        write_page(file, address, f"A run of {address.partition('~')[0]}")


def _from_words(model: str | None, given: dict[str, Any]) -> str | None:
    """The address of the run that the page opens first: that of an address, or of a model's initial state."""
    from kspec.model_check.explorer import Explorer
    from kspec.model_check.explorer.address import BETWEEN

    if model is None or BETWEEN in model:
        if given:
            raise click.UsageError(f"--{min(given).replace('_', '-')} is a parameter of a model; name the model before it")
        return None if model is None else _opened({"do": "open", "address": model.partition("#")[2] or model})
    name = entry_named(model).name
    if name not in Explorer().models:
        raise click.UsageError(f"{model}: {called_as()} explore shows the models that `{called_as()} models` lists")
    written = {name.replace("_", "-"): list(one) if isinstance(one, tuple) else one for name, one in given.items()}
    return _opened({"do": "start", "model": name, "parameters": written})


def _from_file(file: str, model: str | None, given: dict[str, Any]) -> str | dict[str, Any]:
    """The address of a run that a file has: a trace, or an address as a text. A run that no model has is a recording."""
    if model is not None or given:
        raise click.UsageError("--run FILE has a model and its parameters in it; leave them out")
    try:
        text = Path(file).read_text("utf-8")
    except OSError as error:
        raise click.UsageError(f"cannot read {file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file} is no trace: it is not UTF-8") from error
    from kspec.cli.explorer.recording import is_recording
    from kspec.model_check.explorer.files.cases import is_results

    if not text.lstrip().startswith(("{", "[")):
        return _opened({"do": "open", "address": text.strip().rpartition("#")[2]}, f"{file}: ")
    try:
        trace = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{file} is no JSON: {error}") from error
    if is_recording(trace):
        return trace  # type: ignore[no-any-return]
    if is_results(trace):
        return _case_of(trace, file)
    return _opened({"do": "import", "trace": trace}, f"{file}: ")


def _case_of(results: Mapping[str, Any], file: str) -> dict[str, Any]:
    """The first failing case of these results, as a recording."""
    from kspec.model_check.explorer.errors import RefusedMessageError
    from kspec.model_check.explorer.files.cases import run_of_case
    from kspec.model_check.explorer.files.told import as_recording

    try:
        return as_recording(run_of_case(results))
    except RefusedMessageError as error:
        raise click.UsageError(f"{file}: {error}") from error


def _opened(message: Mapping[str, Any], where: str = "") -> str:
    """The address of the run that a message opens; bad usage if it opens none."""
    from kspec.model_check.explorer import Explorer

    answer = Explorer().answer(message)
    if answer["answer"] == "error":
        raise click.UsageError(where + answer["words"])
    if answer.get("changed"):
        click.echo(f"kspec: {where}{answer['changed']['words']}", err=True)
        if "address" in message:
            return str(message["address"])  # the page says so, too
    return str(answer["address"])
