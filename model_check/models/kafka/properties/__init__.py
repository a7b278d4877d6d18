"""What the model `kafka` must satisfy: in every state (`safety`), and at last (`liveness`)."""
