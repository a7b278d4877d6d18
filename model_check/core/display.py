"""Values that show themselves in notebooks. Their looks are no matter of this room."""

from pkgutil import resolve_name
from typing import ClassVar


class NotebookValue:
    """A value that a notebook shows as HTML.

    `shown_by` names the function that makes it. It is loaded when a notebook asks, so nothing here rests upon it.
    """

    __slots__ = ()

    shown_by: ClassVar[str] = "kspec.model_check.explorer.notebook:html_of"

    def _repr_html_(self) -> str:
        """The value for a notebook, which calls this."""
        html: str = resolve_name(self.shown_by)(self)
        return html
