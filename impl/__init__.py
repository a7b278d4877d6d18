"""A broker: the rules of `spec/` behind Kafka's wire protocol, with durable logs."""
