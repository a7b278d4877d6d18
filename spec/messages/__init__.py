"""What brokers, controller and clients say to one another: one file for each Kafka API, request and response together.

A request is about one partition where Kafka's is about many: the parts of a Kafka request are decided one by one.
"""
