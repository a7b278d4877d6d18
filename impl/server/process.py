"""What each process that serves needs: its limits, its garbage."""

import resource

MOST_FILES = 100_000

COLLECTED_AFTER = (20_000, 20, 50)
"""How many values are made between two looks for circles of garbage. A request makes many values, and hardly a circle."""


def raise_file_limit() -> None:
    """Open as many files as the system allows this process: each partition has some, and each connection one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
