"""Plans of rounds: what a class of defects needs to be seen, done on purpose to a cluster that runs."""
