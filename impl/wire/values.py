"""A message as Python has it: fields by name."""

from typing import TYPE_CHECKING, Any


class Message:
    """A request, a response, or a part of one: its fields are attributes.

    A decoded message has every field of its schema, those that its version lacks with their defaults. To encode, give the
    fields that differ from their defaults; a field that no version has is an error.
    """

    def __init__(self, **fields: Any) -> None:
        self.__dict__ = fields

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"Message({inside})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The fields are known when the program runs."""


class KeptMessage(Message):
    """An answer that is given to many: its bytes are made once for each version. It must not change."""

    __slots__ = ("encoded",)

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.encoded: dict[int, memoryview] = {}
        """All of a frame but its length and correlation, by the version."""


class DecodeError(Exception):
    """Bytes that are no message of the wanted kind: truncated, a negative length, a null where none may be."""


def refused(message: Message, error: int) -> Message:
    """An answer with this error wherever it says that there was none."""
    values = {name: _refused(value, error) for name, value in message.__dict__.items()}
    if values.get("error_code") == 0:
        values["error_code"] = error
    return Message(**values)


def refused_whatever(message: Message, error: int) -> Message:
    """An answer with this error wherever it says of something whether it went well."""
    values = {name: _refused_whatever(value, error) for name, value in message.__dict__.items()}
    return Message(**{name: error if name == "error_code" else value for name, value in values.items()})


def _refused_whatever(value: Any, error: int) -> Any:
    if isinstance(value, Message):
        return refused_whatever(value, error)
    return [_refused_whatever(one, error) for one in value] if isinstance(value, list) else value


def _refused(value: Any, error: int) -> Any:
    if isinstance(value, Message):
        return refused(value, error)
    return [_refused(one, error) for one in value] if isinstance(value, list) else value
