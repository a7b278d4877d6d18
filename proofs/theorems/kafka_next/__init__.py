"""Kafka's replication protocol, message by message: the theorems `kafka-next` and `kafka-next-power-loss`.

`model` has the model, `view` the functions that read a state. The conjuncts are in files by subject; `theorem` combines
them.
"""
