"""Topics: created, grown, deleted and looked at; those that there are not, and those that brokers keep for themselves."""
