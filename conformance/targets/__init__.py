"""Brokers that the cases are run against: each from an ordinary package, started on the loopback by a small driver."""
