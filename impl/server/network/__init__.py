"""Sockets: connections of clients and to other nodes, frames on them, and the order of answers."""
