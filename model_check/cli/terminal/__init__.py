"""What every command of `kspec` needs of the terminal and the disk: output, progress, words for mistakes."""
