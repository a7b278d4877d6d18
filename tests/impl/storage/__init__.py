"""Tests of the broker's storage."""
