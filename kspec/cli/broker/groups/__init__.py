"""`kspec consumer-groups`: by the name and flags of Kafka's tool."""
