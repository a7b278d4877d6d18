"""A run by subject: metadata, stops and starts, clients, fetching, changes of the ISR. Each part takes its own steps."""
