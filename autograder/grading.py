"""A class: what is kept, what is graded anew, and where it is written.

    found folders -> Submissions -> (kept by the ledger | farm) -> ledger -> gradebook -> report

The ledger is written before the gradebook; whatever a crash keeps from the gradebook is entered by the next call.
"""

import contextlib
import logging
import os
import re
import secrets
import shutil
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.prompt import Confirm

from . import archive, checks, export, farm, gradebook, intake, kernels, ledger, report, sandbox
from .database import kept_open, parsed_url, shown_url
from .errors import CourseError, EngineError, GradebookError, StorageError, UsageError
from .exercises import Lecture, lecture_names, load_lecture
from .files import demand_writable, storage_error
from .grade import grade_submission
from .identities import Identity, identities, remember
from .intake import Found
from .ledger import Ledger, Run
from .records import Report, Submission, Verdict
from .settings import Settings

log = logging.getLogger(__name__)

OUTPUTS = ("report", "submitted", "autograded", "collected")  # what is written below OUT


def grade_class(name: str, path: Path, settings: Settings, *, regrade: bool, out: Console, err: Console) -> int:
    """Grade every submission in `path` and write ledger, gradebook and report.

    Returns:
        How many submissions ended in state "error".
    Raises:
        UsageError: nothing to grade there, an unknown lecture, no such scheduler.
        Refused: there is no sandbox and the code is not trusted.
        CourseError: the lecture is not released.
        GradebookError, StorageError: what was graded is kept; the next call goes on.
    """
    lecture = load_lecture(name, settings.solutions)
    parsed_url(settings.db_url)  # one that cannot be is said before any work
    released = _released(lecture, settings)
    _demand_checks(lecture)
    found = intake.find(path, name)
    _demand_students(found, settings)
    demand_writable(settings.out, OUTPUTS)
    machines = farm.machines(settings)
    level = sandbox.weakest(machine.level for machine in machines.values())
    if settings.device == "cuda":
        _demand_cuda(machines)
    _say_what_is_not_isolated(level, err)
    _say_what_is_not_encrypted(settings, err)
    started = time.monotonic()
    with ledger.writing(settings.out, name) as book:
        _keep_what_was_handed_in(found, settings)
        remember(settings.out, name, {f.student: Identity("", f.original, f.original) for f in found if _renamed(f)})
        gradebook.ensure_assignment(lecture, settings)
        seed = _seed(settings, book)
        run = book.begin(seed=seed, device=settings.device, sandbox=level.name, workers=settings.workers)
        for late in book.unentered():
            _enter(late, lecture, settings, book, run)
        walk = _Walk(lecture, settings, book, run, released, found, regrade)
        if regrade:
            book.unstage()  # what an interrupted regrade left
        with kept_open(settings.db_url), _progress(err) as bar:
            walk.through(bar)
        if regrade:
            _agree_and_save(walk, out, err)
        run = book.finish(run, time.monotonic() - started)
        page, reports = _report(lecture, book, run, level.missing, settings)
    report.print_table(reports, out)
    _say_where(page, settings, reports, walk, err)
    students = {folder.student for folder in found}
    return sum(r.state == "error" for r in reports if r.student in students)


def _report(lecture: Lecture, book: Ledger, run: Run, not_isolated, settings: Settings) -> tuple[Path, list[Report]]:
    """Write the report of everyone who is graded, whoever was looked at now; its page and its Reports, by student."""
    reports = sorted(book.reports().values(), key=lambda report: report.student)
    reports = _with_points_by_hand(reports, lecture, settings)
    return report.write(settings.out, lecture, run, reports, not_isolated), reports


def _renamed(folder: Found) -> bool:
    return folder.original != folder.student


class _Walk:
    """One pass over the submissions found."""

    def __init__(self, lecture, settings, book, run, released, found, regrade):
        self.lecture, self.settings, self.book, self.run = lecture, settings, book, run
        self.released, self.found, self.regrade = released, found, regrade
        self.keys: dict[str, tuple[str, str]] = {}  # student: (key, attempt) of what is under way
        self.below = ledger.foundations(lecture)
        self.seeds = book.seeds()
        self.collected = identities(settings.out, lecture.name)
        self.kept = 0
        self.unread: list[Report] = []  # folders that could not be read now

    def through(self, bar: Progress) -> None:
        task = bar.add_task(self.lecture.name, total=len(self.found))
        groups: dict[int, list[Found]] = {}  # one, unless --seed was another one in between
        for folder in self.found:
            groups.setdefault(self.seed(folder.student), []).append(folder)
        for seed, folders in groups.items():
            todo = self.changed(folders, seed, lambda: bar.advance(task))
            graded = farm.graded(grade_submission, todo, self.lecture, self.settings, seed, warm=kernels.warmed)
            with contextlib.closing(graded):
                for done in graded:
                    key, attempt = self.keys.pop(done.student)
                    self.keep(done, key, attempt)
                    bar.advance(task)
        for failed in self.unread:
            self.keep(failed, "", "")

    def seed(self, student: str) -> int:
        """The private seed of a student's cases: as set, else the one they were made with before, else the run's."""
        return self.settings.seed or self.seeds.get(student, self.run.seed)

    def keep(self, done: Report, key: str, attempt: str) -> None:
        """Write a Report; of a regrade, put it aside until someone agrees."""
        if self.regrade:
            self.book.stage(done, key, attempt)
        else:
            save(done, key, attempt, self.lecture, self.settings, self.book, self.run)

    def changed(self, folders: list[Found], seed: int, advance) -> Iterator[Submission]:
        """The submissions that are to be graded; the others are counted as kept."""
        for folder in folders:
            try:
                self.demand_unpacked(folder)
                submission = self.told_what_lacks(intake.read(folder, self.lecture, self.released, self.settings))
            except EngineError as error:
                self.unread.append(
                    farm.error_report(self.lecture, Submission(folder.student, self.lecture.name, None), str(error))
                )
                advance()
                continue
            key = ledger.score_key(submission, self.lecture, self.settings, seed, self.below)
            if not self.regrade and self.book.kept(submission.student, key):
                self.kept += 1
                advance()
                continue
            self.keys[submission.student] = (key, submission.digest)
            yield submission

    def demand_unpacked(self, folder: Found) -> None:
        """An empty folder is no zero where `collect` could not unpack what was handed in."""
        why = self.collected.get(folder.student, Identity()).lost
        if why and not folder.problem and not intake.list_files(folder.folder).sizes:
            raise EngineError(f"What was handed in could not be unpacked ({why}): {archive.AGAIN}.")

    def told_what_lacks(self, submission: Submission) -> Submission:
        """What `collect` left out is said with the score; where there is none without it, nobody knows what it was worth."""
        left_out = self.collected.get(submission.student, Identity()).left_out
        if left_out and submission.ungradable:
            raise EngineError(f"{submission.ungradable} But {left_out} To have it graded, {archive.AGAIN}.")
        return replace(submission, repairs=(*submission.repairs, left_out)) if left_out else submission


def save(done: Report, key: str, attempt: str, lecture: Lecture, settings: Settings, book: Ledger, run: Run) -> None:
    """One Report into the ledger, then into the gradebook."""
    _enter(done, lecture, settings, book, run, note=lambda held: book.save(run, done, key, attempt, held))


def _enter(done: Report, lecture: Lecture, settings: Settings, book: Ledger, run: Run, note=None) -> None:
    """One Report into the gradebook; one that cannot be entered becomes an error and is graded anew: it stops no other."""
    try:
        gradebook.write(done, lecture, settings, note=note)
    except (GradebookError, StorageError):
        raise
    except Exception as error:
        if done.state == "error":
            raise
        return save(_not_entered(done, error, lecture), "", "", lecture, settings, book, run)
    book.entered(done.student)


def _not_entered(done: Report, error: Exception, lecture: Lecture) -> Report:
    log.error("%s could not be entered: %s", done.student, "".join(traceback.format_exception(error)))
    sentence = f"A fault in the autograder while its score was entered: {type(error).__name__}: {error}"
    return farm.error_report(lecture, Submission(done.student, lecture.name, None), sentence)


def _agree_and_save(walk: _Walk, out: Console, err: Console) -> None:
    """Show whose score a regrade changes; write it when someone agrees, or when there is nobody to ask."""
    staged = walk.book.staged()
    moved = ledger.changes(walk.book.reports(), {student: record.report for student, record in staged.items()})
    out.print(report.changes_table(moved) if moved else "No score changes.")
    if moved and sys.stdin.isatty() and not _agreed(err):
        walk.book.unstage()
        raise UsageError("nothing was written; the scores are as they were")
    for student in staged:
        record = walk.book.staged_record(student)
        save(record.report, record.key, record.attempt, walk.lecture, walk.settings, walk.book, walk.run)
    walk.book.unstage()


def _agreed(err: Console) -> bool:
    try:
        return Confirm.ask("Write these scores?", console=err)
    except EOFError:  # Ctrl-D
        return False


def report_class(name: str | None, settings: Settings, *, out: Console, err: Console) -> None:
    """Write the report of a lecture again, of every graded lecture by default, and print its table."""
    for lecture, book in _graded_lectures(name, settings):
        run = book.last_run()
        page, reports = _report(lecture, book, run, sandbox.MISSING.get(run.sandbox, ()), settings)
        report.print_table(reports, out)
        err.print(f"Report: {page}", highlight=False, soft_wrap=True)


def export_class(name: str | None, settings: Settings, lms: str | None) -> str:
    """The grades of one lecture, or of every graded one, as CSV text; in the format that `lms` imports, if it is given.

    Points given by hand count; who waits for some is left out of what an LMS imports.
    """
    texts = []
    for lecture, book in _graded_lectures(name, settings):
        reports = _with_points_by_hand(sorted(book.reports().values(), key=lambda r: r.student), lecture, settings)
        if lms is None:
            texts.append(report.csv_text(report.grade_rows(lecture, reports)))
        else:
            scores, people = gradebook.scores(lecture, settings), identities(settings.out, lecture.name)
            rows = export.export_rows(lms, scores, lecture.points, lecture.name, people)
            texts.append(export.export_text(lms, rows))
    return "\n".join(texts)


def feedback_class(name: str | None, settings: Settings, *, err: Console) -> None:
    """Write a feedback page for every graded submission."""
    graded, failed = _graded_lectures(name, settings), []
    demand_writable(settings.out, ("feedback",))
    for lecture, _ in graded:
        try:
            pages = gradebook.feedback(lecture, settings)
        except GradebookError as error:  # of one lecture, or of one student
            failed.append(str(error))
            continue
        err.print(
            f"Feedback on {lecture.name}: {_count(len(pages), 'page')} in {settings.out / 'feedback'}",
            highlight=False,
            soft_wrap=True,
        )
    if failed:
        raise GradebookError(" ".join(failed))


def undo_last(settings: Settings, *, err: Console) -> None:
    """Take the last grade run in OUT back, in ledger, gradebook and report."""
    last = ledger.last_run(settings.out)
    if last and last.lecture not in lecture_names(settings.solutions):
        raise UsageError(
            f"the last run is one of {last.lecture}, which is no longer in {settings.solutions}: put its folder back, then "
            "call undo again"
        )
    lecture = last and load_lecture(last.lecture, settings.solutions)

    def restore(_: str, student: str, snapshot) -> None:
        gradebook.restore(snapshot, lecture, settings)

    undone = ledger.undo(settings.out, restore)
    err.print(
        f"Taken back: the run of {undone.run.started} on {undone.run.lecture}, {_count(len(undone.students))}.",
        highlight=False,
    )
    if Ledger(settings.out, undone.run.lecture).last_run():
        report_class(undone.run.lecture, settings, out=Console(quiet=True), err=err)
    else:
        report.remove(settings.out)


def _graded_lectures(name: str | None, settings: Settings) -> list[tuple[Lecture, Ledger]]:
    if name:
        load_lecture(name, settings.solutions)  # a typing error is said as such
    books = [Ledger(settings.out, n) for n in ([name] if name else lecture_names(settings.solutions))]
    graded = [(load_lecture(book.lecture, settings.solutions), book) for book in books if book.last_run()]
    if not graded:
        raise UsageError(
            f"nothing{f' of {name}' if name else ''} was graded into {settings.out} yet; call autograder grade first"
        )
    return graded


def _with_points_by_hand(reports: list[Report], lecture: Lecture, settings: Settings) -> list[Report]:
    """The Reports with the points that people gave in formgrader in place of ours."""
    given = gradebook.points_by_hand(lecture, settings)

    def final(report: Report, verdict: Verdict) -> Verdict:
        points = given.get((report.student, verdict.exercise))
        if points is None:
            return verdict
        message = "Graded by hand." if verdict.by_hand else f"{verdict.message} Changed by hand.".strip()
        return replace(verdict, score=points, by_hand=False, message=message)

    return [replace(r, verdicts=tuple(final(r, v) for v in r.verdicts)) for r in reports]


def _released(lecture: Lecture, settings: Settings) -> str:
    path = settings.course / lecture.name / f"{lecture.name}.ipynb"
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        why = f"there is no {path}"
    except UnicodeDecodeError as error:
        why = f"{path} is not UTF-8 ({error})"
    raise CourseError(f"{lecture.name} is not released: {why}. Call autograder release {lecture.name}")


def _demand_checks(lecture: Lecture) -> None:
    """Every submission runs with the visible checks beside it."""
    path = lecture.folder / checks.FILE
    if not path.is_file():
        step = f"python -m autograder.notebooks {lecture.name}, then autograder release {lecture.name}"
        raise CourseError(f"{lecture.name} has no visible checks: there is no {path}. Call {step}")


def _seed(settings: Settings, book: Ledger) -> int:
    """The private seed: as set, else that of the last run, whose hidden cases are then the same again, else a new one."""
    last = book.last_run()
    return settings.seed or (last.seed if last else secrets.randbits(52) + 1)


def _demand_students(found: list[Found], settings: Settings) -> None:
    """Folders of the course, or of an earlier call's results, are no students'."""
    kept = (settings.out / "submitted").resolve()
    for folder in found:
        if folder.problem:  # a link is not followed
            continue
        place = folder.folder.resolve()
        for ours in (settings.solutions, settings.course, settings.out):
            if place.is_relative_to(ours.resolve()) and kept not in place.parents:
                raise UsageError(
                    f"{folder.folder} is taken for a student's, but lies in {ours}, which is this course's own; give the folder "
                    "of what was handed in, and as --out another one"
                )


def _keep_what_was_handed_in(found, settings: Settings) -> None:
    """A copy under OUT/submitted, where nbgrader and formgrader look for it: of as much as is read of a submission."""
    kept_here = (settings.out / "submitted").resolve()
    for folder in found:
        target = settings.out / "submitted" / folder.student / folder.lecture
        if folder.problem or kept_here in folder.folder.resolve().parents:
            continue  # a copy of what lies there already would be one more student to the next call
        try:
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            for path in _copied(folder, int(settings.submission_mib * 2**20)):
                _copy(folder.folder / path, target / path)
            _put_time_right(target / "timestamp.txt")
        except OSError as error:
            raise storage_error(target, error) from error


def _copied(folder: Found, limit: int) -> Iterator[str]:
    """The files that are copied, notebooks first and small ones before large ones: what is larger would fill the disk."""
    try:
        sizes = intake.list_files(folder.folder).sizes
        if not any(path.lower().endswith(".ipynb") for path in sizes):
            sizes |= intake.list_files(folder.folder, aside=True).sizes
    except (EngineError, OSError) as error:  # said when it is read
        log.info("%s: nothing could be copied: %s", folder.student, error)
        return
    left = 2 * limit
    for path in sorted(sizes, key=lambda path: (not path.lower().endswith(".ipynb"), sizes[path], path)):
        if sizes[path] <= left:
            left -= sizes[path]
            yield path
        else:
            log.info("%s: %s was not copied: it is too large", folder.student, path)


def _copy(source: Path, target: Path) -> None:
    if not os.access(source, os.R_OK):  # said when it is read
        log.info("%s could not be copied", source)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)


def _put_time_right(path: Path) -> None:
    """A timestamp.txt that nbgrader cannot read would stop formgrader for the whole class: written anew, or removed."""
    if not path.is_file():
        return
    handed_in = intake.handed_in_at({path.name: (content := path.read_bytes())})
    if handed_in and not NBGRADERS_TIME.fullmatch(content):
        path.write_text(f"{handed_in.replace(tzinfo=None)} UTC\n", encoding="utf-8")
    if not handed_in:
        path.unlink()


NBGRADERS_TIME = re.compile(rb"\d{4}-\d\d-\d\d[ -~]{0,90}\s{0,9}")


def _demand_cuda(machines: dict[str, farm.Machine]) -> None:
    without = [address for address, machine in machines.items() if not machine.gpu]
    if without:
        where = "this machine" if without == ["here"] else f"the worker at {without[0]}"
        raise UsageError(
            f"--device cuda: torch sees no GPU on {where}; grade with --device cpu, the scores are the same"
        )


def _say_what_is_not_isolated(level, err: Console) -> None:
    if level.missing:
        err.print(
            f"Sandbox level {level.name}. Not isolated: {' '.join(level.missing)}",
            highlight=False,
            soft_wrap=True,
            style="yellow",
        )


def _say_what_is_not_encrypted(settings: Settings, err: Console) -> None:
    parsed = urlsplit(settings.scheduler)
    if settings.scheduler and parsed.scheme != "tls" and parsed.hostname not in ("127.0.0.1", "localhost", "::1"):
        err.print(
            f"The scheduler {settings.scheduler} is reached without TLS: whoever reaches it can read submissions and "
            "run code on its workers. See docs/cluster.md.",
            highlight=False,
            soft_wrap=True,
            style="yellow",
        )


def _say_where(page: Path, settings: Settings, reports, walk: _Walk, err: Console) -> None:
    kept = f", {walk.kept} of them unchanged and kept" if walk.kept else ""
    others = len(reports) - len(walk.found)
    more = f" {others} more were graded before and stand in the report." if others > 0 else ""
    err.print(f"\n{_count(len(walk.found))} of {walk.lecture.name}{kept}.{more}", highlight=False)
    err.print(f"Report:     {page}", highlight=False, soft_wrap=True)
    err.print(f"Gradebook:  {shown_url(settings.db_url)}", highlight=False, soft_wrap=True)


def _count(number: int, what: str = "submission") -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def _progress(err: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=err,
        refresh_per_second=2,  # each one takes a millisecond or so from the kernels, ten a second are the default
    )
