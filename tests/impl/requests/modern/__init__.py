"""Tests of record batches in bytes."""
