"""Load and faults for a cluster that runs, and what becomes of its records: rounds with a verdict each."""
