"""Tests of members of groups, of several families of clients."""
