"""The bytes of a submitted file become a Draft: the cells that a student wrote, or the reason why there are none.

What is kept of a cell is its kind, its text, its nbgrader mark, its id and its pictures. Outputs, execution counts and
all other metadata are left behind: everything is run again, and nothing that stands there may steer the run.
"""

import codecs
import json
import re
import warnings
from ast import AST, parse
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

MAX_CELLS = 5000
MOST_CODE = 2_000_000  # characters, in all code cells: each is parsed, and all students wait for that
LONGEST_PARSED = 200_000  # characters
OLD_KINDS = ("heading", "html", "text")  # of nbformat 3 and older
MARKS = ("grade_id", "grade", "solution", "locked")
KINDS = ("code", "markdown", "raw")
REOPEN = "Open your notebook in Jupyter, save it, and hand in the file that ends in .ipynb."

# What a file really is, by its first bytes, whatever its name says.
SIGNATURES = (
    (b"PK\x03\x04", "a zip archive (or an Office document)"),
    (b"%PDF", "a PDF"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"\xd0\xcf\x11\xe0", "an Office document"),
    (b"{\\rtf", "a text document (RTF)"),
    (b"version https://git-lfs", "a Git LFS pointer, which stands for a file that was not uploaded"),
    (b"[InternetShortcut]", "a link to a web page"),
    (b"SQLite format 3", "a database"),
)
WEB_PAGE = re.compile(r"\s*(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html|head|\?xml|svg)\b", re.I | re.S)
BEGUN = re.compile(  # what may be left of JSON that ends in the middle of a word, a number or an escape
    r"(?:t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|-|\.|[eE][+-]?|u[0-9a-fA-F]{0,4})?"
)
SCRIPT = re.compile(r"^(?:#!.*python|# ?coding|# In ?\[|# ?%%|(?:import|from|def|class)\s+\w)", re.M)

OBJECT = re.compile(r'\{\s*+"')
# The marks that git writes at the start of a line, and the sides that the lines after it belong to.
CONFLICT_MARKS = {"<<<<<<<": ("ours",), "|||||||": (), "=======": ("theirs",), ">>>>>>>": ("ours", "theirs")}
# A string that is not closed reaches to the end, so that the search stays linear.
STRING_OR_COMMA = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|,(?=\s*+[\]}])', re.S)
MARK = "\ufeff"  # of the byte order; some tools write one more
SURROGATE = re.compile("[\ud800-\udfff]")
OTHER_LANGUAGE = re.compile(r"\s*%%(?!time|capture)")  # at the start of a cell: what follows is not run as Python here
OTHER_KERNELS = re.compile(
    r"^(ir|julia|xcpp|javascript|java|octave|matlab|sas|bash|stata|rust|scala|ijavascript)\b", re.I
)


@dataclass(frozen=True)
class Cell:
    """One cell as handed in.

    Attributes:
        kind: one of KINDS.
        mark: its nbgrader metadata; {} for an ordinary cell.
        id: the nbformat id, "" when missing or illegal.
        attachments: pictures pasted into a text cell, {name: {MIME type: base64 text}}.
    """

    kind: str
    source: str
    mark: dict[str, Any] = field(default_factory=dict)
    id: str = ""
    attachments: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def grade_id(self) -> str:
        grade_id = self.mark.get("grade_id")
        return grade_id if isinstance(grade_id, str) else ""


@dataclass(frozen=True)
class Draft:
    """The cells of a submitted file.

    Attributes:
        repairs: one sentence for everything that had to be put right to read them.
        language: what the notebook says that it is written in, when that is not Python; else "".
        reason: why there are no cells, as a sentence for the student; "" when there are.
    """

    cells: tuple[Cell, ...] = ()
    repairs: tuple[str, ...] = ()
    language: str = ""
    reason: str = ""


class Illegible(Exception):
    """Ends the reading of one file inside this module; its text is the Draft's reason."""


def draft(data: bytes) -> Draft:
    """What `data`, the content of a notebook file, holds. Never raises, whatever the bytes are."""
    repairs: list[str] = []
    try:
        text = _text(data, repairs)
        notebook = _notebook(_json(text, repairs), repairs)
        language = _language(notebook)
        if language:
            repairs.append(f"The notebook was set to the language {language!r}; it is run as Python.")
        cells = tuple(_cells(notebook, repairs))
        _demand_readable(cells)
        return Draft(cells, tuple(repairs), language)
    except Illegible as illegible:
        return Draft(repairs=tuple(repairs), reason=str(illegible))
    except (RecursionError, MemoryError):
        return Draft(
            repairs=tuple(repairs), reason=f"The file's data are nested far deeper than a notebook's. {REOPEN}"
        )


def syntax(source: str) -> AST | None:
    """The syntax tree of a cell's text without its magics; None when it does not parse or is much too long."""
    return None if len(source) > LONGEST_PARSED else _parsed(source)[0]


def syntax_error(source: str) -> str:
    """Why a cell's text is not valid Python, with the line; "" when it is."""
    if OTHER_LANGUAGE.match(source):
        return ""
    error = _parsed(source)[1]
    where = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
    return f"{where}{getattr(error, 'msg', error)}" if error is not None else ""


def _parsed(source: str) -> tuple[AST | None, Exception | None]:
    plain = re.sub(r"^([ \t]*+)(?:[%!?].*|[\w.]++\?{1,2}[ \t]*)$", r"\1pass", source, flags=re.M)
    plain = re.sub(r"^([^=\n#'\"]*+=[ \t]*+)[%!].*$", r"\1None", plain, flags=re.M)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in the student's text is no concern of ours
            return parse(plain), None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return None, error


def lines(source: str) -> list[str]:
    """The lines of a text that say something, without the blanks at their ends."""
    return [line.rstrip() for line in source.splitlines() if line.strip()]


# Bytes to text


def _text(data: bytes, repairs: list[str]) -> str:
    if not data.strip(b"\0 \t\r\n"):
        what = (
            "is empty"
            if not data.strip()
            else "holds nothing but zero bytes (it was damaged when it was saved or sent)"
        )
        raise Illegible(f"The file {what}. {REOPEN}")
    for signature, what in SIGNATURES:
        if data.startswith(signature):
            raise Illegible(f"The file is {what}, not a notebook. {REOPEN}")
    text, what = decoded(data)
    if what:
        repairs.append(what)
    if "\0" in text:
        repairs.append("The file contained zero bytes, which were removed.")
        text = text.replace("\0", "")
    return text


def decoded(data: bytes) -> tuple[str, str]:
    """The text that `data` holds in whatever encoding, without byte order marks, and a sentence where it is not UTF-8."""
    for encoding, what in _encodings(data):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        return text.lstrip(MARK), f"The file was not saved as UTF-8 but as {what}; it was converted." if what else ""
    text = data.decode("utf-8", errors="replace").lstrip(MARK)
    return text, "Some characters of the file were damaged; they were replaced by question marks."


def _encodings(data: bytes):
    """The encodings to try, in order, with what to call each; "" for UTF-8, which needs no mention."""
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        yield "utf-32", "UTF-32"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield "utf-16", "UTF-16"
    if data[:2] != b"\0\0" and data[1:2] == b"\0":
        yield ("utf-32-le", "UTF-32") if data[2:4] == b"\0\0" else ("utf-16-le", "UTF-16")
    if data[:1] == b"\0":
        yield ("utf-32-be", "UTF-32") if data[:3] == b"\0\0\0" else ("utf-16-be", "UTF-16")
    yield "utf-8", ""
    text = data.decode("utf-8", errors="replace")
    damaged = text.count("\N{REPLACEMENT CHARACTER}")
    if damaged > sum(character > "\x7f" for character in text) - damaged:  # hardly any UTF-8 in it
        yield "cp1252", "Windows-1252"
        yield "latin-1", "Latin-1"


# Text to JSON


def _json(text: str, repairs: list[str]) -> Any:
    if WEB_PAGE.match(text):
        raise Illegible(f"The file is a web page, not a notebook (exported, or saved from the browser). {REOPEN}")
    try:
        return _loads(text)
    except ValueError as error:
        problem = error
    for attempt in (_without_conflicts, _without_commas, _with_raw_controls, _without_surroundings):
        found = attempt(text, repairs)
        if found is not None:
            return found
    if _in_conflict(text):
        raise Illegible(
            "The file contains an unresolved merge conflict (<<<<<<< ======= >>>>>>>), and its two versions differ. "
            "Choose one version, check that the notebook opens in Jupyter, and hand it in again."
        )
    if not text.lstrip().startswith(("{", "[")):
        what = "a Python script" if SCRIPT.search(text) else "plain text"
        raise Illegible(f"The file is {what}, not a notebook. Export is not needed: {REOPEN[0].lower()}{REOPEN[1:]}")
    if "Unterminated string" in str(problem) or BEGUN.fullmatch(text.rstrip(), getattr(problem, "pos", 0)):
        raise Illegible(f"The file breaks off in the middle: it was cut off when it was saved or sent. {REOPEN}")
    raise Illegible(f"The file is not valid JSON ({problem}), so Jupyter cannot open it either. {REOPEN}")


def _loads(text: str, strict: bool = True) -> Any:
    return json.loads(text, parse_int=_number, parse_constant=lambda name: None, strict=strict)


def _number(digits: str) -> int:
    """An int, and 0 for one so long that only an attack writes it: no number of ours is that large."""
    return int(digits) if len(digits) < 20 else 0


def _attempt(text: str, strict: bool = True) -> Any:
    try:
        return _loads(text, strict)
    except ValueError:
        return None


def _in_conflict(text: str) -> bool:
    return all(re.search(f"^{re.escape(mark)}", text, re.M) for mark in ("<<<<<<<", "=======", ">>>>>>>"))


def _without_conflicts(text: str, repairs: list[str]) -> Any:
    """The notebook that both sides of the merge conflicts agree on, or that only one side yields."""
    if not _in_conflict(text):
        return None
    read = [found for side in ("ours", "theirs") if (found := _attempt(_side(text, side))) is not None]
    if not read or _sources(read[0]) != _sources(read[-1]):
        return None
    repairs.append("Marks of a merge conflict were removed; both versions of the cells say the same.")
    return read[0]


def _side(text: str, side: str) -> str:
    """The text with every conflict resolved in favour of one side, "ours" or "theirs"."""
    kept, sides = [], ("ours", "theirs")
    for line in text.splitlines(keepends=True):
        if line[:7] in CONFLICT_MARKS:
            sides = CONFLICT_MARKS[line[:7]]
        elif side in sides:
            kept.append(line)
    return "".join(kept)


def _sources(notebook: Any) -> list:
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        return []
    return [(cell.get("cell_type"), _joined(cell.get("source"))) for cell in cells if isinstance(cell, dict)]


def _without_commas(text: str, repairs: list[str]) -> Any:
    found = _attempt(STRING_OR_COMMA.sub(lambda match: "" if match[0] == "," else match[0], text))
    if found is not None:
        repairs.append("Stray commas in the file were removed.")
    return found


def _with_raw_controls(text: str, repairs: list[str]) -> Any:
    found = _attempt(text, strict=False)
    if found is not None:
        repairs.append("Line breaks and tabs inside the file's strings were read as they stand.")
    return found


def _without_surroundings(text: str, repairs: list[str]) -> Any:
    """The complete notebook in a file in which something that is none stands before or after it."""
    begun = OBJECT.search(text)
    head, text = (text[: begun.start()], text[begun.start() :]) if begun else ("", "")
    try:
        found, end = json.JSONDecoder(parse_int=_number, parse_constant=lambda name: None).raw_decode(text)
    except ValueError:
        return None
    if not isinstance(found, dict) or not _sources(found):
        return None
    second = _attempt(text[end:])
    if second is not None and _sources(second) != _sources(found):
        raise Illegible(f"The file holds two different notebooks, one after the other. {REOPEN}")
    if head.strip():
        repairs.append("Before the start of the notebook the file held something else, which was ignored.")
    if text[end:].strip():
        repairs.append("After the end of the notebook the file went on; the rest was ignored.")
    return found


# JSON to cells


def _notebook(found: Any, repairs: list[str]) -> dict:
    """The notebook that the JSON stands for, with its cells under "cells"."""
    if isinstance(found, str):
        repairs.append("The notebook was wrapped in a JSON string; it was unwrapped.")
        found = _attempt(found)
    if isinstance(found, list) and len(found) == 1 and isinstance(found[0], dict) and "cells" in found[0]:
        repairs.append("The notebook was wrapped in a JSON list; it was unwrapped.")
        found = found[0]
    if isinstance(found, list) and found and all(isinstance(item, dict) and "cell_type" in item for item in found):
        repairs.append("The file held a bare list of cells; it was read as a notebook.")
        found = {"cells": found}
    if not isinstance(found, dict) or not isinstance(found.get("cells", found.get("worksheets")), list):
        raise Illegible(f"The file is JSON but not a notebook: there is no list of cells in it. {REOPEN}")
    version = found.get("nbformat")
    if not isinstance(found.get("cells"), list):
        repairs.append("The notebook was in an old format (nbformat 3 or older); it was converted.")
        found = {**found, "cells": [cell for sheet in found["worksheets"] for cell in _cells_of(sheet)]}
    elif any(isinstance(cell, dict) and _is_old(cell) for cell in found["cells"]):
        repairs.append("Cells of the notebook were in an old format (nbformat 3 or older); they were converted.")
    if isinstance(version, int) and version > 4:
        repairs.append(f"The notebook says that it is of nbformat {version}, which is newer than 4; it was read as 4.")
    return {**found, "cells": [_upgraded(cell) if isinstance(cell, dict) else cell for cell in found["cells"]]}


def _cells_of(sheet: Any) -> list:
    cells = sheet.get("cells") if isinstance(sheet, dict) else None
    return cells if isinstance(cells, list) else []


def _is_old(cell: dict) -> bool:
    return cell.get("cell_type") in OLD_KINDS or bool(_old_text(cell))


def _old_text(cell: dict) -> str:
    """The key under which nbformat 3, 2 or 1 keeps the text of a cell; "" where it stands under "source"."""
    return "" if cell.get("source") is not None else next((key for key in ("input", "code", "text") if key in cell), "")


def _upgraded(cell: dict) -> dict:
    """A cell of nbformat 3 or older as one of nbformat 4; any other as it is."""
    kind, key = cell.get("cell_type"), _old_text(cell)
    made = {**cell, "source": cell[key]} if key else cell
    if kind == "heading":
        level = cell.get("level")
        hashes = "#" * (level if isinstance(level, int) and 1 <= level <= 6 else 1)
        made = {**made, "source": f"{hashes} {_joined(made.get('source'))}"}
    return {**made, "cell_type": "markdown"} if kind in OLD_KINDS else made


def _cells(notebook: dict, repairs: list[str]) -> Iterator[Cell]:
    raw = notebook["cells"]
    if len(raw) > MAX_CELLS:
        raise Illegible(
            f"The notebook has {len(raw)} cells; more than {MAX_CELLS} are not read. Delete what is not needed."
        )
    used: set[str] = set()
    for number, cell in enumerate(raw, start=1):
        if not isinstance(cell, dict):
            repairs.append(f"Item {number} of the notebook is no cell; it was left out.")
            continue
        made = _cell(cell, number, repairs)
        yield replace(made, id="" if made.id in used else made.id)
        used.add(made.id)
    if odd := sum(_is_odd(cell.get("source")) for cell in raw if isinstance(cell, dict)):
        repairs.append(
            f"The lines of {odd} cell{'s' * (odd > 1)} were stored without their ends, or as lists in lists; "
            "they were put together."
        )


def _demand_readable(cells: tuple[Cell, ...]) -> None:
    code = sum(len(cell.source) for cell in cells if cell.kind == "code")
    if code > MOST_CODE:
        raise Illegible(
            f"The notebook has {code} characters of code; more than {MOST_CODE} are not read. Data belongs into a file "
            "beside the notebook, not into its cells."
        )


def _cell(cell: dict, number: int, repairs: list[str]) -> Cell:
    kind = cell.get("cell_type")
    if kind not in KINDS:
        kind = str(kind).strip().lower() if isinstance(kind, str) else ""
        kind = kind if kind in KINDS else "code" if "outputs" in cell or "execution_count" in cell else "markdown"
        repairs.append(f"Cell {number} was of no known type; it was read as {kind}.")
    source = cell.get("source")
    if source is not None and not all(isinstance(part, str) for part in _parts(source)):
        repairs.append(f"The text of cell {number} was not stored as text; what could be read of it was kept.")
    metadata = cell.get("metadata")
    mark = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    mark = (
        {key: _clean(mark[key]) if isinstance(mark.get(key), str) else mark.get(key) for key in MARKS}
        if isinstance(mark, dict) and mark
        else {}
    )
    id = cell.get("id")
    legal = isinstance(id, str) and re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", id)
    attachments = _attachments(cell.get("attachments")) if kind != "code" else {}
    return Cell(kind, _clean(_joined(source, "\n" * _lacks_line_ends(source))), mark, id if legal else "", attachments)


def _joined(source: Any, between: str = "") -> str:
    if isinstance(source, (int, float)) and not isinstance(source, bool):
        return str(source)
    return between.join(part for part in _parts(source) if isinstance(part, str))


def _parts(source: Any) -> Iterator[Any]:
    """What stands in a list and in the lists in it, in order; what is no list is its only part."""
    waiting = [source]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting.extend(reversed(part))
        else:
            yield part


def _is_odd(source: Any) -> bool:
    """Whether a text is stored in a way that nbformat does not have, and can be read all the same."""
    return isinstance(source, list) and (any(isinstance(part, list) for part in source) or _lacks_line_ends(source))


def _lacks_line_ends(source: Any) -> bool:
    """Whether the lines of a text are stored as a list, and none but the last with its end."""
    texts = [part for part in _parts(source) if isinstance(part, str)][:-1]
    return bool(texts) and not any(text.endswith(("\n", "\r")) for text in texts)


def _clean(text: str) -> str:
    """Text that every later stage can encode: no lone surrogates, no zero bytes, one kind of line end."""
    text = SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\0", ""))
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _attachments(found: Any) -> dict[str, dict[str, str]]:
    """Well-formed attachments only."""
    if not isinstance(found, dict):
        return {}
    kept = {}
    for name, bundle in found.items():
        if isinstance(bundle, dict):
            texts = {
                _clean(kind): _clean(_joined(data)) for kind, data in bundle.items() if isinstance(data, (str, list))
            }
            if texts:
                kept[_clean(name)] = texts
    return kept


def _language(notebook: dict) -> str:
    """The language other than Python that the notebook's metadata name, or ""."""
    metadata = notebook.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    spec, info = metadata.get("kernelspec"), metadata.get("language_info")
    spec, info = spec if isinstance(spec, dict) else {}, info if isinstance(info, dict) else {}
    for named in (info.get("name"), spec.get("language")):
        if isinstance(named, str) and named.strip():
            return "" if "python" in named.lower() else _clean(named.strip()[:40])
    name = spec.get("name")
    return _clean(name[:40]) if isinstance(name, str) and OTHER_KERNELS.match(name) else ""
