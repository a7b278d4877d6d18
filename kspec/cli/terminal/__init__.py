"""Tools of every command of `kspec` for the terminal and the disk: output, progress, words for mistakes."""
