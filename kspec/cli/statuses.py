"""Exit statuses. This file imports no model, so that what is no exploration starts quickly."""

import click

ALL_HOLD, VIOLATED, BAD_USAGE, STOPPED = 0, 1, 2, 3
"""Exit statuses."""


class StoppedError(click.ClickException):
    """The work did not finish."""

    exit_code = STOPPED


class RefusedError(StoppedError):
    """A broker has refused, or does not answer."""

    exit_code = VIOLATED
