"""The explorer behind a server of its own, for this machine alone, and its pages."""
