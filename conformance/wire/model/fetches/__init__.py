"""Fetches: how much they bring, how long they wait, and the sessions that spare them repetition."""
