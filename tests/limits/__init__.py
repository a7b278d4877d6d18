"""No test waits without a limit."""
