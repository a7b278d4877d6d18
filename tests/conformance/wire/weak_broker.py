"""`kspec broker` with one check turned off: `python -m tests.conformance.wire.weak_broker CHECK broker OPTIONS...`."""

import sys

import kspec.impl.requests.dispatch
import kspec.impl.server.startup  # noqa: F401 (all that calls the checks is loaded before one is turned off)
from kspec.cli.main import main
from kspec.conformance.wire.choice.weakened import checks, weakened

if __name__ == "__main__":
    check = checks()[sys.argv.pop(1)]
    with weakened(check):
        main()
