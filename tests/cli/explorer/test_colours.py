"""The colours of leader epochs, as people see them who lack one kind of cone: neighbours are far apart, and differ in lines.

What is seen is computed by the matrices of Machado, Oliveira and Fernandes (2009) for a cone that is missing (severity 1).
"""

import re
from itertools import combinations

import pytest

from kspec.cli.explorer.page import PAGE

EPOCHS = 8
Colour = tuple[float, float, float]

SEEN: dict[str, tuple[Colour, Colour, Colour]] = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}

TO_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
WHITE = (0.95047, 1.0, 1.08883)


def _times(matrix: tuple[Colour, Colour, Colour], colour: Colour) -> Colour:
    x, y, z = (sum(factor * part for factor, part in zip(row, colour, strict=True)) for row in matrix)
    return x, y, z


def lightness_and_hue(colour: Colour, vision: str) -> Colour:
    """A colour (red, green, blue from 0 to 1) in CIELAB, as somebody with this vision sees it."""
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour)
    seen = _times(SEEN[vision], (red, green, blue))
    light = _times(TO_XYZ, (max(0, min(1, seen[0])), max(0, min(1, seen[1])), max(0, min(1, seen[2]))))
    parts = [one / white for one, white in zip(light, WHITE, strict=True)]
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in parts)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one: Colour, other: Colour, vision: str) -> float:
    """Distance of two colours: 2 is hardly seen side by side, 100 is black and white."""
    pairs = zip(lightness_and_hue(one, vision), lightness_and_hue(other, vision), strict=True)
    return float(sum((a - b) ** 2 for a, b in pairs) ** 0.5)


def from_hex(text: str) -> Colour:
    red, green, blue = (int(text[place : place + 2], 16) / 255 for place in (0, 2, 4))
    return red, green, blue


def styles() -> str:
    return (PAGE / "styles" / "colours.css").read_text("utf-8")


def hues() -> list[Colour]:
    found = dict(re.findall(r"\.epoch-(\d) \{\s*--hue: #([0-9a-f]{6});", styles()))
    assert sorted(found) == [str(epoch) for epoch in range(EPOCHS)]
    return [from_hex(found[str(epoch)]) for epoch in range(EPOCHS)]


def tints(theme: int) -> list[Colour]:
    """The grounds of records: a part of the hue on the ground of the light theme (0) or of the dark one (1)."""
    declared = re.search(r"--tint: (.*);", styles())
    assert declared
    share, ground = re.findall(r"var\(--hue\) (\d+)%, #([0-9a-f]{6})", declared[1])[theme]
    part, below = int(share) / 100, from_hex(ground)

    def mixed(hue: Colour) -> Colour:
        red, green, blue = (part * one + (1 - part) * other for one, other in zip(hue, below, strict=True))
        return red, green, blue

    return [mixed(hue) for hue in hues()]


def neighbours(colours: list[Colour], vision: str) -> float:
    """The least distance of the colours of two epochs in a row; after the last colour comes the first again."""
    return min(distance(one, other, vision) for one, other in zip(colours, [*colours[1:], colours[0]], strict=True))


def test_the_simulation_is_that_of_the_paper() -> None:
    red, green = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    assert distance(red, green, "usual") == pytest.approx(170.6, abs=0.5)
    assert distance((1.0, 1.0, 1.0), (0.0, 0.0, 0.0), "protanopia") == pytest.approx(100, abs=0.1)
    violet, blue = from_hex("8a6fd1"), from_hex("0072b2")  # two that were neighbours, and that looked alike
    assert distance(violet, blue, "usual") > 36
    assert distance(violet, blue, "deuteranopia") < 10


@pytest.mark.parametrize("vision", SEEN)
def test_epochs_in_a_row_are_told_apart_by_everybody(vision: str) -> None:
    assert neighbours(hues(), vision) > 35
    assert min(distance(one, other, vision) for one, other in combinations(hues(), 2)) > 15
    assert neighbours(tints(0), vision) > 8
    assert neighbours(tints(1), vision) > 14


def test_epochs_in_a_row_differ_by_a_line_too() -> None:
    double = re.search(r":is\(([^)]*)\):is\(\.record, \.epoch\) \{\s*border-left-style: double", styles())
    assert double
    assert re.findall(r"epoch-(\d)", double[1]) == ["1", "3", "5", "7"]
