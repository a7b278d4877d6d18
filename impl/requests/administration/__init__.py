"""Requests of administrators: to the controller, and about features that there are not."""
