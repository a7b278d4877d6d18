"""Trials of clusters: the broker under faults, in virtual time and as processes, and a judge of what its clients saw."""

if __name__ != "kspec.trials":
    raise ImportError("import kspec.trials instead: imported as trials, each class would be there twice")
