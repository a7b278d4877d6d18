"""The metadata that a broker has read, and has still to read.

The first image is the one that it has taken last. Reductions say which parts of an image it keeps, and which images replace
the one before: see `model_check.models.kafka.reductions`.
"""

from typing import TypeAlias

from kspec.model_check.models.kafka.reductions import ALL_REDUCTIONS, Reduction, is_same_to
from kspec.model_check.models.kafka.values import Image
from kspec.spec.values import BrokerId

Reading: TypeAlias = tuple[Image, ...]

NOT_READING: Reading = ()
"""The value for a broker that reads no metadata."""


def with_image(
    broker: BrokerId, reading: Reading, image: Image, reductions: frozenset[Reduction] = ALL_REDUCTIONS
) -> Reading:
    """A broker's unread metadata after a decision of the controller."""
    if reading == NOT_READING:
        return reading
    takes_its_place = Reduction.IDLE_IMAGES in reductions and is_same_to(broker, reading[-1], image)
    return (*(reading[:-1] if takes_its_place else reading), image)
