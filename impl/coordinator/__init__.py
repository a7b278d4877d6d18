"""The log of the group coordinator, `__consumer_offsets`: its records as Kafka writes them."""
