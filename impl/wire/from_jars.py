"""Write `messages.json` from the schemas inside Kafka's jars.

`python -m kspec.impl.wire.from_jars kafka-clients.jar kafka-metadata.jar`

The jars carry one JSON file with comments for each message. What is kept of it are facts: name, type, versions, default.
"""

import json
import re
import sys
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from kspec.impl.wire.schema import NUMBERS, TABLE, snake_case

PRIMITIVES = (*NUMBERS, "bool", "float64", "string", "bytes", "records", "uuid")
FOLDERS = ("common/message/", "common/metadata/")
KEPT = {"request", "response", "metadata"}


def schemas_in(jar: Path, kinds: Collection[str] = KEPT) -> dict[str, dict[str, Any]]:
    """The messages of these kinds in a jar by their names, as the table has them."""
    found = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith(FOLDERS) and name.endswith(".json"):
                text = archive.read(name).decode("utf-8")
                entry = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
                if entry["type"] in kinds and entry["validVersions"] != "none":
                    found[entry["name"]] = _facts(entry)
    return found


def _facts(entry: dict[str, Any]) -> dict[str, Any]:
    shared = {struct["name"]: struct["fields"] for struct in entry.get("commonStructs", ())}
    return {
        "name": entry["name"],
        "key": entry.get("apiKey", -1),
        "versions": entry["validVersions"],
        "flexible": entry.get("flexibleVersions", "none"),
        "fields": [_field_facts(field, shared) for field in entry["fields"]],
    }


def _field_facts(field: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    prefix = "[]" if field["type"].startswith("[]") else ""
    kind = field["type"].removeprefix("[]")
    facts: dict[str, Any] = {"name": snake_case(field["name"]), "type": prefix + kind, "versions": field["versions"]}
    if kind not in PRIMITIVES:
        facts["type"] = f"{prefix}struct"
        facts["fields"] = [_field_facts(inner, shared) for inner in field.get("fields") or shared[kind]]
    renamed = {"nullable": "nullableVersions", "tagged": "taggedVersions", "tag": "tag", "flexible": "flexibleVersions"}
    facts |= {ours: field[theirs] for ours, theirs in renamed.items() if theirs in field}
    if "tag" in facts:
        facts["tag"] = int(facts["tag"])
    if field.get("default", "") != "":
        facts["default"] = str(field["default"])
    return facts


def table_of(jars: list[Path]) -> str:
    """The table's text, one line for each message."""
    found: dict[str, dict[str, Any]] = {}
    for jar in jars:
        found |= schemas_in(jar)
    return "".join(f"{json.dumps(found[name], separators=(',', ':'))}\n" for name in sorted(found))


if __name__ == "__main__":
    TABLE.write_text(table_of([Path(name) for name in sys.argv[1:]]), encoding="utf-8")
