"""What is told of models as a whole: verdicts, the protocol's history, studies, releases, mutants."""
