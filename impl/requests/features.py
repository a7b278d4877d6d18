"""The features of a node and of its cluster, as ApiVersions tells of them."""

from collections.abc import Iterable
from typing import Any

from impl.metadata.image import ClusterImage
from impl.wire.values import Message
from spec.controller.rules.features import FeatureRange

FIRST_WITH_ZERO = 4
"""The version of ApiVersions from which a feature may begin at level 0. Kafka: KAFKA-17011."""


def feature_fields(supported: Iterable[FeatureRange], image: ClusterImage, version: int) -> dict[str, Any]:
    """The fields of an answer to ApiVersions. **Kafka:** `ApiVersionsResponse.Builder`."""
    return {
        "supported_features": [
            Message(name=one.name, min_version=one.lowest, max_version=one.highest)
            for one in supported
            if one.lowest or version >= FIRST_WITH_ZERO
        ],
        "finalized_features_epoch": image.spec.end_offset - 1,
        "finalized_features": [
            Message(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(image.features.items())
        ],
    }
