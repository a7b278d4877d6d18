"""Kafka's replication protocol, message by message: the theorems `kafka-next` and `kafka-next-power-loss`.

`model` is what is proved, `view` how a state is read. The conjuncts stand by subject; `theorem` puts them together.
"""
