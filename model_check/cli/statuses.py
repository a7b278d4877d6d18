"""Exit statuses. This file imports no model, so that what is no exploration starts quickly."""

import click

ALL_HOLD, VIOLATED, BAD_USAGE, STOPPED = 0, 1, 2, 3
"""Exit statuses."""


class StoppedError(click.ClickException):
    """The work did not finish."""

    exit_code = STOPPED
