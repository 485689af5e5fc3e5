"""What people read after a class was graded: results.json, grades.csv, index.html and a page for each student.

Everything goes to OUT/report and is made from Reports alone, so it can be made again at any time. All text that a
student wrote is data here: escaped in HTML, never a formula in a spreadsheet, never a control code in a terminal.
"""

import base64
import csv
import hashlib
import io
import json
import shutil
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup
from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from . import analysis
from .exercises import Lecture
from .files import safe_name, write_whole
from .ledger import Change, Run, has_score
from .records import STATES, Report, Verdict

SIGNS = {"graded": "✓", "repaired": "⚒", "ungradable": "✕", "error": "!"}
STYLES = {"graded": "green", "repaired": "cyan", "ungradable": "yellow", "error": "bold red"}


def write(out: Path, lecture: Lecture, run: Run, reports: Sequence[Report], not_isolated: Sequence[str] = ()) -> Path:
    """Write the report of one lecture to OUT/report, each file whole or not at all.

    Args:
        not_isolated: what the sandbox did not keep apart, a sentence each; empty when it kept everything apart.
    Returns:
        The path of index.html.
    Raises:
        StorageError: the disk is full, or the folder cannot be written; the files of the last report are still there.
    """
    folder = Path(out) / "report"
    reports = sorted(reports, key=lambda report: report.student)
    for report in reports:
        write_whole(folder / student_page(report), student_html(lecture, report))
    write_whole(folder / "results.json", json.dumps(results(lecture.name, run, reports), ensure_ascii=False, indent=1))
    write_whole(folder / "grades.csv", csv_text(grade_rows(lecture, reports)))
    write_whole(folder / "index.html", class_html(lecture, run, reports, not_isolated))
    wanted = {Path(student_page(report)).name for report in reports}
    for page in (folder / "students" / safe_name(lecture.name)).glob("*.html"):
        if page.name not in wanted:  # its submission is no longer there, or its grading was undone
            page.unlink(missing_ok=True)
    return folder / "index.html"


def remove(out: Path) -> None:
    """Take the report away: there is nothing graded any more that it could be about."""
    folder = Path(out) / "report"
    for name in ("results.json", "grades.csv", "index.html"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "students", ignore_errors=True)


def student_page(report: Report) -> str:
    """Where the page of one student stands, relative to OUT/report."""
    return f"students/{safe_name(report.lecture)}/{safe_name(report.student)}.html"


# ---- data for programs


def results(lecture: str, run: Run, reports: Sequence[Report]) -> dict:
    """What results.json holds: the contract of docs, one record for every submission found."""
    return {
        "lecture": lecture,
        "run": {
            "seed": run.seed,
            "device": run.device,
            "sandbox": run.sandbox,
            "workers": run.workers,
            "seconds": round(run.seconds, 3),
        },
        "submissions": [_submission(report) for report in reports],
    }


def _submission(report: Report) -> dict:
    return {
        "student": report.student,
        "lecture": report.lecture,
        "state": report.state,
        "reason": report.reason,
        "repairs": list(report.repairs),
        "score": report.score,
        "max_score": report.max_score,
        "seconds": round(report.seconds, 3),
        "exercises": [
            {
                "id": verdict.exercise,
                "number": verdict.number,
                "score": verdict.score,
                "points": verdict.points,
                "codes": list(verdict.codes),
                "message": verdict.message,
            }
            for verdict in report.verdicts
        ],
        "provenance": dict(report.provenance),
    }


def grade_rows(lecture: Lecture, reports: Sequence[Report]) -> list[list[str]]:
    """The rows of grades.csv, the header first: one column for each exercise; empty where there is no score yet."""
    header = ["student", "lecture", "state", "score", "max_score"]
    header += [f"{exercise.number} {exercise.id} ({points(exercise.points)})" for exercise in lecture.exercises]
    rows = [[*header, "codes", "repairs", "events", "reason", "seconds"]]
    for report in reports:
        verdicts = {verdict.exercise: verdict for verdict in report.verdicts}
        codes = [f"{verdict.number} {short_code(code)}" for verdict in report.verdicts for code in verdict.codes]
        rows.append(
            [
                report.student,
                report.lecture,
                report.state,
                points(report.score) if has_score(report) else "",
                points(report.max_score),
                *(_points_of(report, verdicts.get(exercise.id)) for exercise in lecture.exercises),
                "; ".join(codes),
                " ".join(report.repairs),
                " ".join(report.events),
                report.reason or "",
                f"{report.seconds:.2f}",
            ]
        )
    return rows


def _points_of(report: Report, verdict: Verdict | None) -> str:
    if verdict is None or verdict.by_hand or not has_score(report):
        return ""
    return points(verdict.score)


def points(value: float) -> str:
    """Points as people write them.

    >>> points(2.0), points(1 / 3), points(0.0)
    ('2', '0.33', '0')
    """
    return f"{round(value, 2):g}"


def csv_text(rows: Sequence[Sequence[str]], guard=None, **dialect) -> str:
    """Rows as CSV, quoted where needed; every cell passes through `guard`, which disarms formulas."""
    guard = guard or no_formula
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n", **dialect)
    writer.writerows([guard(cell) for cell in row] for row in rows)
    return file.getvalue()


def no_formula(cell: str) -> str:
    """The cell as text that no spreadsheet takes for a formula.

    Source: owasp.org/www-community/attacks/CSV_Injection

    >>> no_formula("=1+1"), no_formula("ada"), no_formula("-0.5")
    ("'=1+1", 'ada', '-0.5')
    """
    cell = printable(cell)
    if not cell.lstrip().startswith(("=", "+", "-", "@", "|", "%", "＝", "＋", "－", "＠")) or _is_number(cell):
        return cell
    return f"'{cell}"


def _is_number(cell: str) -> bool:
    return cell.removeprefix("-").replace(".", "", 1).isdecimal() and cell.isascii()


def printable(text: str) -> str:
    """The text without what could steer a terminal, or turn around the order in which it is read.

    >>> printable("a\\x1b[31mb"), printable("naïve 🙂")
    ('a\\\\x1b[31mb', 'naïve 🙂')
    """
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in "\n\t":
        return character
    steers = unicodedata.category(character) in ("Cc", "Cs") or unicodedata.bidirectional(character) in _TURNS
    return character.encode("unicode_escape").decode("ascii") if steers else character


_TURNS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


# ---- pages for people


def short_code(code: str) -> str:
    """A misconception's code as it is written beside the number of its exercise.

    >>> short_code("M09"), short_code("X-rows_by_label-2")
    ('M09', 'X-2')
    """
    return f"X-{code.rsplit('-', 1)[-1]}" if code.startswith("X-") else code


def _breakable(name: str) -> Markup:
    return Markup("_<wbr>").join(name.split("_"))


_PAGES = jinja2.Environment(
    loader=jinja2.PackageLoader("autograder"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_PAGES.filters.update(points=points, shown=printable, breakable=_breakable, short=short_code)
_PAGES.globals.update(signs=SIGNS, has_score=has_score)


def class_html(lecture: Lecture, run: Run, reports: Sequence[Report], not_isolated: Sequence[str] = ()) -> str:
    """The page of a whole class, in one file that loads nothing."""
    script = _PAGES.loader.get_source(_PAGES, "class.js")[0]
    same, varying = _provenance(reports)
    return _PAGES.get_template("class.html").render(
        lecture=lecture,
        run=run,
        reports=reports,
        pages={report.student: student_page(report) for report in reports},
        counts=Counter(report.state for report in reports),
        states=STATES,
        median=analysis.median_score(reports),
        items=analysis.items(lecture, reports),
        topics=analysis.topics(lecture, reports),
        bins=analysis.histogram(reports),
        waiting=sum(any(verdict.by_hand for verdict in report.verdicts) for report in reports),
        not_isolated=not_isolated,
        same=same,
        varying=varying,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def student_html(lecture: Lecture, report: Report) -> str:
    """The page of one student, fit to be handed out: no seed, no hidden input, nothing about others."""
    return _PAGES.get_template("student.html").render(lecture=lecture, report=report)


def _provenance(reports):
    """What all scores rest on alike, and how many values each of the other facts has."""
    values: dict[str, Counter] = {}
    for report in reports:
        for name, value in report.provenance.items():
            values.setdefault(name, Counter())[value] += 1
    same = {name: next(iter(found)) for name, found in values.items() if len(found) == 1 and name != "seed"}
    return same, {name: len(found) for name, found in values.items() if len(found) > 1}


# ---- a table for terminals

NARROW = 72  # columns below which the reason goes under the name


def table(reports: Sequence[Report], width: int = 100) -> Table:
    """Student, state, score and reason of each submission, for a terminal of `width` columns."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    if width < NARROW:
        shown.add_column("student, state, score, reason", overflow="fold")
        for report in reports:
            shown.add_row(_stacked(report))
        return shown
    shown.add_column("student", overflow="fold", max_width=width // 3)
    shown.add_column("state", no_wrap=True)
    shown.add_column("score", justify="right", no_wrap=True)
    shown.add_column("reason", overflow="fold")
    for report in reports:
        shown.add_row(*_texts(report), Text(_line(told(report))))
    return shown


def _texts(report: Report) -> tuple[Text, Text, Text]:
    return Text(_line(report.student)), Text(report.state, style=STYLES[report.state]), Text(_score(report))


def _stacked(report: Report) -> Group:
    reason = _line(told(report))
    rows = [Text("  ").join(_texts(report))]
    return Group(*rows, *[Padding(Text(reason, style="dim"), (0, 0, 0, 2))] * bool(reason))


def told(report: Report) -> str:
    """What is to be said of a submission in one line: the reason, or the repairs, or where points were lost."""
    if report.reason:
        return report.reason
    lost = ", ".join(_lost_in(v) for v in report.verdicts if v.score < v.points and not v.by_hand)
    waiting = ", ".join(verdict.number for verdict in report.verdicts if verdict.by_hand)
    parts = [sentence.rstrip(".") for sentence in (*report.repairs, *report.events)]
    parts += [f"lost {lost}"] if lost else []
    parts += [f"by hand {waiting}"] if waiting else []
    return "; ".join(parts)


def _lost_in(verdict: Verdict) -> str:
    return f"{verdict.number} ({', '.join(map(short_code, verdict.codes))})" if verdict.codes else verdict.number


def print_table(reports: Sequence[Report], console: Console) -> None:
    """Print the table: fitted to a terminal, one whole line a submission into a pipe."""
    if console.is_terminal:
        return console.print(table(reports, console.width))
    rows = [["student", "state", "score", "reason"]]
    rows += [[_line(report.student), report.state, _score(report), _line(told(report))] for report in reports]
    widths = [max(cell_len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        padded = [set_cell_size(cell, width) for cell, width in zip(row, widths, strict=False)]
        console.out("  ".join([*padded, row[3]]).rstrip(), highlight=False)


def changes_table(changes: Sequence[Change]) -> Table:
    """Whose score changes and by how much, as `ledger.changes` found it."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("student", overflow="fold")
    for heading in ("before", "after", "change"):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("exercises", overflow="fold")
    for change in changes:
        before, after = change.state_before or "new", change.state_after
        states = "" if before == after else f"{before} → {after}"
        moved = ", ".join(f"{number}: {_known(was)} → {_known(now)}" for number, was, now in change.exercises)
        delta = "" if change.delta is None else Text(f"{change.delta:+g}", style="green" if change.delta > 0 else "red")
        told = "; ".join(filter(None, [states, moved]))
        shown.add_row(Text(_line(change.student)), _known(change.before), _known(change.after), delta, Text(told))
    return shown


def _known(value: float | None) -> str:
    return "–" if value is None else points(value)


def _line(text: str) -> str:
    return " ".join(printable(text).split())


def _score(report: Report) -> str:
    score = points(report.score) if has_score(report) else "–"
    return f"{score} / {points(report.max_score)}"
