"""Transactional clients on a cluster: a program for each family of clients, their load and its history, and a bank."""
