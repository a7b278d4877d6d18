"""What a broker has read of the metadata, and what it has still to read.

The first image is the one that it has taken last. What it keeps of an image, and which images take the place of the one
before, is a matter of reductions: see `model_check.models.kafka.reductions`.
"""

from typing import TypeAlias

from model_check.models.kafka.reductions import ALL_REDUCTIONS, Reduction, is_same_to
from model_check.models.kafka.values import Image
from spec.values import BrokerId

Reading: TypeAlias = tuple[Image, ...]

NOT_READING: Reading = ()
"""Of a broker that reads no metadata."""


def with_image(
    broker: BrokerId, reading: Reading, image: Image, reductions: frozenset[Reduction] = ALL_REDUCTIONS
) -> Reading:
    """What a broker has to read when the controller has decided something."""
    if reading == NOT_READING:
        return reading
    takes_its_place = Reduction.IDLE_IMAGES in reductions and is_same_to(broker, reading[-1], image)
    return (*(reading[:-1] if takes_its_place else reading), image)
