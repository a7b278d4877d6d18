"""New offsets of a group, by each of the ways that Kafka's tool has. Kafka: `OffsetsUtils` of 4.3."""

import csv
import io
import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import click

from kspec.cli.broker.asking import TopicAndPartition
from kspec.cli.broker.groups.asking import EARLIEST, LATEST, GroupAdmin
from kspec.cli.statuses import RefusedError

Plan = dict[TopicAndPartition, int]
DURATION = re.compile(r"([-+]?)P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE)


def parse_topics(given: Iterable[str]) -> tuple[set[str], set[TopicAndPartition]]:
    """Whole topics, and partitions, of words such as `t` and `t:0,1`. Raises: bad usage."""
    topics, partitions = set(), set()
    for text in given:
        topic, colon, numbers = text.partition(":")
        if not colon:
            topics.add(topic)
            continue
        if not topic or not re.fullmatch(r"\d+(,\d+)*", numbers):
            raise click.UsageError(f"--topic has the form NAME or NAME:0,1,2, not {text!r}")
        partitions |= {TopicAndPartition(topic, int(number)) for number in numbers.split(",")}
    return topics, partitions


def parse_datetime(text: str) -> int:
    """A time in ms, of `YYYY-MM-DDThh:mm:ss.sss`, in UTC if it says nothing else. Raises: bad usage."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"--to-datetime has the form YYYY-MM-DDThh:mm:ss.sss, not {text!r}") from None
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def parse_duration(text: str) -> int:
    """A duration in ms, of `PnDTnHnMnS`. Raises: bad usage."""
    found = DURATION.fullmatch(text)
    if found is None or not any(found.groups()[1:]):
        raise click.UsageError(f"--by-duration has the form PnDTnHnMnS, not {text!r}")
    sign, days, hours, minutes, seconds = found.groups()
    whole = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60 + float(seconds or 0)
    return round(whole * 1000) * (-1 if sign == "-" else 1)


def parse_plans(file: str, groups: tuple[str, ...]) -> dict[str, Plan]:
    """Offsets of a file: `topic,partition,offset` for one group, or `group,topic,partition,offset`. Raises: bad usage."""
    plans: dict[str, Plan] = {}
    try:
        rows = [row for row in csv.reader(io.StringIO(Path(file).read_text(encoding="utf-8"))) if row]
        for row in rows:
            named = [groups[0], *row] if len(row) == 3 and len(groups) == 1 else row
            group, topic, partition, offset = named
            plans.setdefault(group, {})[TopicAndPartition(topic, int(partition))] = int(offset)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{file} has no lines of the form topic,partition,offset: {error}") from error
    return plans


def exported(plans: Mapping[str, Plan], alone: bool) -> str:
    """Offsets as lines that `parse_plans` reads; without the group if it is `alone`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group, plan in plans.items():
        for one, offset in sorted(plan.items()):
            writer.writerow((*(() if alone else (group,)), *one, offset))
    return text.getvalue()


class OffsetsOfGroup:
    """The offsets that a group would get."""

    def __init__(self, admin: GroupAdmin, group: str) -> None:
        self._admin = admin
        self._group = group

    def to_time(self, partitions: Iterable[TopicAndPartition], timestamp: int) -> Plan:
        """The first records that are not before a time; where there is none, the end of the log."""
        wanted = set(partitions)
        found = self._at(wanted, timestamp)
        none = {one for one, offset in found.items() if offset < 0}
        for one in sorted(none):
            click.echo(
                f"\nWarn: Partition {one.partition} from topic {one.topic} is empty. Falling back to latest known offset."
            )
        return found | (self._at(none, LATEST) if none else {})

    def to_current(self, partitions: Iterable[TopicAndPartition]) -> Plan:
        """The committed offsets, and the end of the log where there is none."""
        committed, wanted = self._admin.committed(self._group), set(partitions)
        found = {one: committed[one].offset for one in wanted if one in committed}
        return found | self._at(wanted - set(found), LATEST)

    def to_offset(self, offsets: Plan) -> Plan:
        """These offsets; one that the log does not have becomes its first or last."""
        first, last = self._at(offsets, EARLIEST), self._at(offsets, LATEST)
        found = {}
        for one, offset in offsets.items():
            found[one] = min(max(offset, first[one]), last[one])
            if found[one] != offset:
                which, whose = ("higher", "latest") if offset > found[one] else ("lower", "earliest")
                click.echo(
                    f"WARN New offset ({offset}) is {which} than {whose} offset for topic partition {one}. "
                    f"Value will be set to {found[one]}",
                    err=True,
                )
        return found

    def shifted(self, partitions: Iterable[TopicAndPartition], by: int) -> Plan:
        """The committed offsets, moved by a number of records."""
        committed, wanted = self._admin.committed(self._group), sorted(partitions)
        for one in wanted:
            if one not in committed:
                raise RefusedError(f"Cannot shift offset for partition {one} since there is no current committed offset")
        return self.to_offset({one: committed[one].offset + by for one in wanted})

    def by_duration(self, partitions: Iterable[TopicAndPartition], duration: int) -> Plan:
        """The first records that are not older than a duration (ms)."""
        return self.to_time(partitions, round(time.time() * 1000) - duration)

    def _at(self, partitions: Iterable[TopicAndPartition], timestamp: int) -> Plan:
        wanted = set(partitions)
        found = self._admin.offsets(wanted, timestamp)
        if missing := ",".join(str(one) for one in sorted(wanted - set(found))):
            raise RefusedError(f'The partitions "{missing}" do not exist, or have no leader')
        return found
