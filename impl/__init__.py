"""A broker that Kafka's clients talk to: the rules of `spec/` behind sockets, files and timers."""
