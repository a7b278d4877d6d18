"""Studies that tell of a run that somebody else's bounds have shown."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kspec.model_check.core.exploration import Trace
from kspec.model_check.core.model import Model
from kspec.model_check.core.parameters import ParameterError
from kspec.model_check.models import MODELS
from kspec.model_check.reports.studies.catalogue import STUDIES
from kspec.model_check.reports.studies.study import Configuration, Study
from kspec.model_check.traces.retrace import retrace


class Match(NamedTuple):
    """A study, and the property whose run is its failure."""

    study: Study
    violated: str


def studies_of(model: Model, violated: Mapping[str, Trace]) -> Iterator[Match]:
    """The studies whose failure these runs are; `violated` has a run for each property that fails.

    The bounds stay as they are, and the rules become those of the study. With the failing rules all steps of the run must be
    possible and violate the property. With the repaired ones they must not: then what the study repairs is what the run
    needs.
    """
    for study in STUDIES:
        if study.failing.model != model.name:
            continue
        rules = {name for name in (*study.failing.parameters, *study.repaired.parameters) if _differs(study, name)}
        for prop, trace in violated.items():
            if _violates(model, trace, study.failing, rules, prop) and not _violates(
                model, trace, study.repaired, rules, prop
            ):
                yield Match(study, prop)
                break


def _differs(study: Study, name: str) -> bool:
    return study.failing.parameters.get(name) != study.repaired.parameters.get(name)


def _violates(model: Model, trace: Trace, rules: Configuration, names: set[str], invariant: str) -> bool:
    """Whether a run is one of the model with these parameters in place of its own, and violates the property in the end."""
    entry = MODELS[rules.model]
    known = {parameter.name for parameter in entry.parameters}
    given: dict[str, Any] = {name: value for name, value in model.parameters.items() if name in known - names}
    given |= {name: value for name, value in rules.parameters.items() if name in names}
    try:
        other = entry.build(given)
    except ParameterError:  # no such bounds with these rules
        return False
    prop, last = other.property_named(invariant), retrace(trace, model, other).state
    return prop is not None and last is not None and not prop.bind()(last)
