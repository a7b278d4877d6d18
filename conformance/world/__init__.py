"""The world around one real broker: the specification plays the controller, the other replicas and the clients."""
