"""What a broker has read of the metadata, and what it has still to read: of each image only what it would make of it.

The first image is the one that it has taken last. Images that ask nothing new of it take the place of the one before, for
nobody could tell when it takes them.
"""

from typing import TypeAlias

from model_check.models.kafka.cluster import is_registration_of
from model_check.models.kafka.values import NO_TOPIC, Cluster, Image
from spec.metadata import NOBODY, BrokerRegistration
from spec.values import BrokerId, PartitionEpoch

Reading: TypeAlias = tuple[Image, ...]

NOT_READING: Reading = ()
"""Of a broker that reads no metadata."""

LATER = 1_000
"""Partition epochs from here on are later than any that a broker leads with."""


def image_for(broker: BrokerId, cluster: Cluster, remembers: bool) -> Image:
    """What `broker` makes of the metadata.

    Of a partition that it leads it takes all but the lists that only the controller reads. Else it looks only at who leads
    since when, and at whether it has a replica, in sync or not; what stands for the partition epoch differs where these do,
    and is later than what it led with. Its own registration matters to a broker that `remembers` metadata over a restart.
    """
    topic = cluster.topic
    if topic.leader == broker:
        public = topic._replace(recovery=NO_TOPIC.recovery, elr=NOBODY, last_known_elr=NOBODY)
        return Image(public, cluster.brokers)
    own = frozenset(entry for entry in cluster.brokers if remembers and is_registration_of(entry, broker))
    if topic == NO_TOPIC:
        return Image(NO_TOPIC, own)
    hosts = topic.replicas & {broker}
    known = NO_TOPIC._replace(
        replicas=hosts,
        isr=topic.isr & {broker},
        leader=topic.leader,
        leader_epoch=topic.leader_epoch,
        partition_epoch=PartitionEpoch(LATER + 2 * topic.leader_epoch + len(hosts)),
    )
    return Image(known, own)


def is_same_to(broker: BrokerId, image: Image, following: Image) -> bool:
    """Whether a broker that has taken an image does nothing about the following one.

    To be behind in reading that does nothing but prevent, so the broker takes it at once. (One thing that Kafka does is left
    out: a broker in controlled shutdown stops fetching once it is out of the ISR. Here it may as well never fetch again.)
    """
    one, other = image.topic, following.topic
    if broker in (one.leader, other.leader):
        return one == other and _only_unfenced(image.brokers, following.brokers)
    return one.partition_epoch == other.partition_epoch


def _only_unfenced(brokers: frozenset[BrokerRegistration], following: frozenset[BrokerRegistration]) -> bool:
    """Whether nothing has happened but that brokers take part again.

    A leader learns that at once: the controller's decision could as well have been made when the leader learns of it.
    """
    changed = following - brokers
    return {entry._replace(fenced=True) for entry in changed} == brokers - following


def with_image(broker: BrokerId, reading: Reading, image: Image) -> Reading:
    """What a broker has to read when the controller has decided something."""
    if reading == NOT_READING:
        return reading
    earlier = reading[:-1] if is_same_to(broker, reading[-1], image) else reading
    return (*earlier, image)
