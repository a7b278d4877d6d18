"""`kspec storage`: log directories are formatted, and looked at."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kspec.cli.statuses import ALL_HOLD, VIOLATED

if TYPE_CHECKING:
    from kspec.impl.config.broker import BrokerConfig
    from kspec.impl.config.controller import ControllerConfig
    from kspec.impl.metadata.voters import KnownVoters


@click.group()
def storage() -> None:
    """Format the log directory of a node, or tell what it is. The flags are those of Kafka's `kafka-storage.sh`."""


def _config(file: str) -> "BrokerConfig | ControllerConfig":
    """The settings of the node. Raises: bad usage."""
    from kspec.impl.config.broker import BrokerConfig
    from kspec.impl.config.controller import ControllerConfig, is_controller_alone
    from kspec.impl.config.properties import ConfigError, read_properties

    try:
        given = read_properties(Path(file))
        return ControllerConfig(given) if is_controller_alone(given) else BrokerConfig(given)
    except (ConfigError, OSError) as error:
        raise click.UsageError(str(error)) from error


@storage.command("format")
@click.option("-c", "--config", "config_file", required=True, metavar="FILE", help="The node's server.properties.")
@click.option(
    "-t", "--cluster-id", required=True, metavar="ID", help="The cluster's id; `kspec storage random-uuid` makes one."
)
@click.option(
    "-g", "--ignore-formatted", is_flag=True, help="A folder that is formatted already is left as it is, and no error."
)
@click.option("-r", "--release-version", metavar="R", help="A release of Kafka; the controller says which features it has.")
@click.option("-s", "--standalone", is_flag=True, help="The node is the only controller, and others may be added.")
@click.option("-N", "--no-initial-controllers", is_flag=True, help="The node learns from others who votes.")
@click.option(
    "-I",
    "--initial-controllers",
    metavar="ID@HOST:PORT:DIRECTORY,...",
    help="The controllers that vote at first; they can be changed.",
)
def format_command(
    config_file: str,
    cluster_id: str,
    ignore_formatted: bool,
    release_version: str | None,
    standalone: bool,
    no_initial_controllers: bool,
    initial_controllers: str | None,
) -> int:
    """Format the log directory of a node that is new: with the cluster's id, its own, and one of its own.

    A broker that is started by --config, and each broker of a cluster, refuses a folder that is not formatted: an empty one
    in the place of one that had records is a loss, and is not to go unseen. Exit status: 0 formatted, 2 not.
    """
    from kspec.impl.config.folders import check_folder, not_usable
    from kspec.impl.config.properties import ConfigError
    from kspec.impl.metadata.bootstrap import format_controller
    from kspec.impl.server import clock
    from kspec.impl.storage import RealDisk, StorageError
    from kspec.impl.storage.small_files import check_owner, format_directory, is_formatted
    from kspec.spec.releases.names import KRAFT_NAMES

    if [standalone, no_initial_controllers, initial_controllers is not None].count(True) > 1:
        raise click.UsageError("--standalone, --no-initial-controllers and --initial-controllers exclude each other")
    if release_version is not None and not _is_release(release_version, KRAFT_NAMES):
        raise click.UsageError(f"there is no release {release_version!r}; releases: {', '.join(KRAFT_NAMES)}")
    if not cluster_id.strip() or any(sign in cluster_id for sign in "=\\\r\n"):
        raise click.UsageError(f"--cluster-id is an id such as {'a3NwZWMtY2x1c3Rlci1ub2RlcQ'}, not {cluster_id!r}")
    config = _config(config_file)
    own = config.word("cluster.id")
    if own is not None and own != cluster_id:
        raise click.UsageError(f"{config_file} says cluster.id={own}, and --cluster-id is {cluster_id}")
    disk, path = RealDisk(), str(config.log_dir)
    try:
        check_folder(config.log_dir, config.log_dir_name)
        if not is_formatted(disk, path):
            voters = _voters(config, standalone, initial_controllers)
            if voters:
                format_controller(disk, path, cluster_id, config.node_id, voters, clock.now())
            else:
                format_directory(disk, path, cluster_id, config.node_id)
            click.echo(f"Formatted {path} for node {config.node_id} of cluster {cluster_id}.")
            return ALL_HOLD
        check_owner(disk, path, cluster_id, config.node_id)
    except OSError as error:
        raise click.UsageError(str(not_usable(config.log_dir, config.log_dir_name, error))) from error
    except (StorageError, ConfigError) as error:
        raise click.UsageError(str(error)) from error
    if not ignore_formatted:
        raise click.UsageError(f"{path} is already formatted; --ignore-formatted leaves it as it is")
    click.echo("All of the log directories are already formatted.")
    return ALL_HOLD


def _voters(config: "BrokerConfig | ControllerConfig", standalone: bool, initial_controllers: str | None) -> "KnownVoters":
    """The voters that a cluster begins with, if they may be changed; none if the settings name them. Raises: bad usage."""
    from kspec.impl.config.controller import ControllerConfig
    from kspec.impl.metadata.bootstrap import InitialVotersError, voters_in_text
    from kspec.impl.storage.small_files import new_uuid

    if not isinstance(config, ControllerConfig) or (config.places and initial_controllers is None):
        return {}
    listener = config.listener
    text = f"{config.node_id}@{listener.host}:{listener.port}:{new_uuid()}" if standalone else initial_controllers
    if text is None:
        return {}
    if config.places:
        raise click.UsageError(
            "--initial-controllers and controller.quorum.voters exclude each other: give the bootstrap servers"
        )
    try:
        return voters_in_text(text, listener.name)
    except InitialVotersError as error:
        raise click.UsageError(f"--initial-controllers: {error}") from error


def _is_release(text: str, known: tuple[str, ...]) -> bool:
    """Whether a release is known: `4.2`, or Kafka's name of its metadata version, `4.2-IV1`."""
    return text.partition("-IV")[0] in known


@storage.command()
@click.option("-c", "--config", "config_file", required=True, metavar="FILE", help="The node's server.properties.")
def info(config_file: str) -> int:
    """Tell what the log directory of a node is. Exit status: 0 formatted for this node, 1 not."""
    from kspec.impl.storage import RealDisk, StorageError
    from kspec.impl.storage.small_files import check_owner, is_formatted, read_meta

    config = _config(config_file)
    disk, path = RealDisk(), str(config.log_dir)
    if not config.log_dir.is_dir():
        told = "is not a directory" if config.log_dir.exists() else "does not exist"
        click.echo(f"Found problem:\n  {path} {told}.\n")
        return VIOLATED
    click.echo(f"Found log directory:\n  {path}\n")
    if not is_formatted(disk, path):
        click.echo(f"Found problem:\n  {path} is not formatted.\n")
        return VIOLATED
    try:
        meta = read_meta(disk, path)
        click.echo(f"Found metadata: {{{', '.join(f'{name}={value}' for name, value in sorted(meta.items()))}}}\n")
        check_owner(disk, path, config.word("cluster.id") or meta["cluster.id"], config.node_id)
    except (OSError, StorageError) as error:
        click.echo(f"Found problem:\n  {error}\n")
        return VIOLATED
    return ALL_HOLD


@storage.command("random-uuid")
def random_uuid() -> None:
    """Print a random id, for --cluster-id."""
    from kspec.impl.storage.small_files import new_uuid

    click.echo(new_uuid())
