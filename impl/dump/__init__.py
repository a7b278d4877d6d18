"""The content of a log's files as text, line by line as Apache Kafka's `kafka-dump-log` prints it."""

from kspec.impl.dump.dump import Dump, Options

__all__ = ["Dump", "Options"]
