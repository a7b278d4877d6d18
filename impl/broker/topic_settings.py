"""A node as the rules for topics know it: by its settings."""

from collections.abc import Mapping
from typing import Protocol

from kspec.impl.config.settings import Setting
from kspec.spec.controller.protocol import TopicSettings
from kspec.spec.controller.topics.topic_configs import TOPIC_CONFIGS


class SettingsSource(Protocol):
    """The settings of a node, those that there are, and those that it was given."""

    given: dict[str, str]

    @property
    def known(self) -> Mapping[str, Setting]:
        """Those that there are."""

    @property
    def node_id(self) -> int:
        """The id of the node."""

    def number(self, name: str) -> int:
        """A setting of type int, long or short."""


def topic_settings(config: SettingsSource) -> TopicSettings:
    """The settings of a node that concern topics."""
    return TopicSettings(
        config.number("num.partitions"),
        config.number("default.replication.factor"),
        node=tuple(config.given.items()),
        node_defaults=defaults_of(config.known),
        node_id=config.node_id,
    )


def defaults_of(known: Mapping[str, Setting]) -> tuple[tuple[str, str], ...]:
    """The defaults of settings, also of those that stand behind a topic's and mean nothing else here.

    Where several stand behind one, they are the same in several units, and not the first one has the default.
    """
    behind = {key.synonyms[0]: key.default for key in TOPIC_CONFIGS if len(key.synonyms) == 1}
    of_topics = {name: default for name, default in behind.items() if name not in known}
    return tuple(({name: one.default for name, one in known.items() if one.default is not None} | of_topics).items())
