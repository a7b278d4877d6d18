"""The handlers of a partition's leader; those for questions are also asked of followers."""
