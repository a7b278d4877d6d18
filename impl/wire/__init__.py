"""Kafka's wire format: messages as bytes and back. No decision of the protocol is made here."""
