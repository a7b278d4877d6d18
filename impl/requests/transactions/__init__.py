"""The coordinator of transactions: its log, its requests, and the markers that it sends."""
