"""The settings of a broker by Kafka's names, from `server.properties` and from the command line."""
