"""Decisions about transactions in which releases differ, or whose weakening shows that they are needed."""
