"""`kspec transactions`: by the name and flags of Kafka's tool."""
