"""The requests of clients: each is put into the words of `spec`, and its answer into those of the wire."""
