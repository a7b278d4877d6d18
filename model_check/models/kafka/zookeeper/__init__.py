"""The ZooKeeper controller, up to 2.8: its decisions, its requests to brokers, and the brokers' start and stop."""
