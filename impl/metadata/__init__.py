"""The metadata log on disk, in Kafka's own records, and what they say: topics, partitions, brokers, settings."""
