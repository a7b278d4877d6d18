from tests.model_check.conftest import command, spark

__all__ = ["command", "spark"]
