"""Ids of nodes and clients, and names of topics, in every simulated cluster."""

CONTROLLER_ID = 100
ADMIN_ID, FIRST_CLIENT_ID = 1_000, 1_001
VOTERS_ADMIN_ID = 999
TOPIC = "sim"
OFFSETS_TOPIC, OFFSETS_PARTITIONS = "__consumer_offsets", 2
