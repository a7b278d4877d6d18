"""The APIs of a group of consumers, classic protocol. Each request is about one group, also where Kafka's names several."""
