"""What the parts of a story share: its errors."""


class StoryError(Exception):
    """A story that does not go on: one line that says why."""


class UnknownStoryError(StoryError):
    """A story that cannot be told: there is none of this name, or processes cannot show it. One line that says why."""
