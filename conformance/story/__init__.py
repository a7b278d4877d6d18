"""Studies as stories: real processes go through the run of a study, step by step."""
