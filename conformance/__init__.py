"""Tools that hold others against the specification: Kafka's own processes, played against by the specification."""

if __name__ != "kspec.conformance":
    raise ImportError("import kspec.conformance instead: imported as conformance, each class would be there twice")
