"""Write `impl/config/kafka-settings.json`: what Apache Kafka itself knows of the settings of a node, as data.

`python -m kspec.conformance.kafka.settings 4.4.0 --write impl/config/kafka-settings.json`
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from kspec.conformance.kafka.jars import Jars, KafkaMissingError, find_jars, java

PROGRAM = Path(__file__).with_name("Settings.java")
MARK = "SETTING\t"
SECONDS = 120
"""An emergency stop, far away."""


def settings_of(jars: Jars) -> dict[str, dict[str, Any]]:
    """Each setting's type, default, importance, and how it may change while a broker runs. Raises: `KafkaMissingError`.

    A setting without `default` must be given; one whose default is null has none to show.

    Kafka: `KafkaConfig.configDef`, `QuotaConfig.brokerQuotaConfigs`, `DynamicBrokerConfig.dynamicConfigUpdateModes`.
    """
    command = [java(), "-cp", ":".join(map(str, jars.class_path)), str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise KafkaMissingError(f"Kafka {jars.release} does not tell its settings: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, dict[str, Any]] = {}
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            name, kind, has, value, importance, changes = line.removeprefix(MARK).split("\t")
            found[name] = {"type": kind.lower(), "importance": importance.lower()}
            if has != "none":
                found[name]["default"] = value if has == "value" else None
            if changes != "null":
                found[name]["changes"] = changes
    return found


def as_text(release: str, settings: dict[str, dict[str, Any]]) -> str:
    """The file: a line for each setting."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(about)}" for name, about in sorted(settings.items()))
    return f'{{"release": {json.dumps(release)}, "settings": {{\n{lines}\n}}}}\n'


def main() -> int:
    """Ask a release, and write what it says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release")
    parser.add_argument("--write", type=Path, required=True)
    asked = parser.parse_args()
    try:
        text = as_text(asked.release, settings_of(find_jars(asked.release)))
    except KafkaMissingError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    asked.write.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
