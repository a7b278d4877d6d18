"""Java's hash of a string, which Kafka uses to place a group, and whose order shows in one choice."""


def java_hash(text: str) -> int:
    """The hash of a string, 32 bits without a sign, over its UTF-16 units. **Kafka:** Java's `String.hashCode`."""
    units = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        result = (31 * result + (high << 8 | low)) & 0xFFFFFFFF
    return result


def partition_for(key: str, partitions: int) -> int:
    """The partition of a key, among as many as `partitions` says.

    **Kafka:** `GroupCoordinatorService.partitionFor`, `Utils.abs` (the sign bit is dropped from -2³¹ only).
    """
    hashed = java_hash(key)
    signed = hashed - 2**32 if hashed >= 2**31 else hashed
    return (0 if signed == -(2**31) else abs(signed)) % partitions


def in_java_order(names: tuple[str, ...]) -> tuple[str, ...]:
    """Distinct names in the order in which a small `HashMap` of Java (up to twelve entries) goes through them."""
    return tuple(sorted(names, key=lambda name: (java_hash(name) ^ java_hash(name) >> 16) & 15))
