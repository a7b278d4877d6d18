"""`kspec world`: the world around one real broker."""
