"""Studies: known failures of Kafka's replication, each found anew by the checker, with the rule that repairs it."""

from model_check.reports.studies.catalogue import STUDIES
from model_check.reports.studies.study import Configuration, Study
from model_check.reports.studies.tell import Telling, UnfinishedError, as_markdown, as_text, tell

__all__ = ["STUDIES", "Configuration", "Study", "Telling", "UnfinishedError", "as_markdown", "as_text", "tell"]
