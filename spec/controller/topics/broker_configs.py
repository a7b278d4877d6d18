"""Which settings of a broker may be changed while it runs."""

from spec.controller.topics.topic_configs import TOPIC_CONFIGS
from spec.values import Error

OF_TOPICS = frozenset(key.synonyms[0] for key in TOPIC_CONFIGS if key.synonyms)
"""Those that stand behind a topic's, by the most exact name: `log.retention.ms`, not `log.retention.hours`."""

THROTTLES = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
"""Kafka: `QuotaConfig.brokerQuotaConfigs`."""


def check_broker_config(name: str) -> Error:
    """Whether a setting of a broker may be changed while it runs. Errors: `INVALID_REQUEST`.

    **Kafka:** `DynamicBrokerConfig.validateConfigs`, `DynamicLogConfig.RECONFIGURABLE_CONFIGS`. **Leaves out:** settings of
    threads, listeners and connections, which Kafka changes, too.
    """
    return Error.NONE if name in OF_TOPICS or name in THROTTLES else Error.INVALID_REQUEST
