"""A topic's settings from the broker's: what holds for a topic that does not say otherwise."""

from impl.config.broker import BrokerConfig

BROKER_NAMES: dict[str, tuple[str, ...]] = {
    "cleanup.policy": ("log.cleanup.policy",),
    "compression.type": ("compression.type",),
    "delete.retention.ms": ("log.cleaner.delete.retention.ms",),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms",),
    "flush.messages": ("log.flush.interval.messages",),
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "index.interval.bytes": ("log.index.interval.bytes",),
    "max.compaction.lag.ms": ("log.cleaner.max.compaction.lag.ms",),
    "max.message.bytes": ("message.max.bytes",),
    "message.timestamp.after.max.ms": ("log.message.timestamp.after.max.ms",),
    "message.timestamp.before.max.ms": ("log.message.timestamp.before.max.ms",),
    "message.timestamp.type": ("log.message.timestamp.type",),
    "min.cleanable.dirty.ratio": ("log.cleaner.min.cleanable.ratio",),
    "min.compaction.lag.ms": ("log.cleaner.min.compaction.lag.ms",),
    "min.insync.replicas": ("min.insync.replicas",),
    "retention.bytes": ("log.retention.bytes",),
    "retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "segment.bytes": ("log.segment.bytes",),
    "segment.index.bytes": ("log.index.size.max.bytes",),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
    "unclean.leader.election.enable": ("unclean.leader.election.enable",),
}
"""A topic's setting, and the broker's settings that stand in for it, the most exact first. Kafka: `TopicConfigSynonyms`."""

UNITS = {"minutes": 60_000, "hours": 3_600_000}


def topic_defaults(config: BrokerConfig) -> dict[str, str]:
    """The settings of a topic that sets none itself. Kafka: `KafkaConfig.extractLogConfigMap`."""
    found = {}
    for name, synonyms in BROKER_NAMES.items():
        given = [one for one in synonyms if one in config.given]
        source = given[0] if given else next(one for one in reversed(synonyms) if config.text(one) is not None)
        text = str(config.text(source))
        factor = UNITS.get(source.rpartition(".")[2], 1)
        found[name] = str(int(text) * factor) if factor > 1 and int(text) >= 0 else text
    return found
