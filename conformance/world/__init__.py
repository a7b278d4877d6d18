"""The world around one real broker: the controller, the other replicas and the clients are the specification's."""
