"""Sockets, timers and the carrying out of effects around the core. Nothing here decides about the protocol."""
