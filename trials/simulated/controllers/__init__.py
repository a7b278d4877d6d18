"""Several controllers of a simulated cluster, as its checks and faults know the only one."""
