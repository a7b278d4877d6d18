"""Rules of the coordinator about single values: the hash that places a group, the bytes of a subscription."""
