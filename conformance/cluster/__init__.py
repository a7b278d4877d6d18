"""Level 1: a cluster under faults. Cases are runs of the model `kafka`; what clients saw of them is judged."""
