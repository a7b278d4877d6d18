"""The common part of a story's modules: its errors."""


class StoryError(Exception):
    """A story that cannot go on: the reason in one line."""


class UnknownStoryError(StoryError):
    """A story that does not exist, or that processes cannot show: the reason in one line."""
