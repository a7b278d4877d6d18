"""`python -m tests.conformance.wire.power.fields`: which fields of answers the cases look at, and which they do not.

It reads the suite, prints the fields that no case looks at, and writes the page. Each of them has its reason here.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from kspec.conformance.wire.cases.kept import whole_suite
from kspec.conformance.wire.cases.suite import Json
from kspec.impl.wire.schema import Field, Versions, schema
from tests.places import DOCS

PAGE = DOCS / "conformance" / "fields.md"
COUNT = "[#]"
"""The mark of how many entries a list has."""


class AnswerField(NamedTuple):
    """A field of the answers of an API, from outside in, or the number of entries of a list (`topics[#]`)."""

    api: str
    path: str

    def __str__(self) -> str:
        return f"{self.api} {self.path}"


class FieldReport(NamedTuple):
    """For each field: the versions of the suite's answers that have it, and those in which a case looks at it."""

    there: dict[AnswerField, frozenset[int]]
    seen: dict[AnswerField, frozenset[int]]

    def missing(self) -> list[AnswerField]:
        """The fields that no case looks at."""
        return [one for one in self.there if not self.seen.get(one)]

    def partly(self) -> dict[AnswerField, frozenset[int]]:
        """The fields that are looked at in some versions, with those in which they are not."""
        others = {one: self.there[one] - self.seen.get(one, frozenset()) for one in self.there}
        return {one: left for one, left in others.items() if left and self.seen.get(one)}


def report_of(cases: Iterable[Json]) -> FieldReport:
    """The fields of all answers that are awaited in these cases."""
    used: dict[str, set[int]] = {}
    seen: dict[AnswerField, set[int]] = {}
    for api, versions, expected in (one for case in cases for one in _answers(case)):
        used.setdefault(api, set()).update(versions)
        for one in expected:
            first, last = one["versions"]
            within = {version for version in versions if first <= version <= last}
            for path in looked_at(one["path"]):
                seen.setdefault(AnswerField(api, path), set()).update(within)
    there: dict[AnswerField, frozenset[int]] = {}
    for api in sorted(used):
        for path, known in _paths(schema(f"{api}Response").fields):
            held = frozenset(one for one in used[api] if one in known)
            if held:
                there[AnswerField(api, path)] = held
    return FieldReport(there, {one: frozenset(versions) for one, versions in seen.items()})


def _answers(case: Json) -> Iterator[tuple[str, set[int], list[Json]]]:
    """The answers of a case: the API, the versions in which it may be asked, what is expected."""
    waiting: dict[str, set[int]] = {}
    for step in case["steps"]:
        versions = set(range(step["versions"][0], step["versions"][1] + 1))
        if step["ending"] == "later":
            waiting[step["client"]] = versions
        elif step["ending"] == "answered":
            yield step["api"], versions, step["expect"]
        for one in step.get("awaited", ()):
            yield one["api"], waiting.get(one["client"], set()), one["expect"]


def looked_at(path: str) -> set[str]:
    """The fields that a path looks at: that at its end, and those by which it chooses entries of lists."""
    found, way, is_count = set[str](), list[str](), False
    for inside, name in re.findall(r"\[([^\]]*)\]|([a-z_0-9]+)", path):
        if name:
            way.append(name)
        is_count = inside.startswith("#")
        if "=" in inside:
            found.add(f"{'.'.join(way)}.{inside.strip('#').partition('=')[0]}")
    return {*found, ".".join(way) + COUNT * is_count}


def _paths(fields: Iterable[Field], outer: str = "") -> Iterator[tuple[str, Versions]]:
    for field in fields:
        path = f"{outer}{field.name}"
        if field.fields:
            if field.is_array:
                yield f"{path}{COUNT}", field.versions
            for inner, versions in _paths(field.fields, f"{path}."):
                yield inner, Versions(max(versions.first, field.versions.first), min(versions.last, field.versions.last))
        else:
            yield path, field.versions


# ---- reasons

REASONS: Mapping[str, str] = MappingProxyType(
    {
        "results_by_partition[#]": "each partition that was added is looked for by its number",
        "ApiVersions api_keys.max_version": "which versions a broker offers is its own; the cases use those that it names",
        "ApiVersions supported_features": "features are the broker's own, and those of its release",
        "ApiVersions finalized_features": "features are the broker's own, and those of its release",
        "ApiVersions zk_migration_ready": "ZooKeeper is no more",
        "ConsumerGroupDescribe groups.members.subscribed_topic_regex": "no case subscribes by a regular expression, and "
        "Apache Kafka answers an empty one where the schema has null",
        "CreateTopics topics.topic_config_error_code": "it is set where a client may not see the settings, and the cases "
        "have no authorization",
        "brokers.rack": "the rack is a setting of the broker's own",
        "DescribeConfigs results.error_message": "Apache Kafka answers an empty message where the schema has null",
        "DescribeConfigs results.configs.synonyms": "no case asks for synonyms: they come from the broker's own settings",
        "eligible_leader_replicas": "one replica is always in sync; null and no replicas say the same",
        "last_known_elr": "one replica is always in sync; null and no replicas say the same",
        "partitions.offline_replicas": "that there are none is looked at",
        "topic_authorized_operations": "the request cannot ask for them, and Apache Kafka tells them nevertheless",
        "Fetch node_endpoints": "it tells of another leader, which one broker has not; with FENCED_LEADER_EPOCH Apache "
        "Kafka names the broker itself",
        "Produce node_endpoints": "it tells of another leader, which one broker has not",
        "FindCoordinator error_message": "Apache Kafka answers 'NONE' where the schema has null",
        "FindCoordinator coordinators.error_message": "Apache Kafka answers an empty message where the schema has null",
        "batch_index_error_message": "words for people",
    }
)
"""By the name of a field with or without its API, or the beginning of what is inside a field."""


def reason_of(field: AnswerField) -> str:
    """The reason why no case looks at a field; empty if nobody has given one."""
    whole = f"{field}."
    known = [one for one in REASONS if re.search(rf"(^| |\.){re.escape(one)}($|[.\[_])", whole)]
    return REASONS[max(known, key=len)] if known else ""


# ---- the page

INTRODUCTION = """# The fields of answers that the cases look at

You want to know which fields of a broker's answers the [cases](../conformance.md) compare with something.

```sh
python -m tests.conformance.wire.power.fields
```

The fields are those of Kafka's message schemas, in the versions that the cases use; `[#]` counts the entries of a list.
A field is looked at if a case compares it, or chooses an entry by it. Of what is refused, the error is
compared, and of most no more.

Of {there} fields **{seen}** are looked at.
"""


def as_markdown(report: FieldReport) -> str:
    """The page."""
    missing = set(report.missing())
    lines = [INTRODUCTION.format(there=len(report.there), seen=len(report.there) - len(missing))]
    lines += ["| answer | fields | looked at |", "|---|---|---|"]
    for api in dict.fromkeys(one.api for one in report.there):
        own = [one for one in report.there if one.api == api]
        lines.append(f"| {api} | {len(own)} | {sum(one not in missing for one in own)} |")
    lines += ["", "## Fields that no case looks at", "", "| field | why |", "|---|---|"]
    by_reason: dict[str, list[AnswerField]] = {}
    for one in report.missing():
        by_reason.setdefault(reason_of(one), []).append(one)
    for reason, fields in sorted(by_reason.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        lines.append(f"| {', '.join(f'`{one}`' for one in fields)} | {reason} |")
    partly = report.partly()
    if partly:
        lines += ["", "## Fields that are looked at in some versions", "", "| field | not in versions |", "|---|---|"]
        lines += [f"| `{one}` | {', '.join(map(str, sorted(left)))} |" for one, left in partly.items()]
    return "\n".join((*lines, ""))


def main() -> int:
    """Print the fields that no case looks at, and write the page; the exit status is 1 if one of them has no reason."""
    report = report_of(whole_suite().documents)
    for one in report.missing():
        print(f"{one}: {reason_of(one) or 'NO REASON'}")
    PAGE.write_text(as_markdown(report), encoding="utf-8")
    return int(not all(map(reason_of, report.missing())))


if __name__ == "__main__":
    sys.exit(main())
