"""Models of one broker and its clients. A subject is one part of the broker, with small domains; handlers are of `spec`."""
