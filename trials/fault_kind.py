"""The form of every kind of fault: one class with its words, its weight, its action and the undoing of it."""

from abc import ABC, abstractmethod
from typing import ClassVar


class FaultKind(ABC):
    """A kind of fault; an object is one fault that happens."""

    words: ClassVar[str]
    """The fault in words."""
    weight: ClassVar[float] = 1.0
    """Its frequency beside that of the other kinds."""
    is_undone: bool = True
    """Whether it is undone when its time is over."""

    @abstractmethod
    def act(self) -> bool:
        """Let the fault happen; whether it could."""

    def undo(self) -> None:  # noqa: B027 (a fault may have nothing to undo)
        """Let what has happened be over."""
