"""The settings of a topic, as Kafka 4.4 knows them."""

from kspec.spec.controller.topics.config_types import ConfigKey
from kspec.spec.messages.topics.describe_configs import ConfigType

TOPIC_CONFIGS = (
    ConfigKey("cleanup.policy", ConfigType.LIST, "delete", words=("compact", "delete"), synonyms=("log.cleanup.policy",)),
    ConfigKey(
        "compression.gzip.level", ConfigType.INT, "-1", lowest=1, highest=9, also=-1, synonyms=("compression.gzip.level",)
    ),
    ConfigKey("compression.lz4.level", ConfigType.INT, "9", lowest=1, highest=17, synonyms=("compression.lz4.level",)),
    ConfigKey(
        "compression.type",
        ConfigType.STRING,
        "producer",
        words=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        synonyms=("compression.type",),
    ),
    ConfigKey(
        "compression.zstd.level", ConfigType.INT, "3", lowest=-131072, highest=22, synonyms=("compression.zstd.level",)
    ),
    ConfigKey("delete.retention.ms", ConfigType.LONG, "86400000", lowest=0, synonyms=("log.cleaner.delete.retention.ms",)),
    ConfigKey("errors.deadletterqueue.group.enable", ConfigType.BOOLEAN, "false"),
    ConfigKey("file.delete.delay.ms", ConfigType.LONG, "60000", lowest=0, synonyms=("log.segment.delete.delay.ms",)),
    ConfigKey("flush.messages", ConfigType.LONG, "9223372036854775807", lowest=1, synonyms=("log.flush.interval.messages",)),
    ConfigKey(
        "flush.ms",
        ConfigType.LONG,
        "9223372036854775807",
        lowest=0,
        synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ),
    ConfigKey("follower.replication.throttled.replicas", ConfigType.LIST, "", is_replica_list=True),
    ConfigKey("index.interval.bytes", ConfigType.INT, "4096", lowest=0, synonyms=("log.index.interval.bytes",)),
    ConfigKey("leader.replication.throttled.replicas", ConfigType.LIST, "", is_replica_list=True),
    ConfigKey("local.retention.bytes", ConfigType.LONG, "-2", lowest=-2, synonyms=("log.local.retention.bytes",)),
    ConfigKey("local.retention.ms", ConfigType.LONG, "-2", lowest=-2, synonyms=("log.local.retention.ms",)),
    ConfigKey(
        "max.compaction.lag.ms",
        ConfigType.LONG,
        "9223372036854775807",
        lowest=1,
        synonyms=("log.cleaner.max.compaction.lag.ms",),
    ),
    ConfigKey(
        "max.decompressed.message.bytes",
        ConfigType.INT,
        "2147483639",
        lowest=1,
        highest=2147483639,
        synonyms=("max.decompressed.message.bytes",),
    ),
    ConfigKey("max.message.bytes", ConfigType.INT, "1048588", lowest=0, synonyms=("message.max.bytes",)),
    ConfigKey(
        "message.timestamp.after.max.ms",
        ConfigType.LONG,
        "3600000",
        lowest=0,
        synonyms=("log.message.timestamp.after.max.ms",),
    ),
    ConfigKey(
        "message.timestamp.before.max.ms",
        ConfigType.LONG,
        "9223372036854775807",
        lowest=0,
        synonyms=("log.message.timestamp.before.max.ms",),
    ),
    ConfigKey(
        "message.timestamp.type",
        ConfigType.STRING,
        "CreateTime",
        words=("CreateTime", "LogAppendTime"),
        synonyms=("log.message.timestamp.type",),
    ),
    ConfigKey(
        "min.cleanable.dirty.ratio",
        ConfigType.DOUBLE,
        "0.5",
        lowest=0,
        highest=1,
        synonyms=("log.cleaner.min.cleanable.ratio",),
    ),
    ConfigKey("min.compaction.lag.ms", ConfigType.LONG, "0", lowest=0, synonyms=("log.cleaner.min.compaction.lag.ms",)),
    ConfigKey("min.insync.replicas", ConfigType.INT, "1", lowest=1, synonyms=("min.insync.replicas",)),
    ConfigKey("preallocate", ConfigType.BOOLEAN, "false", synonyms=("log.preallocate",)),
    ConfigKey("remote.copy.lag.bytes", ConfigType.LONG, "-1", lowest=-1, synonyms=("log.remote.copy.lag.bytes",)),
    ConfigKey("remote.copy.lag.ms", ConfigType.LONG, "0", lowest=-1, synonyms=("log.remote.copy.lag.ms",)),
    ConfigKey("remote.log.copy.disable", ConfigType.BOOLEAN, "false"),
    ConfigKey("remote.log.delete.on.disable", ConfigType.BOOLEAN, "false"),
    ConfigKey("remote.storage.enable", ConfigType.BOOLEAN, "false"),
    ConfigKey("retention.bytes", ConfigType.LONG, "-1", synonyms=("log.retention.bytes",)),
    ConfigKey(
        "retention.ms",
        ConfigType.LONG,
        "604800000",
        lowest=-1,
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ),
    ConfigKey("segment.bytes", ConfigType.INT, "1073741824", lowest=1048576, synonyms=("log.segment.bytes",)),
    ConfigKey("segment.index.bytes", ConfigType.INT, "10485760", lowest=4, synonyms=("log.index.size.max.bytes",)),
    ConfigKey("segment.jitter.ms", ConfigType.LONG, "0", lowest=0, synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours")),
    ConfigKey("segment.ms", ConfigType.LONG, "604800000", lowest=1, synonyms=("log.roll.ms", "log.roll.hours")),
    ConfigKey("unclean.leader.election.enable", ConfigType.BOOLEAN, "false", synonyms=("unclean.leader.election.enable",)),
)
"""All settings of a topic, in order of their names. Kafka: `LogConfig.CONFIG`, `ServerTopicConfigSynonyms`."""


def topic_config(name: str) -> ConfigKey | None:
    """The setting of this name, `None` if topics have none such."""
    return next((key for key in TOPIC_CONFIGS if key.name == name), None)


def topic_config_behind(name: str) -> ConfigKey | None:
    """The topic's setting that a broker's setting of this name stands behind, `None` if there is none."""
    return next((key for key in TOPIC_CONFIGS if name in key.synonyms), None)
