"""Members of groups, of several families of clients, and what is seen of their partitions and commits."""
