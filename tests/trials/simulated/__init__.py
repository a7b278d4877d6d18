"""Tests of clusters in simulated time."""
