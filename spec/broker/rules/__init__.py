"""The rules of a broker, by subject. Each is a function of what it reads; handlers and releases put them together."""
