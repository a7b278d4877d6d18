"""Hypothesis runs without a time limit per example: a busy machine is no reason to fail."""

from hypothesis import settings

settings.register_profile("no-deadline", settings.get_profile(settings.get_current_profile_name()), deadline=None)
settings.load_profile("no-deadline")
