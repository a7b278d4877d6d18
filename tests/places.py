"""Folders and files of this repository."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
DOCS = REPOSITORY / "docs"
DATA = REPOSITORY / "tests" / "data"
