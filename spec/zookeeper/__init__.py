"""The controller of the ZooKeeper era (up to 3.9), the nodes that it writes, and a broker's handlers of its requests."""
