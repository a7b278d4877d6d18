"""The APIs of transactions: of their clients, and among brokers."""
