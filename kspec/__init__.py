"""The package: the command line, on top of the rooms of the project."""
