"""`kspec metadata-quorum`: by the name and flags of Kafka's tool."""

import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from kspec.cli.broker.quorum.admin import CONFIG, QuorumAdmin, asks_quorum, endpoint_text
from kspec.cli.broker.transactions.command import table
from kspec.cli.statuses import RefusedError
from kspec.impl.storage.small_files import UUID_TEXT
from kspec.impl.wire.values import Message

HEADERS = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")
NO_DIRECTORY, NO_TIME = bytes(16), -1


@click.group("metadata-quorum")
@asks_quorum
def metadata_quorum() -> None:
    """Describe the quorum of controllers, or change who votes in it, as kafka-metadata-quorum does."""


@metadata_quorum.command()
@click.option("--status", is_flag=True, help="A short summary of the quorum.")
@click.option("--replication", is_flag=True, help="How far each replica of the metadata log is.")
@click.option("--human-readable", is_flag=True, help="With --replication: times as how long ago they were.")
@click.pass_obj
def describe(admin: QuorumAdmin, status: bool, replication: bool, human_readable: bool) -> None:
    """Describe the quorum: its status, or the replicas of its log."""
    if status == replication:
        raise click.UsageError("give one of --status and --replication")
    if status and human_readable:
        raise click.UsageError("--human-readable goes with --replication")
    if status:
        cluster_id = admin.cluster_id()
        quorum, endpoints = admin.described()
        click.echo(_status(cluster_id, quorum, endpoints), nl=False)
        return
    quorum, _ = admin.described()
    shown = _ago if human_readable else str
    click.echo(table(HEADERS, _rows(quorum, shown)), nl=False)


@metadata_quorum.command("add-controller")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.pass_context
def add_controller(ctx: click.Context, dry_run: bool) -> None:
    """Let a controller vote that runs, and has read the metadata log.

    --command-config is its properties file, on this machine as its formatted folder is.
    """
    from kspec.impl.config.controller import ControllerConfig, is_controller_alone
    from kspec.impl.config.properties import ConfigError, read_properties
    from kspec.impl.storage import RealDisk, StorageError
    from kspec.impl.storage.small_files import read_meta

    file = ctx.meta[CONFIG]
    if file is None:
        raise click.UsageError("add-controller needs --command-config, the properties file of the new controller")
    try:
        given = read_properties(Path(file))
        if not is_controller_alone(given):
            raise ConfigError("process.roles must be controller: this is the file of the controller that is to vote")
        config = ControllerConfig(given)
        meta = read_meta(RealDisk(), str(config.log_dir))
    except (ConfigError, StorageError, OSError) as error:
        raise click.UsageError(f"{file}: {error}") from error
    directory, listener = meta.get("directory.id"), config.advertised
    if directory is None:
        raise click.UsageError(f"{config.log_dir} has no directory.id: start the controller once")
    at = Message(name=listener.name, host=listener.host or "localhost", port=listener.port)
    if not dry_run:
        asked = {"cluster_id": None, "timeout_ms": int(ctx.obj.seconds * 1000), "listeners": [at]}
        named = {"voter_id": config.node_id, "voter_directory_id": _id_bytes(directory), "ack_when_committed": True}
        ctx.obj.change(f"controller {config.node_id}", "AddRaftVoter", 1, **asked, **named)
    done = "DRY RUN of adding" if dry_run else "Added"
    click.echo(f"{done} controller {config.node_id} with directory id {directory} and endpoints: {endpoint_text(at)}")


@metadata_quorum.command("remove-controller")
@click.option("--controller-id", "-i", type=int, required=True, help="The id of the controller to remove.")
@click.option("--controller-directory-id", "-d", required=True, help="The directory id of the controller to remove.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.pass_obj
def remove_controller(admin: QuorumAdmin, controller_id: int, controller_directory_id: str, dry_run: bool) -> None:
    """Let a controller vote no more. If it runs, it goes on reading the metadata log; stop it."""
    if controller_id < 0:
        raise click.UsageError(f"--controller-id must not be negative, and is {controller_id}")
    if UUID_TEXT.fullmatch(controller_directory_id) is None:
        raise click.UsageError(f"--controller-directory-id is an id of 22 characters, not {controller_directory_id!r}")
    if not dry_run:
        named = {"voter_id": controller_id, "voter_directory_id": _id_bytes(controller_directory_id)}
        admin.change(f"controller {controller_id}", "RemoveRaftVoter", 0, cluster_id=None, **named)
    done = "DRY RUN of removing " if dry_run else "Removed "  # Kafka's tool has the second space, too
    click.echo(f"{done} KRaft controller {controller_id} with directory id {controller_directory_id}")


def _id_bytes(text: str) -> bytes:
    return urlsafe_b64decode(f"{text}==")


def _leader(quorum: Message) -> Message:
    found: Message | None = next((one for one in quorum.current_voters if one.replica_id == quorum.leader_id), None)
    if found is None:
        raise RefusedError(f"the quorum: its leader {quorum.leader_id} is no voter")
    return found


def _status(cluster_id: str, quorum: Message, endpoints: dict[int, list[str]]) -> str:
    leader = _leader(quorum)
    last = min(quorum.current_voters, key=lambda one: one.log_end_offset)
    lag_ms = 0
    if last is not leader:
        times = (leader.last_caught_up_timestamp, last.last_caught_up_timestamp)
        lag_ms = NO_TIME if NO_TIME in times else times[0] - times[1]
    lines = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - last.log_end_offset,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": _nodes(quorum.current_voters, endpoints),
        "CurrentObservers": _nodes(quorum.observers, endpoints),
    }
    return "".join(f"{f'{name}:':<24}{value}\n" for name, value in lines.items())


def _nodes(replicas: Iterable[Message], endpoints: dict[int, list[str]]) -> str:
    return f"[{', '.join(_node(one, endpoints.get(one.replica_id, [])) for one in replicas)}]"


def _node(replica: Message, endpoints: list[str]) -> str:
    directory = _directory(replica)
    named = "null" if bytes(replica.replica_directory_id) == NO_DIRECTORY else f'"{directory}"'
    reached = "".join((', "endpoints": [', ", ".join(f'"{one}"' for one in endpoints), "]")) if endpoints else ""
    return f'{{"id": {replica.replica_id}, "directoryId": {named}{reached}}}'


def _directory(replica: Message) -> str:
    return urlsafe_b64encode(bytes(replica.replica_directory_id)).decode().rstrip("=")


def _rows(quorum: Message, shown: Callable[[int], str]) -> list[tuple[object, ...]]:
    leader = _leader(quorum)
    followers = [one for one in quorum.current_voters if one is not leader]
    kinds = (("Leader", [leader]), ("Follower", followers), ("Observer", quorum.observers))
    return [
        (
            one.replica_id,
            _directory(one),
            one.log_end_offset,
            leader.log_end_offset - one.log_end_offset,
            shown(one.last_fetch_timestamp) if one.last_fetch_timestamp >= 0 else NO_TIME,
            shown(one.last_caught_up_timestamp) if one.last_caught_up_timestamp >= 0 else NO_TIME,
            kind,
        )
        for kind, replicas in kinds
        for one in replicas
    ]


def _ago(timestamp_ms: int) -> str:
    return f"{max(0, int(time.time() * 1000) - timestamp_ms)} ms ago"
