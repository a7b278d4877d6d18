"""Tests of brokers that are members of a cluster."""
