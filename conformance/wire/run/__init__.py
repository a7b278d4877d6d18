"""Running cases against an address: what is sent, what is answered, and how the two compare."""
