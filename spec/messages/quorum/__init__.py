"""Requests and answers of the voters among one another: one file for each API."""
