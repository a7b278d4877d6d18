"""The settings of a broker have the types that Apache Kafka 4.4.0 gives them."""

import json

from impl.config.broker import SETTINGS
from tests.places import DATA

KAFKAS = json.loads((DATA / "kafka-4.4-settings.json").read_text(encoding="utf-8"))
OURS = {"cluster.id", "metrics.listener"}


def test_types_are_kafkas() -> None:
    assert {name: setting.kind for name, setting in SETTINGS.items() if name not in OURS} == KAFKAS
