"""Decisions of a broker about clients' requests before and beside the partitions: versions, batches, fetch sessions."""
