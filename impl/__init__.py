"""A broker that Kafka's clients talk to: the rules of `spec/` behind sockets, files and timers."""

if __name__ != "kspec.impl":
    raise ImportError("import kspec.impl instead: imported as impl, each class would be there twice")
