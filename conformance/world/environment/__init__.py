"""The environment of the broker under test: its process, and stand-ins for the controller and the other brokers."""
