"""A node as the rules for topics know it: by its settings."""

from collections.abc import Mapping
from typing import Any, Protocol

from impl.config.settings import Setting
from spec.controller.topics.settings import TopicSettings
from spec.controller.topics.topic_configs import TOPIC_CONFIGS


class Given(Protocol):
    """The settings of a node, and those that it was given."""

    given: dict[str, str]

    def __getitem__(self, name: str) -> Any: ...


def topic_settings(config: Given, known: Mapping[str, Setting], node_id: int) -> TopicSettings:
    """The settings of a node that concern topics. `known`: all settings that it has."""
    return TopicSettings(
        config["num.partitions"],
        config["default.replication.factor"],
        node=tuple(config.given.items()),
        node_defaults=defaults_of(known),
        node_id=node_id,
    )


def defaults_of(known: Mapping[str, Setting]) -> tuple[tuple[str, str], ...]:
    """The defaults of settings, also of those that stand behind a topic's and mean nothing else here.

    Where several stand behind one, they are the same in several units, and not the first one has the default.
    """
    behind = {key.synonyms[0]: key.default for key in TOPIC_CONFIGS if len(key.synonyms) == 1}
    of_topics = {name: default for name, default in behind.items() if name not in known}
    return tuple(({name: one.default for name, one in known.items() if one.default is not None} | of_topics).items())
