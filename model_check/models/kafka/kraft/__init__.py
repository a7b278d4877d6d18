"""The KRaft controller, from 3.0 on: its decisions, the metadata that brokers read, and their start and stop."""
