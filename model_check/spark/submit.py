"""What `spark-submit` runs: `spark-submit --py-files kspec.zip submit.py check MODEL --engine spark …` is `kspec check …`."""

from model_check.cli import main

if __name__ == "__main__":
    main()
