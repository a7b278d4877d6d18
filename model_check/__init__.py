"""Models of the protocol, the engines that explore them, traces, and the command line."""
