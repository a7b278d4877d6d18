"""`kspec metadata-quorum`: by the name and flags of Kafka's tool."""
