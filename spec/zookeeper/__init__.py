"""The controller of the ZooKeeper era (up to 3.9), the nodes that it writes, and what a broker does with its requests."""
