"""Record batches as bytes: their headers, checksums, compression and the records in them."""
