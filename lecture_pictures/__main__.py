"""`python -m lecture_pictures OUT.html` writes the gallery."""

import sys
from pathlib import Path

from lecture_pictures.gallery import page


def main(arguments):
    """Exit code: 0 written, 2 wrong use."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m lecture_pictures OUT.html", file=sys.stderr)
        return 2
    Path(arguments[0]).write_text(page(), encoding="utf-8")
    print(f"gallery written to {arguments[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
