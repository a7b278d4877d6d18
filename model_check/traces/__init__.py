"""Values and traces as words, tables, diagrams and files; a run of one model replayed in another."""
