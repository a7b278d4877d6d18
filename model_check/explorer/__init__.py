"""A run of a model, taken step by step over messages that are JSON: the protocol behind a page. See docs/explorer.md."""

from kspec.model_check.explorer.explorer import Explorer

__all__ = ["Explorer"]
