"""Tests of requests about transactions."""
