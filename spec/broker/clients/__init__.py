"""What a broker decides about clients' requests before and beside the partitions: versions, batches, fetch sessions."""
