"""Properties of single steps and states of simulated clusters, by subject."""
