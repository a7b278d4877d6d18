// Your broker.
