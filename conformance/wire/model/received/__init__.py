"""Batches that a broker judges before it appends them: by their headers, and by what is in them."""
