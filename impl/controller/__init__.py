"""A controller, by itself or in a broker's process: the metadata log, served to brokers, and the requests that change it.

It is a voter of a quorum (`voting`), and may be the only one. While it is the active controller it decides, and its answers
leave when what they rest on is committed; the others read along, and refuse.
"""
