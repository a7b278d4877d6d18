"""Why a planted bug goes unnoticed, where it does."""

REASONS: dict[str, str] = {}
"""By the bug's name."""
