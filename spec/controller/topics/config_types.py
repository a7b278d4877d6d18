"""Types of settings: the values that each allows, and how a text is read as one."""

from typing import NamedTuple

from kspec.spec.messages.topics.describe_configs import ConfigType

LOWEST_INT, HIGHEST_INT = -(2**31), 2**31 - 1
LOWEST_LONG, HIGHEST_LONG = -(2**63), 2**63 - 1


class ConfigKey(NamedTuple):
    """A setting: its default as text, its range or its words, and the broker's settings that stand behind it.

    `also`: a number that is legal besides the range. Of several synonyms the first that is set counts. Kafka:
    `ConfigDef.ConfigKey`, `ServerTopicConfigSynonyms`.
    """

    name: str
    config_type: ConfigType
    default: str
    lowest: float | None = None
    highest: float | None = None
    words: tuple[str, ...] = ()
    also: int | None = None
    synonyms: tuple[str, ...] = ()
    is_replica_list: bool = False


def wrong_with_value(key: ConfigKey, text: str) -> str | None:
    """The fault of a text as the value of a setting, `None` if it has none.

    **Kafka:** `ConfigDef.parseType`, `ConfigDef.Range`, `ConfigDef.ValidList`, `ConfigDef.ValidString`,
    `ThrottledReplicaListValidator`.
    """
    text = text.strip()
    match key.config_type:
        case ConfigType.BOOLEAN:
            legal = text.lower() in ("true", "false")
            return None if legal else f"{key.name} is true or false, not '{text}'"
        case ConfigType.STRING:
            return None if text in key.words else f"{key.name} is one of {', '.join(key.words)}, not '{text}'"
        case ConfigType.LIST:
            return _wrong_with_list(key, text)
    number = number_of(key.config_type, text)
    if number is None:
        return f"{key.name} is a number ({key.config_type.name.lower()}), not '{text}'"
    return None if number == key.also else _out_of_range(key, number)


def _wrong_with_list(key: ConfigKey, text: str) -> str | None:
    items = items_of(text)
    if key.is_replica_list:
        legal = text == "*" or all(_is_replica(item) for item in items)
        return None if legal else f"{key.name} is '*' or a list of PARTITION:BROKER, not '{text}'"
    strange = [item for item in items if item not in key.words]
    return f"{key.name} is a list of {', '.join(key.words)}, not '{text}'" if strange else None


def _is_replica(item: str) -> bool:
    parts = item.split(":")
    return len(parts) == 2 and all(part.isascii() and part.isdigit() for part in parts)


def items_of(text: str) -> tuple[str, ...]:
    """The entries of a list. **Kafka:** `ConfigDef.parseType` of a LIST."""
    return tuple(item.strip() for item in text.split(",")) if text.strip() else ()


def number_of(config_type: ConfigType, text: str) -> float | None:
    """The number that a text is, `None` if it is none of this type."""
    digits = text.strip().removeprefix("-").removeprefix("+") if text.strip()[:2] not in ("-+", "+-") else ""
    if config_type == ConfigType.DOUBLE:
        mantissa, _, exponent = digits.lower().partition("e")
        whole, _, fraction = mantissa.partition(".")
        plain = exponent.removeprefix("-").removeprefix("+")
        readable = _are_digits(whole + fraction) and (_are_digits(plain) or "e" not in digits.lower())
        return float(text) if readable else None
    if not _are_digits(digits):
        return None
    lowest, highest = (LOWEST_INT, HIGHEST_INT) if config_type == ConfigType.INT else (LOWEST_LONG, HIGHEST_LONG)
    number = int(text)
    return number if lowest <= number <= highest else None


def _are_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _out_of_range(key: ConfigKey, number: float) -> str | None:
    if key.lowest is not None and number < key.lowest:
        return f"{key.name} is at least {key.lowest}, and {number} is less"
    if key.highest is not None and number > key.highest:
        return f"{key.name} is at most {key.highest}, and {number} is more"
    return None
