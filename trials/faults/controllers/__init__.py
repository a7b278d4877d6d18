"""Controllers under faults: what the active one has written, and clients that change the metadata."""
