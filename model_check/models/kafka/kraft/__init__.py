"""The KRaft controller, from 3.0 on: what it decides, what brokers read of it, and how they come and go."""
