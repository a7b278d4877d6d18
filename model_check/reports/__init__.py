"""Reports on whole models: verdicts, the protocol's history, studies, releases, mutants."""
