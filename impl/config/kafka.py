"""Settings of a node as Apache Kafka knows them: `kafka-settings.json`, written by `conformance.kafka.settings`."""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("kafka-settings.json")

LISTENER = "listener.name."
"""Before a setting of one listener alone: `listener.name.NAME.SETTING`. Kafka: `ListenerName.configPrefix`."""

HIDDEN = "[hidden]"
"""The text in place of a secret. Kafka: `Password.HIDDEN`."""


class KafkaSetting(NamedTuple):
    """A setting as Kafka has it. `kind` is its type; without a default it must be given."""

    name: str
    kind: str
    default: str | None
    changes: str | None
    """Its update mode: per-broker, cluster-wide, read-only; none if it cannot be changed while a broker runs."""


@cache
def kafka_settings() -> dict[str, KafkaSetting]:
    """All settings of a node of Kafka, by their names."""
    listed = json.loads(FILE.read_text(encoding="utf-8"))["settings"]
    return {
        name: KafkaSetting(name, about["type"], about.get("default"), about.get("changes")) for name, about in listed.items()
    }


def without_listener(name: str) -> str:
    """The setting behind the name of a listener; the name as it is, if there is none."""
    if not name.lower().startswith(LISTENER):
        return name
    return name[len(LISTENER) :].partition(".")[2]


def is_secret(name: str) -> bool:
    """Whether the value of a setting is never shown. A setting that Kafka does not know may be one.

    **Kafka:** `KafkaConfig.maybeSensitive`: the type is PASSWORD, or there is none.
    """
    known = kafka_settings().get(without_listener(name))
    return known is None or known.kind == "password"


def is_default(setting: KafkaSetting, text: str) -> bool:
    """Whether a text says what Kafka's default says already. An empty one asks for nothing."""
    text = text.strip()
    if not text:
        return True
    if setting.default is None:
        return False
    try:
        return _value(setting.kind, text) == _value(setting.kind, setting.default)
    except ValueError:
        return False


def _value(kind: str, text: str) -> object:
    if kind in ("int", "long", "short"):
        return int(text)
    if kind == "double":
        return float(text)
    if kind == "boolean":
        return text.lower()
    if kind == "list":
        return tuple(one.strip() for one in text.split(","))
    return text
