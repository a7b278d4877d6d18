"""What a request of an administrator needs of the node that handles it: a controller, in a broker or in its own process."""

from collections.abc import Callable
from typing import Any, Protocol

from impl.broker.calls import Effect
from impl.broker.cluster import Cluster, ClusterView
from impl.metadata.records import LogRecord
from spec.controller.topics.settings import TopicSettings
from spec.values import TopicId


class Settings(Protocol):
    """The settings of a node."""

    def __getitem__(self, name: str) -> Any: ...


class Administered(Protocol):
    """A node that decides on topics and settings."""

    topic_settings: TopicSettings
    topic_deleted: list[Callable[[str, TopicId, int], list[Effect]]]
    """Called when a topic is deleted, with its name, its id and the time."""

    @property
    def cluster(self) -> ClusterView:
        """What is known of the cluster."""

    @property
    def deciding(self) -> Cluster:
        """The controller in this process."""

    @property
    def config(self) -> Settings:
        """The settings of the node."""

    def change_metadata(self, records: list[LogRecord]) -> list[Effect]:
        """Write records to the metadata log, and then act on them."""

    def default_topic_settings(self) -> dict[str, str]:
        """The settings of a topic that sets none itself."""

    def configure_replicas(self) -> None:
        """Take the topics' settings as they are now."""
