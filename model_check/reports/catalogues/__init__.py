"""Catalogues of mutants: where each mutant of a model is caught."""
