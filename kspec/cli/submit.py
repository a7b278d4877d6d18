"""`kspec` for `spark-submit`: `spark-submit --py-files kspec.zip submit.py check MODEL --engine spark`."""

from kspec.cli.main import main

if __name__ == "__main__":
    main()
