"""`kspec features`: by the name and flags of Kafka's tool."""

from collections.abc import Iterable

import click

from kspec.cli.broker.quorum.admin import QuorumAdmin, asks_quorum
from kspec.cli.statuses import RefusedError
from kspec.impl.wire.values import Message
from kspec.spec.controller.rules.features import FeatureChange

HIGHEST = 32_767
"""The highest level that a request can say."""


@click.group("features")
@asks_quorum
def features() -> None:
    """Describe the levels of features, or change them, as kafka-features does.

    kraft.version=1 lets controllers be added and removed that were named by settings until then.
    """


@features.command()
@click.pass_obj
def describe(admin: QuorumAdmin) -> None:
    """Describe the features that are supported, and their levels; metadata.version by its number."""
    named = {"client_software_name": "kspec", "client_software_version": "1"}
    told = admin.somewhere("ApiVersions", 4, **named)
    levels = {one.name: one.max_version_level for one in told.finalized_features}
    for one in sorted(told.supported_features, key=lambda one: str(one.name)):
        fields = {
            "Feature": one.name,
            "SupportedMinVersion": one.min_version,
            "SupportedMaxVersion": one.max_version,
            "FinalizedVersionLevel": levels.get(one.name, 0),
            "Epoch": told.finalized_features_epoch,
        }
        click.echo("\t".join(f"{name}: {value}" for name, value in fields.items()))


_feature = click.option("--feature", "levels", metavar="NAME=LEVEL", multiple=True, required=True, help="May be repeated.")
_dry_run = click.option("--dry-run", is_flag=True, help="Say whether it could be done, and do nothing.")
_unsafe = click.option("--unsafe", is_flag=True, help="Also if metadata may be lost by it.")


@features.command()
@_feature
@_dry_run
@click.pass_obj
def upgrade(admin: QuorumAdmin, levels: tuple[str, ...], dry_run: bool) -> None:
    """Raise levels of features: all, or none."""
    _update(admin, "upgrade", _levels(levels), FeatureChange.UPGRADE, dry_run)


@features.command()
@_feature
@_unsafe
@_dry_run
@click.pass_obj
def downgrade(admin: QuorumAdmin, levels: tuple[str, ...], unsafe: bool, dry_run: bool) -> None:
    """Lower levels of features: all, or none."""
    _update(admin, "downgrade", _levels(levels), _down(unsafe), dry_run)


@features.command()
@click.option("--feature", "names", metavar="NAME", multiple=True, required=True, help="May be repeated.")
@_unsafe
@_dry_run
@click.pass_obj
def disable(admin: QuorumAdmin, names: tuple[str, ...], unsafe: bool, dry_run: bool) -> None:
    """Lower features to level 0: all, or none."""
    _update(admin, "disable", _levels(f"{name}=0" for name in names), _down(unsafe), dry_run)


def _down(unsafe: bool) -> FeatureChange:
    return FeatureChange.UNSAFE_DOWNGRADE if unsafe else FeatureChange.SAFE_DOWNGRADE


def _levels(given: Iterable[str]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for one in given:
        name, _, level = one.partition("=")
        if not name.strip() or not level.strip().isdecimal() or int(level) > HIGHEST:
            raise click.UsageError(f"--feature has the form NAME=LEVEL, as kraft.version=1, not {one!r}")
        if name.strip() in levels:
            raise click.UsageError(f"--feature {name.strip()} is given twice")
        levels[name.strip()] = int(level)
    return levels


def _update(admin: QuorumAdmin, what: str, levels: dict[str, int], change: FeatureChange, dry_run: bool) -> None:
    updates = [
        Message(feature=name, max_version_level=level, upgrade_type=change.value) for name, level in sorted(levels.items())
    ]
    asked = {"timeout_ms": int(admin.seconds * 1000), "feature_updates": updates, "validate_only": dry_run}
    said = None
    try:
        admin.change(what, "UpdateFeatures", 2, **asked)
    except RefusedError as error:
        said = str(error).removeprefix(f"{what}: ")
    for name, level in sorted(levels.items()):
        to = "" if what == "disable" else f" to {level}"
        if said is None:
            click.echo(f"{name} {'can be' if dry_run else 'was'} {what}d{to}.")
        else:
            click.echo(f"{'Can' if dry_run else 'Could'} not {what} {name}{to}. {said}")
    if said is not None:
        raise RefusedError(f"{len(levels)} out of {len(levels)} operation(s) failed.")
