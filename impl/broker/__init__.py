"""The core of a broker: decoded requests and the time go in, effects come out. It has no sockets and no clock."""
