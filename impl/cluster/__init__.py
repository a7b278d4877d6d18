"""A cluster on this machine: a controller and brokers as processes, their settings, their supervisor, and what they show."""
