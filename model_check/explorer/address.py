"""A run as a short string that is safe in a URL: the model, its parameters, the steps by name, and a digest of the end.

`kip-101~replicas.2~acks.all~~ControllerElectLeader_replica.1~…~~9f0c2a71`. See docs/explorer.md for the grammar.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2s
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from kspec.model_check.core.model import Argument, Model, State
from kspec.model_check.core.nearest import instead_of
from kspec.model_check.core.parameters import Parameter, ParameterError
from kspec.model_check.explorer.errors import RefusedMessageError
from kspec.model_check.models import ModelEntry
from kspec.model_check.traces.render import slot_in_words

BETWEEN, PART, VALUE, SET = "~", "_", ".", "t"

MOST_LETTERS = 500_000
"""Letters of an address at most; that of a run of 1,000 steps has about a fifth."""


class AddressStep(NamedTuple):
    """A step by its action's name and arguments. `choice` tells apart several ways to take it; the first one is 1."""

    action: str
    args: tuple[tuple[str, Argument], ...]
    choice: int = 1

    @property
    def label(self) -> str:
        """The step as the model writes it: `Produce(leader=1)`."""
        return f"{self.action}({', '.join(f'{name}={value}' for name, value in self.args)})"


class Address(NamedTuple):
    """A run: the model, the parameters that are not as usual, the steps; `digest` of the last state, empty if not known."""

    model: str
    parameters: Mapping[str, Any]
    steps: tuple[AddressStep, ...] = ()
    digest: str = ""

    def text(self) -> str:
        """The address as a string of letters, digits and `-._~%`."""
        head = [_atom(self.model)]
        head += [f"{_atom(name.replace('_', '-'))}{VALUE}{_value(value)}" for name, value in self.parameters.items()]
        sections = [BETWEEN.join(head), BETWEEN.join(_step(step) for step in self.steps), self.digest]
        while not sections[-1]:
            sections.pop()
        return (BETWEEN * 2).join(sections)


def parameters_to_write(entry: ModelEntry, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that an address has: all but those that are off and usually are.

    So a later version of the project may change the usual bounds without changing what an address means.
    """
    usual = {parameter.name: parameter.default for parameter in entry.parameters}
    usual.update(entry.defaults(parameters))
    return {name: value for name, value in parameters.items() if not (_is_off(value) and _is_off(usual[name]))}


def _is_off(value: Any) -> bool:
    return value in (None, False, 0, ())


def digest_of(model: Model, state: State) -> str:
    """Eight characters that stand for a state as readers see it."""
    words = "\n".join(f"{slot.label} {slot_in_words(slot, value)}" for slot, value in zip(model.slots, state, strict=True))
    return blake2s(words.encode(), digest_size=4).hexdigest()


# ---- writing


@lru_cache(maxsize=1024)
def _atom(text: str) -> str:
    """A name without the characters that separate: these are escaped, as in every URL."""
    quoted = quote(text, safe="")
    return "".join(f"%{ord(letter):02X}" if letter in f"{BETWEEN}{PART}{VALUE}" else letter for letter in quoted)


def _value(value: Any) -> str:
    """A parameter's value; a release keeps its point, several values have `_` between them."""
    if value is True:
        return "on"
    if value is False:
        return "off"
    if isinstance(value, tuple):
        return PART.join(_atom(member) for member in value)
    return PART.join(VALUE.join(_atom(part) for part in one.split(".")) for one in str(value).split(","))


def _step(step: AddressStep) -> str:
    parts = [_atom(step.action), *(f"{_atom(name)}{VALUE}{_argument(value)}" for name, value in step.args)]
    if step.choice != 1:
        parts.append(f"{VALUE}{step.choice}")
    return PART.join(parts)


def _argument(value: Argument) -> str:
    return SET + VALUE.join(map(str, value)) if isinstance(value, tuple) else str(value)


# ---- reading


def parse(text: str) -> tuple[str, dict[str, str], tuple[AddressStep, ...], str]:
    """The parts of an address: model, parameters as they are written, steps, digest.

    `RefusedMessageError` says in one sentence which part is wrong.
    """
    if len(text) > MOST_LETTERS:
        raise _wrong(f"it has {len(text):,} letters, and none has more than {MOST_LETTERS:,}")
    strange = re.search(r"[^A-Za-z0-9._~%-]|%(?![0-9A-Fa-f]{2})", text)
    if strange is not None:
        raise _wrong(
            f"{strange.group()!r} at position {strange.start() + 1} is in no address; letters, digits and -._~% are"
        )
    sections = text.split(BETWEEN * 2)
    if len(sections) > 3:
        raise _wrong(f"it has {len(sections)} parts between ~~; model, steps and digest are three")
    head, steps, digest = (*sections, "", "")[:3]
    if digest and not re.fullmatch(r"[0-9a-f]{8}", digest):
        raise _wrong(f"the digest {digest!r} at its end is not 8 hexadecimal digits")
    model, *written = head.split(BETWEEN)
    if not model:
        raise _wrong("it does not begin with the name of a model")
    parameters: dict[str, str] = {}
    for one in written:
        name, point, value = one.partition(VALUE)
        if not name or not point:
            raise _wrong(f"{one!r} is no parameter, which is written NAME.VALUE")
        if unquote(name) in parameters:
            raise _wrong(f"parameter {unquote(name)} stands in it twice")
        parameters[unquote(name)] = value
    return unquote(model), parameters, tuple(_parse_steps(steps)), digest


def _parse_steps(text: str) -> Iterator[AddressStep]:
    for number, one in enumerate(text.split(BETWEEN) if text else (), start=2):
        action, *parts = one.split(PART)
        if not action:
            raise _wrong(f"step {number} has no action")
        choice = 1
        args: list[tuple[str, Argument]] = []
        for part in parts:
            name, point, value = part.partition(VALUE)
            if not point or not value:
                raise _wrong(f"step {number}: {part!r} is no argument, which is written NAME.VALUE")
            if not name:
                choice = _whole(value, number)
                continue
            if unquote(name) in dict(args):
                raise _wrong(f"step {number}: argument {unquote(name)} stands in it twice")
            args.append((unquote(name), _parse_argument(value, number)))
        yield AddressStep(unquote(action), tuple(args), choice)


def _parse_argument(text: str, step: int) -> Argument:
    if text.startswith(SET):
        members = text[len(SET) :]
        return tuple(_whole(member, step) for member in members.split(VALUE)) if members else ()
    return _whole(text, step)


def _whole(text: str, step: int) -> int:
    if not re.fullmatch(r"-?(0|[1-9][0-9]{0,8})", text):
        raise _wrong(f"step {step}: {text!r} is no whole number")
    return int(text)


def parameters_from(entry: ModelEntry, written: Mapping[str, str]) -> dict[str, Any]:
    """The parameters that an address gives, as a model takes them; they are not checked beyond their form."""
    known = {parameter.name.replace("_", "-"): parameter for parameter in entry.parameters}
    found = {}
    for name, text in written.items():
        if name not in known:
            raise _wrong(f"model {entry.name} has no parameter {name!r}; {instead_of(name, list(known), 'see its list')}")
        found[known[name].name] = _parse_value(known[name], text)
    return found


def _parse_value(parameter: Parameter, text: str) -> Any:
    if parameter.many:
        return tuple(unquote(one) for one in text.split(PART)) if text else ()
    if parameter.choices:
        return ",".join(unquote(one) for one in text.split(PART)) or None
    name = parameter.name.replace("_", "-")
    if parameter.minimum is None:
        if text not in ("on", "off"):
            raise _wrong(f"parameter {name} is on or off, not {text!r}")
        return text == "on"
    if not re.fullmatch(r"0|[1-9][0-9]{0,8}", text):
        raise _wrong(f"parameter {name} is a whole number, not {text!r}")
    return int(text)


def _wrong(what: str) -> RefusedMessageError:
    return RefusedMessageError("bad-address", f"this address cannot be read: {what}")


def parameter_from_json(parameter: Parameter, value: Any) -> Any:
    """A parameter's value as a message has it, of the type that the model takes. `ParameterError` for another type."""
    name = f"{parameter.option} {value!r}"
    if parameter.many:
        if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(one, str) for one in value):
            raise ParameterError(f"{name}: must be a list of names")
        return tuple(value)
    if parameter.choices:
        if not isinstance(value, str) and (value is not None or parameter.default is not None):
            raise ParameterError(f"{name}: must be a text")
        return value
    if parameter.minimum is None:
        if not isinstance(value, bool):
            raise ParameterError(f"{name}: must be true or false")
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        raise ParameterError(f"{name}: must be a whole number")
    return value
