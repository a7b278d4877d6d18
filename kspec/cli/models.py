"""`kspec models`."""

import json
from collections.abc import Iterator
from typing import Any

import click

from kspec.cli.common import entry_named
from kspec.cli.terminal.help import explained
from kspec.model_check.core.model import Model
from kspec.model_check.models import MODELS, ModelEntry
from kspec.model_check.traces.text import filled, row
from kspec.model_check.version import VERSION


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def models(name: str | None, as_json: bool) -> None:
    """List the models, or tell of the model NAME: parameters, actions, properties, quirks and mutants."""
    entries = list(MODELS.values()) if name is None else [entry_named(name)]
    if as_json:
        click.echo(json.dumps({"version": VERSION, "models": [_as_json(entry) for entry in entries]}))
        return
    if name is not None:
        click.echo("\n".join(_told(entries[0])))
        return
    for entry in entries:
        click.echo("\n".join([entry.name, *filled(entry.summary, "  ")]))
    click.echo("\n`kspec models NAME` tells of one: parameters, actions, properties, mutants.")


def _as_json(entry: ModelEntry) -> dict[str, Any]:
    built = entry.build({})
    return {
        "name": entry.name,
        "summary": entry.summary,
        "parameters": [parameter.as_json() for parameter in entry.parameters],
        "actions": {name: list(arguments) for name, arguments in _actions(built).items()},
        "properties": [
            {"name": prop.name, "kind": prop.kind, "meaning": prop.meaning, "by_default": prop.by_default}
            for prop in built.properties
        ],
        "fairness": [fairness._asdict() for fairness in built.fairness],
        "liveness": [{"name": prop.name, "kind": prop.kind, "meaning": prop.meaning} for prop in built.liveness],
        "quirks": dict(entry.quirks),
        "mutants": _mutants(entry),
    }


def _actions(built: Model) -> dict[str, tuple[str, ...]]:
    """Each action's name, and the names of its arguments."""
    return {action.name: tuple(action.args) for action in built.actions}


def _mutants(entry: ModelEntry) -> dict[str, str]:
    """The mutants that the model takes, and what each means."""
    from kspec.spec.published.mutants import ISR_MUTANTS, MUTANTS
    from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
    from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS

    taken = [parameter.choices for parameter in entry.parameters if parameter.name == "mutant"]
    kinds = ((*MUTANTS, *ISR_MUTANTS), (*BROKER_MUTANTS, *CONTROLLER_MUTANTS))
    for known in ({mutant.name: mutant.summary for mutant in kind} for kind in kinds):
        if taken and set(taken[0]) <= set(known):
            return {name: known[name] for name in taken[0]}
    return {}


def _told(entry: ModelEntry) -> Iterator[str]:
    """All of a model, with default bounds."""
    built = entry.build({})
    yield entry.name
    yield from filled(entry.summary, "  ")
    yield from _table("Parameters", dict(_parameters(entry)))
    yield from _table("Quirks, which --repair repairs", entry.quirks)
    yield from _table("Actions", {name: ", ".join(arguments) for name, arguments in _actions(built).items()})
    yield from _table(
        "Properties (* only with --all, or by name)",
        {f"{prop.name}{'' if prop.by_default else ' *'}": f"{prop.kind}: {prop.meaning}" for prop in built.properties},
    )
    yield from _table("Liveness properties, for `kspec liveness`", {prop.name: prop.meaning for prop in built.liveness})
    yield from _table("Mutants, for --mutant", _mutants(entry))


def _parameters(entry: ModelEntry) -> Iterator[tuple[str, str]]:
    """Each parameter with all its choices; mutants have a table of their own."""
    for one in entry.parameters:
        of_its_own = one.name in ("mutant", "repair") and len(one.choices) > 1
        known = one._replace(choices=()) if of_its_own else one
        meaning = explained(known, {entry.name: entry.parameters}, len(one.choices) + 1)
        yield one.option, f"{meaning}{'; see below' if of_its_own else ''}"


def _table(title: str, rows: Any) -> Iterator[str]:
    if not rows:
        return
    yield f"\n{title}:"
    column = 4 + max(map(len, rows))
    for name, words in rows.items():
        yield from row(f"  {name}", words, column) if words else [f"  {name}"]
