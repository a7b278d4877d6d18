"""Requests that name several things: two partitions, two topics, two groups, or the same one twice."""
