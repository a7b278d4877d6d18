"""Random walks through a model: a plain oracle, compiled walks that take the same steps, and shrinking of found runs."""
