"""The settings by which the controller of `spec` decides, as the metadata log has them now."""

from collections.abc import Mapping, Sequence

from kspec.impl.metadata.image import ClusterImage
from kspec.impl.metadata.records import LogRecord
from kspec.spec.controller.protocol import ControllerSettings, PartitionSettings
from kspec.spec.topics import ResourceType
from kspec.spec.values import PartitionId

MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def controller_settings(
    image: ClusterImage, defaults: Mapping[str, str], eligible_leader_replicas: bool, session_timeout_ms: int
) -> ControllerSettings:
    """The cluster's settings, and those of partitions whose topics have their own. `defaults`: a topic's that has none."""
    own: list[PartitionSettings] = []
    for resource, values in image.spec.configs:
        topic = image.topics.get(resource.name) if resource.kind == ResourceType.TOPIC else None
        settings = dict(values)
        if topic is not None and not settings.keys().isdisjoint((MIN_ISR, UNCLEAN)):
            min_isr, unclean = _values({**defaults, **settings})
            own += [PartitionSettings(one, min_isr, unclean) for one in topic.partitions]
    min_isr, unclean = _values(defaults)
    return ControllerSettings(
        min_isr,
        unclean,
        eligible_leader_replicas=eligible_leader_replicas,
        session_timeout_ms=session_timeout_ms,
        of_topics=tuple(sorted(own)),
    )


def _values(settings: Mapping[str, str]) -> tuple[int, bool]:
    return int(settings[MIN_ISR]), settings[UNCLEAN] == "true"


def partitions_with_other_min_isr(image: ClusterImage, records: Sequence[LogRecord]) -> frozenset[PartitionId] | None:
    """The partitions whose `min.insync.replicas` records change; all of them (`None`) if they change the cluster's."""
    changed = [record.message for record in records if record.name == "ConfigRecord" and record.message.name == MIN_ISR]
    if any(one.resource_type == ResourceType.BROKER.value for one in changed):
        return None
    topics = [image.topics.get(one.resource_name) for one in changed]
    return frozenset(partition for topic in topics if topic is not None for partition in topic.partitions)
