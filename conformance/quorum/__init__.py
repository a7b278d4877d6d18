"""One real controller of Apache Kafka among three voters; the other two are handlers of `spec/quorum`, on the network."""
