"""The messages between brokers, controller and clients: one file for each Kafka API, request and response together.

A request is about one partition, a Kafka request about many: its parts are handled one by one.
"""
