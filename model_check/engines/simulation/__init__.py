"""Random walks through a model: a plain oracle, compiled walks that take the same steps, shrinking of what they find."""
