"""The settings of a log by Kafka's names."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from kspec.impl.storage.disk import StorageError

NEVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogConfig:
    """A topic's settings, in bytes, messages and milliseconds; -1 is no limit. Kafka: `LogConfig`, with its defaults.

    A field's name is the topic's property with `_` in place of `.` (`segment.bytes` is `segment_bytes`).
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4_096
    retention_ms: int = 7 * 24 * 3_600_000
    retention_bytes: int = -1
    flush_messages: int = NEVER
    flush_ms: int = NEVER
    file_delete_delay_ms: int = 60_000
    cleanup_policy: str = "delete"
    delete_retention_ms: int = 24 * 3_600_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NEVER
    min_cleanable_dirty_ratio: float = 0.5
    max_message_bytes: int = 1_048_588
    max_decompressed_message_bytes: int = 2**31 - 9
    compression_type: str = "producer"
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = NEVER
    message_timestamp_after_max_ms: int = 3_600_000
    producer_id_expiration_ms: int = NEVER

    @property
    def compacts(self) -> bool:
        """Whether cleanup.policy has "compact"."""
        return "compact" in self.cleanup_policy.split(",")

    @property
    def stored_codec(self) -> int | None:
        """The codec of stored batches, none if it is the producer's. Kafka: `BrokerCompressionType`."""
        return None if self.compression_type == "producer" else CODECS[self.compression_type]

    @property
    def deletes(self) -> bool:
        """Whether cleanup.policy has "delete"."""
        return "delete" in self.cleanup_policy.split(",")


CODECS = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}

DEFAULTS = LogConfig()

PROPERTIES = {field.name.replace("_", "."): field.name for field in fields(LogConfig)}
"""The fields by the names of a topic's properties."""

POLICIES = ("delete", "compact", "compact,delete", "delete,compact", "")


def log_config(properties: Mapping[str, str], defaults: LogConfig = DEFAULTS) -> LogConfig:
    """The settings that a topic's properties say; properties that are not about a log are left alone.

    Raises: `StorageError` for a value that is no number, or not one of the property's values.
    """
    changed: dict[str, Any] = {}
    for name, field in PROPERTIES.items():
        if name in properties:
            changed[field] = _value(name, properties[name].strip(), type(getattr(defaults, field)))
    return replace(defaults, **changed)


def _value(name: str, text: str, kind: type) -> str | int | float:
    if kind is str:
        wanted = {
            "cleanup.policy": POLICIES,
            "message.timestamp.type": ("CreateTime", "LogAppendTime"),
            "compression.type": ("producer", *CODECS),
        }.get(name)
        if wanted is not None and text not in wanted:
            raise StorageError(f"{name} is one of {', '.join(filter(None, wanted))}, not {text!r}")
        return text
    try:
        number: int | float = kind(text)
        return number
    except ValueError:
        raise StorageError(f"{name} is a number, not {text!r}") from None
