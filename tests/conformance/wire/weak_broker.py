"""`kspec broker` with one check turned off: `python -m tests.conformance.wire.weak_broker CHECK broker OPTIONS...`."""

import sys

import impl.requests.dispatch
import impl.server.startup  # noqa: F401 (all that calls the checks is loaded before one is turned off)
from conformance.wire.choice.weakened import checks, weakened
from model_check.cli.main import main

if __name__ == "__main__":
    check = checks()[sys.argv.pop(1)]
    with weakened(check):
        main()
