"""Requests between the ZooKeeper controller and brokers, up to 3.9."""
