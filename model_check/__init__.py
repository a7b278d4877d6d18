"""Models of the protocol, the engines that explore them, traces, and the command line."""

if __name__ != "kspec.model_check":
    raise ImportError("import kspec.model_check instead: imported as model_check, each class would be there twice")
