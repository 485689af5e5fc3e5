"""python -m autograder: the command line, with errors as one sentence and the exit codes of the contract."""

import sys


def main() -> None:
    """Run the command line; 0 done, 1 some submission ended in an error of ours, 2 wrong use or refused."""
    from .cli import run

    sys.exit(run())


if __name__ == "__main__":
    main()
