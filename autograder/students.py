"""How a student is named: an id that the file system, a URL and nbgrader can hold, made from the name of a folder."""

import hashlib
import re
import unicodedata

LONGEST = 80  # characters; nbgrader's column holds 128, a file name 255 bytes

# nbgrader globs folder names ([ ] * ?), splits on commas and plus signs, strips blanks at the ends, puts ids into URLs
# (/ % # \) and on the command line (a leading dash); a control character or a quote breaks tables and logs; Windows
# refuses : " < > |.
REFUSED = re.compile(
    r"""[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069/\\%#?*\[\]{}+,;:'"`<>|$&!=^~()]"""
)
RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.I)  # Windows' device names


def student_id(name: str) -> str:
    """The id of the student whose folder is called `name`: the same for the same name, another for another.

    A name that needs no change is kept. Any other is made safe and gets a mark that depends on the whole name, so that
    only two spellings of the same letters (composed and decomposed accents) share an id.
    >>> student_id("Åsa Öberg"), student_id("o'neil+1")
    ('Åsa Öberg', 'o_neil_1-6545d9')
    """
    composed = unicodedata.normalize("NFC", name)
    safe = REFUSED.sub("_", composed)
    safe = re.sub(r"\s", " ", safe).strip(" .").lstrip("-")
    if RESERVED.match(safe) or not safe:
        safe = f"_{safe}"
    if safe == composed and len(safe) <= LONGEST and len(safe.encode()) <= 2 * LONGEST:
        return safe
    while len(safe) > LONGEST or len(safe.encode()) > 2 * LONGEST:
        safe = safe[:-1]
    return marked(safe.rstrip(), name)


def marked(id: str, name: str) -> str:
    """`id` with a mark of six hex digits that depends on `name`."""
    return f"{id}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"
