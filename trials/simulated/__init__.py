"""A whole cluster in one process, under a virtual clock, network and disk: the same cores and shells, and seeded faults."""
