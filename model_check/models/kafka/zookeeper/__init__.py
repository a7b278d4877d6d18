"""The controller that works on ZooKeeper, up to 2.8: what it decides, what it tells brokers, and how they come and go."""
