"""Two sides: a run, and the same actions under other rules."""
