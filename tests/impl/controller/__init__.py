"""The controller as a process of its own."""
