"""The commands that run a broker, and the tools for any Kafka broker."""
