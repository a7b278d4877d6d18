"""Studies: known failures of Kafka's replication, each found anew by the checker, with the rule that repairs it."""

from kspec.model_check.reports.studies.catalogue import STUDIES
from kspec.model_check.reports.studies.study import Configuration, Study
from kspec.model_check.reports.studies.tell import StudyReport, UnfinishedError, as_markdown, as_text, tell

__all__ = ["STUDIES", "Configuration", "Study", "StudyReport", "UnfinishedError", "as_markdown", "as_text", "tell"]
