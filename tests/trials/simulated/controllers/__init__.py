"""Several controllers in simulated clusters."""
