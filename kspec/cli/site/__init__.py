"""The static site: the pages of docs/, the explorer, and the runs that both show."""
