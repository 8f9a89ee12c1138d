"""`python -m modelgauge`: the same as the `modelgauge` command."""

from modelgauge.cli.entry import main

if __name__ == "__main__":
    main()
