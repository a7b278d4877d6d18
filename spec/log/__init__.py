"""Logs: the algebra that rules use, its carriers, the epoch history, the high watermark, the state of producers."""
