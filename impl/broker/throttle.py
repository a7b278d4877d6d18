"""The limits on copying moved replicas, on both sides: what was counted, and whether it was too much.

Kafka: `ReplicationQuotaManager`. The rules are `spec.broker.rules.throttling`; `may_throttle` says what a leader does.
"""

from kspec.impl.broker.cluster import ClusterKnowledge
from kspec.impl.broker.replica import Replica
from kspec.impl.config.broker import BrokerConfig
from kspec.spec.broker.rules.throttling import Quota, Samples, count, is_exceeded, names_replica, rate_in_force
from kspec.spec.topics import ConfigResource, ResourceType, configs_of
from kspec.spec.values import MonotonicMs

LEADER, FOLLOWER = "leader", "follower"


def rate_in(value: str) -> int | None:
    """The rate (bytes/s) that was set while brokers run; `None` for a text that is none, which nobody has refused."""
    text = value.strip()
    return int(text) if text.isascii() and text.isdigit() else None


class Throttle:
    """One side's limit. `counted`: all bytes of throttled replicas so far."""

    def __init__(self, side: str, config: BrokerConfig, cluster: ClusterKnowledge) -> None:
        self._rate_setting, self._replicas_setting = (
            f"{side}.replication.throttled.rate",
            f"{side}.replication.throttled.replicas",
        )
        self._config = config
        self._cluster = cluster
        self._samples: Samples = ()
        self._quota: Quota | None = None
        self._quota_of: object = None
        self.counted = 0

    @property
    def quota(self) -> Quota:
        """The limit that holds now."""
        configs = self._cluster.image.spec.configs
        if self._quota is None or self._quota_of is not configs:
            self._quota, self._quota_of = self._new_quota(), configs
        return self._quota

    def _new_quota(self) -> Quota:
        name, config = self._rate_setting, self._config
        of_broker, of_all = (self._rate_set_for(layer) for layer in (str(self._cluster.self_id), ""))
        rate = rate_in_force(of_broker, of_all, config.number(name))
        window_ms = config.number("replication.quota.window.size.seconds") * 1000
        return Quota(rate, window_ms, config.number("replication.quota.window.num"))

    def _rate_set_for(self, broker: str) -> int | None:
        """The rate that was set while brokers run: for one, or with an empty name for all."""
        configs = self._cluster.image.spec.configs
        value = dict(configs_of(configs, ConfigResource(ResourceType.BROKER, broker))).get(self._rate_setting)
        return None if value is None else rate_in(value)

    def concerns(self, replica: Replica) -> bool:
        """Whether this side of a replica is throttled, by its topic's setting."""
        replicas = replica.topic_config[self._replicas_setting]
        return replicas != "" and names_replica(replicas, replica.place.partition, self._cluster.self_id)

    def is_exceeded(self, now: MonotonicMs) -> bool:
        """Whether too much was counted of late."""
        return is_exceeded(self.quota, self._samples, now)

    def count(self, size: int, now: MonotonicMs) -> None:
        """Count bytes of throttled replicas."""
        if size:
            self._samples = count(self.quota, self._samples, size, now)
            self.counted += size
