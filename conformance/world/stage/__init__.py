"""The stage: the broker's process, and the controller and the other brokers as nodes that somebody plays."""
