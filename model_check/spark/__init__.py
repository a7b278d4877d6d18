"""The Spark engine: the compiled engine's tables in every worker process, states in partitions, one shuffle for each level."""

from model_check.spark.engine import explore
from model_check.spark.session import SparkError, SparkSettings

__all__ = ["SparkError", "SparkSettings", "explore"]
