"""A cluster on this machine: a controller and brokers as processes, their settings, supervisor and reports."""
