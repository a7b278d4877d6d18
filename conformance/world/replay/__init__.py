"""The replay of a run: parties and their messages, the controller's records, observations, and their comparison."""
