"""`kspec topics`, `configs`, `get-offsets` and `delete-records`: by the names and flags of Kafka's own tools."""

import json
import re
from pathlib import Path
from typing import Any

import click

from kspec.cli.broker.client import admin, bootstrap, command_config, library, outcome, ranges, topics_of
from kspec.cli.statuses import RefusedError

INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
TIMES = {"latest": -1, "earliest": -2, "max-timestamp": -3}


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for number, text in enumerate(given, start=1):
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"a setting has the form NAME=VALUE; number {number} has another")
        found[name] = value
    return found


def _assignment(text: str) -> list[list[int]]:
    parts = [part.split(":") for part in text.split(",")]
    if not all(one.isdigit() for part in parts for one in part):
        raise click.UsageError(f"--replica-assignment has the form 1:2,2:3, not {text!r}")
    return [[int(one) for one in part] for part in parts]


@click.command()
@bootstrap
@command_config
@click.option("--create", "action", flag_value="create", help="Create a topic.")
@click.option("--list", "action", flag_value="list", help="List topics.")
@click.option("--describe", "action", flag_value="describe", help="Describe topics.")
@click.option("--delete", "action", flag_value="delete", help="Delete topics.")
@click.option("--alter", "action", flag_value="alter", help="Give a topic more partitions.")
@click.option("--topic", metavar="NAME", help="The topic; a regular expression except with --create.")
@click.option("--partitions", type=click.IntRange(1), metavar="N", help="Partitions of the topic.")
@click.option("--replication-factor", type=click.IntRange(1), metavar="N", help="Replicas of each partition.")
@click.option("--replica-assignment", metavar="1:2,2:3", help="The replicas of each partition.")
@click.option("--config", "configs", multiple=True, metavar="NAME=VALUE", help="A setting of a new topic.")
@click.option("--if-not-exists", is_flag=True, help="With --create: do nothing if there is such a topic.")
@click.option("--if-exists", is_flag=True, help="With --delete, --alter and --describe: do nothing if there is none.")
@click.option("--exclude-internal", is_flag=True, help="Leave out topics that Kafka keeps for itself.")
def topics(action: str | None, topic: str | None, bootstrap_server: str, command_config: str | None, **given: Any) -> None:
    """Create, list, describe, alter and delete topics, as kafka-topics does."""
    if action is None:
        raise click.UsageError("say what to do: --create, --list, --describe, --alter or --delete")
    if action not in {"list", "describe"} and topic is None:
        raise click.UsageError(f"--{action} needs --topic")
    client = admin(bootstrap_server, command_config)
    if action == "create":
        _create(client, str(topic), given)
        return
    known = [name for name in sorted(topics_of(client)) if not (given["exclude_internal"] and name in INTERNAL)]
    wanted = [name for name in known if topic is None or re.fullmatch(topic, name)]
    if topic is not None and not wanted and action != "list" and not given["if_exists"]:
        raise RefusedError(f"Topic '{topic}' does not exist as expected")
    if action == "list":
        click.echo("".join(f"{name}\n" for name in wanted), nl=False)
    elif action == "delete" and wanted:
        for future in client.delete_topics(wanted).values():
            outcome(future)
    elif action == "alter":
        _alter(client, wanted, given["partitions"])
    elif action == "describe":
        for name in wanted:
            _describe(client, name)


def _create(client: Any, topic: str, given: dict[str, Any]) -> None:
    if given["if_not_exists"] and topic in topics_of(client):
        return
    new = library().admin.NewTopic(
        topic,
        num_partitions=given["partitions"] or -1,
        replication_factor=-1 if given["replica_assignment"] else given["replication_factor"] or -1,
        config=_pairs(given["configs"]),
        **({"replica_assignment": _assignment(given["replica_assignment"])} if given["replica_assignment"] else {}),
    )
    outcome(client.create_topics([new])[topic])
    click.echo(f"Created topic {topic}.")


def _alter(client: Any, topics: list[str], partitions: int | None) -> None:
    if partitions is None:
        raise click.UsageError("--alter needs --partitions; settings are changed by `kspec configs`")
    for name in topics:
        outcome(client.create_partitions([library().admin.NewPartitions(name, partitions)])[name])


def _describe(client: Any, name: str) -> None:
    collection = library().TopicCollection([name])
    found = outcome(client.describe_topics(collection)[name])
    resource = library().admin.ConfigResource("topic", name)
    configs = outcome(client.describe_configs([resource])[resource])
    own = [f"{key}={one.value}" for key, one in sorted(configs.items()) if one.source == 1]
    factor = len(found.partitions[0].replicas)
    topic_id = str(found.topic_id).replace("/", "_").replace("+", "-")
    click.echo(
        f"Topic: {name}\tTopicId: {topic_id}\tPartitionCount: {len(found.partitions)}"
        f"\tReplicationFactor: {factor}\tConfigs: {','.join(own)}"
    )
    for one in found.partitions:
        leader = one.leader.id if one.leader is not None else "none"
        replicas, isr = (",".join(str(node.id) for node in nodes) for nodes in (one.replicas, one.isr))
        click.echo(f"\tTopic: {name}\tPartition: {one.id}\tLeader: {leader}\tReplicas: {replicas}\tIsr: {isr}")


@click.command()
@bootstrap
@command_config
@click.option("--describe", "action", flag_value="describe", help="Show settings.")
@click.option("--alter", "action", flag_value="alter", help="Change settings.")
@click.option("--entity-type", type=click.Choice(["topics", "brokers"]), help="What has the settings.")
@click.option("--entity-name", metavar="NAME", help="The topic, or the id of the broker.")
@click.option("--entity-default", is_flag=True, help="All brokers.")
@click.option("--topic", metavar="NAME", help="The same as --entity-type topics --entity-name NAME.")
@click.option("--add-config", metavar="A=1,B=2", help="Settings to give values.")
@click.option("--delete-config", metavar="A,B", help="Settings to take away.")
@click.option("--all", "everything", is_flag=True, help="Show defaults, too.")
def configs(action: str | None, bootstrap_server: str, command_config: str | None, **given: Any) -> None:
    """Show and change settings of topics and brokers, as kafka-configs does."""
    kind = "topic" if given["topic"] else {"topics": "topic", "brokers": "broker"}.get(given["entity_type"] or "")
    name = given["topic"] or given["entity_name"] or ""
    if action is None or kind is None or not (name or given["entity_default"]):
        raise click.UsageError("say --describe or --alter, and --entity-type with --entity-name")
    confluent = library()
    client = admin(bootstrap_server, command_config)
    resource = confluent.admin.ConfigResource(kind, name)
    if action == "alter":
        _alter_configs(confluent, client, kind, name, given)
        click.echo(f"Completed updating config for {kind} {name}.")
        return
    click.echo(f"{'All' if given['everything'] else 'Dynamic'} configs for {kind} {name} are:")
    for key, one in sorted(outcome(client.describe_configs([resource])[resource]).items()):
        if given["everything"] or one.source in {1, 2, 3}:
            source = confluent.admin.ConfigSource(one.source).name
            click.echo(
                f"  {key}={one.value} sensitive={str(one.is_sensitive).lower()} synonyms={{{source}:{key}={one.value}}}"
            )


def _alter_configs(confluent: Any, client: Any, kind: str, name: str, given: dict[str, Any]) -> None:
    operation = confluent.admin.AlterConfigOpType
    added = re.findall(r"([^=,]+)=(\[[^\]]*\]|[^,]*)", given["add_config"] or "")
    taken = [one for one in (given["delete_config"] or "").split(",") if one]
    if not added and not taken:
        raise click.UsageError("--alter needs --add-config or --delete-config")
    entry = confluent.admin.ConfigEntry
    entries = [entry(key.strip(), value.strip("[]"), incremental_operation=operation.SET) for key, value in added]
    entries += [entry(key.strip(), None, incremental_operation=operation.DELETE) for key in taken]
    resource = confluent.admin.ConfigResource(kind, name, incremental_configs=entries)
    outcome(client.incremental_alter_configs([resource])[resource])


@click.command("get-offsets")
@bootstrap
@command_config
@click.option("--topic", metavar="NAME", help="A topic, as a regular expression; all if not given.")
@click.option("--partitions", metavar="0,2", help="Partitions; all if not given.")
@click.option("--time", "time", default="latest", metavar="T", help="latest, earliest, max-timestamp, or a time in ms.")
@click.option("--exclude-internal-topics", is_flag=True, help="Leave out topics that Kafka keeps for itself.")
def get_offsets(
    bootstrap_server: str,
    command_config: str | None,
    topic: str | None,
    partitions: str | None,
    time: str,
    exclude_internal_topics: bool,
) -> None:
    """Print TOPIC:PARTITION:OFFSET, as kafka-get-offsets does."""
    confluent = library()
    wanted = TIMES.get(time)
    if wanted is None and not re.fullmatch(r"-?\d+", time):
        raise click.UsageError(f"--time is latest, earliest, max-timestamp, or a time in ms, not {time!r}")
    wanted = int(time) if wanted is None else wanted
    named = {-1: confluent.admin.OffsetSpec.latest, -2: confluent.admin.OffsetSpec.earliest}
    spec = (
        named[wanted]()
        if wanted in named
        else (
            confluent.admin.OffsetSpec.max_timestamp() if wanted == -3 else confluent.admin.OffsetSpec.for_timestamp(wanted)
        )
    )
    client = admin(bootstrap_server, command_config)
    numbers = ranges(partitions) if partitions else None
    asked = {
        confluent.TopicPartition(name, number): spec
        for name, found in topics_of(client).items()
        if (topic is None or re.fullmatch(topic, name)) and not (exclude_internal_topics and name in INTERNAL)
        for number in found.partitions
        if numbers is None or number in numbers
    }
    if not asked:
        raise RefusedError("Could not match any topic-partitions with the specified filters")
    answers = client.list_offsets(asked)
    for one, future in sorted(answers.items(), key=lambda item: (item[0].topic, item[0].partition)):
        offset = outcome(future).offset
        click.echo(f"{one.topic}:{one.partition}:{offset if offset >= 0 else ''}")


@click.command("delete-records")
@bootstrap
@command_config
@click.option("--offset-json-file", required=True, metavar="FILE", help="Partitions and offsets, as JSON.")
def delete_records(bootstrap_server: str, command_config: str | None, offset_json_file: str) -> None:
    """Delete records before an offset, as kafka-delete-records does.

    The file has the form {"partitions": [{"topic": "T", "partition": 0, "offset": 3}], "version": 1}; offset -1 deletes all.
    """
    confluent = library()
    try:
        named = json.loads(Path(offset_json_file).read_text(encoding="utf-8"))["partitions"]
        wanted = [confluent.TopicPartition(one["topic"], one["partition"], one["offset"]) for one in named]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise click.UsageError(f"{offset_json_file} does not name partitions and offsets: {error}") from error
    click.echo("Executing records delete operation\nRecords delete operation completed:")
    client = admin(bootstrap_server, command_config)
    for one, future in client.delete_records(wanted).items():
        click.echo(f"partition: {one.topic}-{one.partition}\tlow_watermark: {outcome(future).low_watermark}")
