"""The properties of the model `kafka`: of every state (`safety`), and of infinite runs (`liveness`)."""
