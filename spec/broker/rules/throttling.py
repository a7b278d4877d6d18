"""The rate at which moved replicas may be copied (KIP-73): which replicas, how many bytes, and who is held back."""

from typing import NamedTuple

from kspec.spec.values import BrokerId, MonotonicMs, Offset

ALL_REPLICAS = "*"


class Quota(NamedTuple):
    """A limit: `rate` (bytes/s), measured over the last `windows` of `window_ms` each.

    **Kafka:** `ReplicationQuotaManagerConfig`: `replication.quota.window.num`, `replication.quota.window.size.seconds`.
    """

    rate: int
    window_ms: int
    windows: int


class Sample(NamedTuple):
    """The bytes that were counted from a time (ms) on. **Kafka:** `SampledStat.Sample`."""

    since: MonotonicMs
    size: int


Samples = tuple[Sample, ...]
"""The samples, the oldest first."""


def rate_in_force(of_broker: int | None, of_all: int | None, at_start: int) -> int:
    """The rate (bytes/s) that holds for a broker: what was set for it while it runs, else for all, else at its start.

    **Kafka:** `DynamicBrokerConfig.updateCurrentConfig`, whose later layers replace earlier ones. **Leaves out:** that Kafka
    takes no rate at the start.
    """
    if of_broker is not None:
        return of_broker
    return at_start if of_all is None else of_all


def names_replica(replicas: str, partition: int, broker: BrokerId) -> bool:
    """Whether a topic's list of throttled replicas, `*` or PARTITION:BROKER with commas, names this one.

    **Kafka:** `TopicConfigHandler.parseThrottledPartitions`, `ReplicationQuotaManager.isThrottled`.
    """
    return replicas.strip() == ALL_REPLICAS or f"{partition}:{broker}" in [one.strip() for one in replicas.split(",")]


def count(quota: Quota, samples: Samples, size: int, now: MonotonicMs) -> Samples:
    """Count bytes: in the present sample, or in a new one if that is as long as a window.

    **Kafka:** `ReplicationQuotaManager.record`, `SampledStat.record`.
    """
    kept = _recent(quota, samples, now)
    if kept and now - kept[-1].since < quota.window_ms:
        return (*kept[:-1], kept[-1]._replace(size=kept[-1].size + size))
    return (*kept, Sample(now, size))


def is_exceeded(quota: Quota, samples: Samples, now: MonotonicMs) -> bool:
    """Whether more was counted than the rate allows since the oldest sample that is not over, but for a window at least.

    **Kafka:** `ReplicationQuotaManager.isQuotaExceeded`, `SimpleRate.measure`.
    """
    kept = _recent(quota, samples, now)
    if not kept:
        return False
    measured_ms = max(now - kept[0].since, quota.window_ms)
    return sum(sample.size for sample in kept) * 1000 > quota.rate * measured_ms


def _recent(quota: Quota, samples: Samples, now: MonotonicMs) -> Samples:
    """The samples that still count. **Kafka:** `SampledStat.purgeObsoleteSamples`."""
    return tuple(sample for sample in samples if now - sample.since < quota.windows * quota.window_ms)


def lag_of(high_watermark: Offset, fetch_offset: Offset) -> int:
    """The number of records that a follower lacks of what its leader's last answer called committed.

    **Kafka:** `AbstractFetcherThread.processFetchRequest`: `PartitionFetchState.lag`.
    """
    return max(0, high_watermark - fetch_offset)


def may_hold_back(throttled: bool, quota_exceeded: bool, lag: int | None) -> bool:
    """Whether a follower leaves a partition out of its fetch: never one that has no lag. `None`: it has no answer yet.

    **Kafka:** `RemoteLeaderEndPoint.shouldFollowerThrottle`, `PartitionFetchState.isReplicaInSync`.
    """
    return throttled and quota_exceeded and lag != 0
