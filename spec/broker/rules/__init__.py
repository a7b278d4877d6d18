"""The rules of a broker, by subject. Each is a function of the values that it reads; handlers and releases combine them."""
