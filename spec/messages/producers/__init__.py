"""The APIs that give out producer ids."""
