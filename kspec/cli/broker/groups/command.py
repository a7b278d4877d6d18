"""`kspec consumer-groups`."""

from collections.abc import Iterable
from typing import Any

import click

from kspec.cli.broker.asking import TopicAndPartition, check_plaintext
from kspec.cli.broker.client import bootstrap, command_config
from kspec.cli.broker.groups import tables
from kspec.cli.broker.groups.asking import EARLIEST, LATEST, GroupAdmin, ShownGroup
from kspec.cli.broker.groups.positions import positions
from kspec.cli.broker.groups.resetting import (
    OffsetsOfGroup,
    Plan,
    exported,
    parse_datetime,
    parse_duration,
    parse_plans,
    parse_topics,
)
from kspec.cli.statuses import RefusedError

STATES = ("Unknown", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
KINDS = ("classic", "consumer")
REBALANCING = {"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}
INACTIVE = {"Empty", "Dead"}
WAYS = (
    "to_earliest",
    "to_latest",
    "to_current",
    "to_offset",
    "shift_by",
    "to_datetime",
    "by_duration",
    "from_file",
)
ANY = ""
"""A flag that takes a value, or none, was given none."""


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@click.command("consumer-groups")
@bootstrap
@command_config
@click.option("--list", "action", flag_value="list", help="List groups of consumers.")
@click.option("--describe", "action", flag_value="describe", help="Show partitions, members or the state of groups.")
@click.option("--delete", "action", flag_value="delete", help="Delete groups that have no members.")
@click.option("--delete-offsets", "action", flag_value="delete-offsets", help="Delete offsets of a group.")
@click.option("--reset-offsets", "action", flag_value="reset-offsets", help="Set offsets of groups without members.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="A group; may be repeated.")
@click.option("--all-groups", is_flag=True, help="All groups.")
@click.option("--offsets", is_flag=True, help="With --describe: partitions with offsets and lag, as without it.")
@click.option("--members", is_flag=True, help="With --describe: members.")
@click.option("--verbose", is_flag=True, help="With --describe: epochs and partitions, too.")
@click.option(
    "--state", is_flag=False, flag_value=ANY, metavar="[A,B]", help="The state; with --list: of groups in these states."
)
@click.option("--type", "kind", is_flag=False, flag_value=ANY, metavar="[A,B]", help="With --list: the type, or of these.")
@click.option("--topic", "topics", multiple=True, metavar="NAME[:0,1]", help="A topic, or partitions of one.")
@click.option("--all-topics", is_flag=True, help="With --reset-offsets: all topics that have offsets in the group.")
@click.option("--to-earliest", is_flag=True, help="To the first record.")
@click.option("--to-latest", is_flag=True, help="To the end of the log.")
@click.option("--to-current", is_flag=True, help="To what is committed.")
@click.option("--to-offset", type=int, metavar="N", help="To an offset.")
@click.option("--shift-by", type=int, metavar="N", help="By so many records, which may be negative.")
@click.option("--to-datetime", metavar="TIME", help="To YYYY-MM-DDThh:mm:ss.sss.")
@click.option("--by-duration", metavar="PnDTnHnMnS", help="To a time so long ago.")
@click.option("--from-file", metavar="FILE", help="To the offsets of a file that --export wrote.")
@click.option("--dry-run", is_flag=True, help="With --reset-offsets: show, and do nothing; so without --execute, too.")
@click.option("--execute", is_flag=True, help="With --reset-offsets: do it.")
@click.option("--export", is_flag=True, help="With --reset-offsets: print lines for --from-file.")
@click.option("--timeout", type=click.IntRange(1), default=30_000, metavar="MS", help="How long to wait for an answer.")
def consumer_groups(action: str | None, bootstrap_server: str, command_config: str | None, **given: Any) -> None:
    """List, describe and delete groups of consumers, set and delete their offsets, as kafka-consumer-groups does."""
    if action is None:
        raise click.UsageError("say what to do: --list, --describe, --delete, --reset-offsets or --delete-offsets")
    _check(action, given)
    check_plaintext(command_config)
    admin = GroupAdmin(bootstrap_server, given["timeout"] / 1000)
    if action == "list":
        states, kinds = _filter("--state", given["state"], STATES), _filter("--type", given["kind"], KINDS)
        listed = admin.listed(states, kinds)
        click.echo(tables.listing(listed, given["kind"] is not None, given["state"] is not None), nl=False)
        return
    named = [one.name for one in admin.listed()] if given["all_groups"] else list(dict.fromkeys(given["groups"]))
    if action == "describe":
        _describe(admin, named, given)
    elif action == "delete":
        _delete(admin, named)
    elif action == "delete-offsets":
        _delete_offsets(admin, named[0], given["topics"])
    else:
        _reset(admin, named, given)


def _check(action: str, given: dict[str, Any]) -> None:
    """Refuse flags that do not go together, as Kafka's tool does."""
    if action != "list" and not given["groups"] and not given["all_groups"]:
        raise click.UsageError(f"--{action} needs --group or --all-groups")
    if given["groups"] and given["all_groups"]:
        raise click.UsageError("say --group or --all-groups, not both")
    if action == "list" and (given["groups"] or given["all_groups"]):
        raise click.UsageError("--list takes no group")
    if given["topics"] and action not in {"reset-offsets", "delete-offsets"}:
        raise click.UsageError(f"--{action} takes no --topic")
    shown = [_flag(name) for name in ("offsets", "members") if given[name]]
    shown += ["--state"] if given["state"] is not None and action == "describe" else []
    if len(shown) > 1:
        raise click.UsageError(f"--describe takes one of {' and '.join(shown)}")
    if action == "describe" and given["state"]:
        raise click.UsageError("--describe takes --state without a value")
    elsewhere = {"offsets": "describe", "members": "describe", "verbose": "describe", "kind": "list"}
    for name, of in elsewhere.items():
        if given[name] not in {None, False} and action != of:
            raise click.UsageError(f"{'--type' if name == 'kind' else _flag(name)} goes with --{of} only")
    if action == "delete-offsets" and (len(set(given["groups"])) != 1 or not given["topics"]):
        raise click.UsageError("--delete-offsets needs one --group, and --topic")
    if action == "reset-offsets":
        _check_reset(given)


def _check_reset(given: dict[str, Any]) -> None:
    ways = [_flag(name) for name in WAYS if given[name] not in {None, False}]
    if len(ways) != 1:
        raise click.UsageError(f"--reset-offsets takes one of {', '.join(map(_flag, WAYS))}")
    if given["dry_run"] and given["execute"]:
        raise click.UsageError("say --dry-run or --execute, not both")
    if given["topics"] and given["all_topics"]:
        raise click.UsageError("say --topic or --all-topics, not both")
    if not (given["topics"] or given["all_topics"] or given["from_file"]):
        raise click.UsageError("One of the reset scopes should be defined: --all-topics, --topic.")


def _filter(flag: str, given: str | None, known: tuple[str, ...]) -> list[str]:
    names = {one.lower(): one for one in known}
    found = [one.strip() for one in (given or "").split(",") if one.strip()]
    for one in found:
        if one.lower() not in names:
            raise click.UsageError(f"{flag} is one of {', '.join(known)}, not {one!r}")
    return [names[one.lower()] for one in found]


def _found(admin: GroupAdmin, names: Iterable[str]) -> list[ShownGroup]:
    found = []
    for name in sorted(names):
        group = admin.described(name)
        if group is None:
            raise RefusedError(f"Consumer group '{name}' does not exist.")
        found.append(group)
    return found


def _describe(admin: GroupAdmin, names: list[str], given: dict[str, Any]) -> None:
    verbose = given["verbose"]
    for group in _found(admin, names):
        _warn(group)
        if given["state"] is not None:
            click.echo(tables.state(group, verbose), nl=False)
        elif given["members"]:
            click.echo(tables.members(group, verbose), nl=False)
        elif rows := positions(admin, group):
            click.echo(tables.offsets(group.name, rows, verbose), nl=False)


def _warn(group: ShownGroup) -> None:
    if group.state == "Empty":
        click.echo(f"\nConsumer group '{group.name}' has no active members.", err=True)
    elif group.state in REBALANCING:
        click.echo(f"\nWarning: Consumer group '{group.name}' is rebalancing.", err=True)


def _delete(admin: GroupAdmin, names: list[str]) -> None:
    errors = {name: admin.delete(name) for name in names}
    gone = ", ".join(f"'{name}'" for name, error in errors.items() if error is None)
    refused = "; ".join(f"Group '{name}' could not be deleted due to: {error}" for name, error in errors.items() if error)
    if not refused:
        click.echo(f"Deletion of requested consumer groups ({gone}) was successful.")
        return
    if gone:
        click.echo(f"These consumer groups were deleted successfully: {gone}")
    raise RefusedError(refused)


def _delete_offsets(admin: GroupAdmin, group: str, given: tuple[str, ...]) -> None:
    errors = admin.delete_offsets(group, _partitions(admin, given))
    refused = any(errors.values())
    if not refused:
        click.echo(f"Request succeeded for deleting offsets from group {group}.")
    click.echo(tables.deleted_offsets(errors), nl=False)
    if refused:
        raise RefusedError("Encountered some partition-level error, see the follow-up details.")


def _partitions(admin: GroupAdmin, given: tuple[str, ...]) -> list[TopicAndPartition]:
    topics, partitions = parse_topics(given)
    whole = admin.partitions_of(topics) if topics else {}
    if missing := topics - {one.topic for one in whole}:
        raise RefusedError(f"Topic '{sorted(missing)[0]}' does not exist")
    return sorted({*whole, *partitions})


def _reset(admin: GroupAdmin, names: list[str], given: dict[str, Any]) -> None:
    if not given["execute"] and not given["dry_run"]:
        click.echo("WARN: No action will be performed as the --execute option is missing.", err=True)
    plans: dict[str, Plan] = {}
    active = []
    for name in sorted(names):
        group = admin.described(name)
        if group is not None and group.state not in INACTIVE:
            active.append(
                f"Assignments can only be reset if the group '{name}' is inactive, but the current state is {group.state}."
            )
            continue
        plans[name] = _plan(admin, name, given)
        if given["execute"] and plans[name]:
            admin.commit(name, plans[name])
    alone = len(given["groups"]) == 1
    click.echo(exported(plans, alone) if given["export"] else tables.new_offsets(plans), nl=False)
    if active:
        raise RefusedError(" ".join(active))


def _plan(admin: GroupAdmin, group: str, given: dict[str, Any]) -> Plan:
    new = OffsetsOfGroup(admin, group)
    if given["from_file"]:
        plans = parse_plans(given["from_file"], given["groups"])
        if group not in plans:
            raise RefusedError(f"No reset plan for group {group} found")
        return new.to_offset(plans[group])
    wanted = list(admin.committed(group)) if given["all_topics"] else _partitions(admin, given["topics"])
    if given["to_offset"] is not None:
        return new.to_offset(dict.fromkeys(wanted, given["to_offset"]))
    if given["shift_by"] is not None:
        return new.shifted(wanted, given["shift_by"])
    if given["to_current"]:
        return new.to_current(wanted)
    if given["by_duration"]:
        return new.by_duration(wanted, parse_duration(given["by_duration"]))
    if given["to_datetime"]:
        return new.to_time(wanted, parse_datetime(given["to_datetime"]))
    return new.to_time(wanted, EARLIEST if given["to_earliest"] else LATEST)
