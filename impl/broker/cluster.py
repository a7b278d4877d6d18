"""A broker's knowledge of the cluster: the image of the metadata log as far as it has read it, and what follows."""

from dataclasses import dataclass, field

from kspec.impl.metadata.active import StepRecorder
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.wire.values import KeptMessage, Message
from kspec.spec.metadata import BrokerRegistration, PartitionRegistration, broker_of
from kspec.spec.topics import TopicImage, TopicPartition
from kspec.spec.values import BrokerId, PartitionId


@dataclass(slots=True)
class MetadataParts:
    """Parts of answers about the metadata, which are made once for all who ask the same."""

    brokers: list[Message] | None = None
    """The brokers that are alive."""
    topics: dict[str, list[Message]] = field(default_factory=dict)
    """The partitions of topics, by their names."""
    answers: dict[object, KeptMessage] = field(default_factory=dict)
    """Whole answers to Metadata requests, by what was asked."""


class ClusterKnowledge:
    """This broker's knowledge of the cluster."""

    def __init__(self, image: ClusterImage, self_id: int) -> None:
        self.self_id = BrokerId(self_id)
        self.image = image
        self.endpoint = Message(name="PLAINTEXT", host="", port=0, security_protocol=0)
        self.rack: str | None = None
        self.note: StepRecorder | None = None
        self._registrations: dict[PartitionId, PartitionRegistration] = {}
        self._registrations_of: object = None
        self._metadata_parts = MetadataParts()
        self._metadata_parts_of: tuple[object, object] = (None, None)

    def use_image(self, image: ClusterImage) -> None:
        """Know this from now on, instead of what was known."""
        self.image = image

    # ---- what is known

    @property
    def registration(self) -> BrokerRegistration | None:
        """This broker's own registration."""
        return broker_of(self.image.spec.brokers, self.self_id)

    def registrations(self) -> dict[PartitionId, PartitionRegistration]:
        """All partitions by their numbers."""
        partitions = self.image.spec.partitions
        if self._registrations_of is not partitions:
            self._registrations = {record.partition_id: record.registration for record in partitions}
            self._registrations_of = partitions
        return self._registrations

    def metadata_parts(self) -> MetadataParts:
        """Parts of answers about the metadata, kept by those who answer: none, once brokers or partitions are others."""
        image, (brokers, partitions) = self.image.spec, self._metadata_parts_of
        if brokers is not image.brokers or partitions is not image.partitions:
            self._metadata_parts, self._metadata_parts_of = MetadataParts(), (image.brokers, image.partitions)
        return self._metadata_parts

    def topic(self, name: str | None, topic_id: bytes, by_id: bool) -> TopicImage | None:
        """A topic by its name, or by its id."""
        return self.image.topics_by_id.get(topic_id) if by_id else self.image.topics.get(name or "")

    def place_of(self, partition_id: PartitionId) -> TopicPartition:
        """A partition by its number."""
        key = self.image.key_of(partition_id)
        return TopicPartition(self.image.topics_by_id[key.topic_id].name, key.partition)
