"""What was graded, one file a submission: kept by the next call, taken back by undo, whole after a crash at any moment.

    OUT/report/submissions/LECTURE/STUDENT.json   the Report that counts, with the key it was graded under
    OUT/report/staged/LECTURE/STUDENT.json        a regrade's Reports, until someone agrees to them
    OUT/report/runs/RUN/run.json                  a grade run: when, seed, device, sandbox
    OUT/report/runs/RUN/before/STUDENT.json       what stood there before this run, in the ledger and in the gradebook
    OUT/report/runs/RUN/entered/STUDENT           the gradebook has it, too

Saving a Report first notes what it replaces, then puts the new file in the place of the old one. The gradebook comes
after that; what a crash kept from it is found by `unentered`. STUDENT is `files.safe_name` of the student's name,
which is arbitrary text.
"""

import ast
import contextlib
import datetime
import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .errors import StorageError, UsageError
from .exercises import Lecture
from .files import make_empty, record_name, records, remove_parts, safe_name, storage_error, write_whole
from .records import Report, Submission, Verdict
from .settings import Settings

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
    import msvcrt

log = logging.getLogger(__name__)

SCORE_FROM = "score from run"  # in the provenance of an error: the run whose points are shown
KEPT_STATES = ("graded", "repaired", "ungradable")
RUNS_KEPT = 20  # older runs can no longer be taken back
WRITTEN = ("report", "autograded")  # folders of OUT that only the holder of its lock writes in


@dataclass(frozen=True)
class Run:
    """One grade run.

    Attributes:
        id: sorts by time.
        started: for people, e.g. "2026-03-01 10:15 UTC".
        seed: private seed of its hidden cases.
        sandbox: the level that held, in words.
        seconds: wall time, 0 while it has not ended.
    """

    id: str
    started: str
    lecture: str
    seed: int
    device: str
    sandbox: str
    workers: int
    seconds: float = 0.0


@dataclass(frozen=True)
class Record:
    """One line of the ledger.

    Attributes:
        key: of everything the score rests on, see `score_key`.
        attempt: digest of what was handed in.
        run: id of the run that graded it.
    """

    report: Report
    key: str
    attempt: str
    run: str


@dataclass(frozen=True)
class Change:
    """How one student's result differs between two gradings; `before` and `after` are None where there is no score.

    Attributes:
        exercises: (number, points before, points after) of those whose points differ.
    """

    student: str
    before: float | None
    after: float | None
    state_before: str | None
    state_after: str
    exercises: tuple[tuple[str, float | None, float | None], ...] = ()

    @property
    def delta(self) -> float | None:
        return None if self.before is None or self.after is None else self.after - self.before


def has_score(report: Report) -> bool:
    """Whether its points are a result. Our own failure is never a zero; it may show the points of an earlier run."""
    return report.state != "error" or SCORE_FROM in report.provenance


# ---- what a score rests on

MATTER = ("device", "cell_seconds", "submission_seconds", "memory_mib", "trust_code")  # settings
AFTER_THE_SCORE = (  # modules whose text decides no score: a change in them regrades nobody
    "__main__", "analysis", "archive", "backlog", "bundle", "cli", "database", "doctor", "export", "farm", "files", "gradebook",
    "grading", "handin", "identities", "leftovers", "ledger", "nbgrader_plugin", "notebooks", "release", "report", "sample",
)  # fmt: skip


def score_key(submission: Submission, lecture: Lecture, settings: Settings, seed: int, below: Mapping[str, str]) -> str:
    """SHA-256, as hex, over everything a score rests on: two gradings under one key give the same score.

    Args:
        seed: the private one of the hidden cases, not the setting, which may leave it to be drawn.
        below: the foundations() of the lecture, which all its submissions share.
    """
    facts = {
        "handed in": submission.digest,
        "notebook": _sha(submission.notebook),
        "ungradable": submission.ungradable,
        "repairs": submission.repairs,
        "lecture": lecture.name,
        "seed": seed,
        "settings": {name: getattr(settings, name) for name in MATTER},
        **below,
    }
    return _sha(json.dumps(facts, sort_keys=True))


def foundations(lecture: Lecture) -> dict[str, str]:
    """What the scores of a lecture rest on besides what is handed in: its exercises, what these import, the engine."""
    text = (lecture.folder / "exercises.py").read_text(encoding="utf-8")
    imported = sorted(name for name in _imports(text) if name not in sys.stdlib_module_names and name != "autograder")
    engine = [path for path in sorted(Path(__file__).parent.glob("*.py")) if path.stem not in AFTER_THE_SCORE]
    return {
        "exercises": lecture.digest,
        "autograder": _sha(*(path.read_text(encoding="utf-8") for path in engine)),
        "torch": importlib.metadata.version("torch"),
        **{name: _version(name) for name in imported},
    }


def _imports(text: str) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
    return {module.split(".")[0] for module in modules}


def _version(package: str) -> str:
    """The release of a package that was installed under its own name, else a digest of its text."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        spec = importlib.util.find_spec(package)
        if spec is None:
            return "missing"
        folders = [Path(place) for place in spec.submodule_search_locations or ()]
        paths = [path for folder in folders for path in sorted(folder.rglob("*.py"))] or [Path(spec.origin)]
        return _sha(*(path.read_text(encoding="utf-8", errors="replace") for path in paths))


def _sha(*texts: str | None) -> str:
    digest = hashlib.sha256()
    for text in texts:
        data = (text or "").encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


# ---- the ledger


@dataclass(frozen=True)
class Ledger:
    """The ledger of one lecture in OUT. Reading needs no lock; whoever writes does so inside `writing`."""

    out: Path
    lecture: str

    # -- reading

    def record(self, student: str) -> Record | None:
        """The line of one student, with the executed notebook; None when there is none."""
        return _read_record(self._submissions / record_name(student))

    def reports(self) -> dict[str, Report]:
        """Every Report that counts, by student, without the executed notebooks."""
        return _reports(self._submissions)

    def seeds(self) -> dict[str, int]:
        """The private seed that each student's hidden cases were made with, where a Report tells it."""
        told = {student: report.provenance.get("seed", "") for student, report in self.reports().items()}
        return {student: int(seed) for student, seed in told.items() if seed.isdecimal()}

    def kept(self, student: str, key: str) -> Report | None:
        """The Report of one student if nothing that it rests on has changed, without the executed notebook."""
        record = self.record(student)
        return _light(record.report) if record and record.key == key and record.report.state in KEPT_STATES else None

    def unentered(self) -> Iterator[Report]:
        """The Reports that a crash kept from the gradebook, with their notebooks; write them there, then `entered`."""
        for path in sorted(self._submissions.glob("*.json")):
            record = _read_record(path)
            if record is None or record.report.state not in KEPT_STATES:
                continue
            run = _runs(self.out) / record.run
            if run.is_dir() and not (run / "entered" / path.stem).exists():
                yield record.report

    def last_run(self) -> Run | None:
        """The latest run of this lecture that was not taken back: its seed makes the same hidden cases again."""
        runs = [run for run in _read_runs(self.out) if run.lecture == self.lecture]
        return runs[-1] if runs else None

    # -- writing

    def begin(self, *, seed: int, device: str, sandbox: str, workers: int) -> Run:
        """A new run, or the last one if it was interrupted and is continued under the same conditions."""
        last, now = self.last_run(), datetime.datetime.now(datetime.UTC)
        wanted = {"lecture": self.lecture, "seed": seed, "device": device, "sandbox": sandbox}
        if last and last.seconds == 0 and wanted.items() <= asdict(last).items():
            return replace(last, workers=workers)
        _prune(self.out)
        stamp = now.strftime("%Y%m%dT%H%M%S.%f")
        return Run(f"{stamp}-{secrets.token_hex(2)}", f"{now:%Y-%m-%d %H:%M} UTC", workers=workers, **wanted)

    def save(self, run: Run, report: Report, key: str, attempt: str, snapshot: Any = None) -> Report:
        """Put a Report in the place of the student's last one. Returns it as it counts now.

        Args:
            snapshot: what the gradebook held of this student before, as JSON values; handed back by `undo`.
        """
        folder, name = _runs(self.out) / run.id, record_name(report.student)
        if not (folder / "run.json").exists():
            write_whole(folder / "run.json", _json(asdict(run)))
        previous = self.record(report.student)
        if not (folder / "before" / name).exists():  # else this run, interrupted since, saved what stands there
            replaced = {"student": report.student, "record": previous and _plain(previous), "gradebook": snapshot}
            write_whole(folder / "before" / name, _json(replaced))
        (folder / "entered" / Path(name).stem).unlink(missing_ok=True)
        report = _carrying(report, previous, attempt)
        write_whole(self._submissions / name, _json(_plain(Record(report, key, attempt, run.id))))
        return report

    def entered(self, student: str) -> None:
        """Note that the gradebook holds what the ledger says of a student."""
        record = self.record(student)
        make_empty(_runs(self.out) / record.run / "entered" / Path(record_name(student)).stem)

    def finish(self, run: Run, seconds: float) -> Run:
        """Close a run. One that graded nothing leaves no trace, so that `undo` takes back the one before."""
        run = replace(run, seconds=max(seconds, 1e-3))
        folder = _runs(self.out) / run.id
        if folder.exists():
            write_whole(folder / "run.json", _json(asdict(run)))
        return run

    # -- a regrade, before someone agrees to it

    def stage(self, report: Report, key: str, attempt: str) -> None:
        """Keep a Report of a regrade aside."""
        write_whole(self._staged / record_name(report.student), _json(_plain(Record(report, key, attempt, ""))))

    def staged(self) -> dict[str, Record]:
        """What is aside, by student, without the notebooks: also what an interrupted regrade left."""
        records = filter(None, map(_read_record, sorted(self._staged.glob("*.json"))))
        return {record.report.student: replace(record, report=_light(record.report)) for record in records}

    def staged_record(self, student: str) -> Record | None:
        """One line of what is aside, with the notebook."""
        return _read_record(self._staged / record_name(student))

    def unstage(self) -> None:
        """Forget what is aside: it was agreed to and saved, or refused."""
        shutil.rmtree(self._staged, ignore_errors=True)

    @property
    def _submissions(self) -> Path:
        return records(self.out, self.lecture)

    @property
    def _staged(self) -> Path:
        return Path(self.out) / "report" / "staged" / safe_name(self.lecture)


@contextlib.contextmanager
def writing(out: Path, lecture: str) -> Iterator[Ledger]:
    """The ledger, for the one process that may write in OUT.

    Raises:
        UsageError: another process is grading into OUT.
        StorageError: OUT cannot be written.
    """
    with _locked(out):
        yield Ledger(Path(out), lecture)


def changes(old: Mapping[str, Report], new: Mapping[str, Report]) -> list[Change]:
    """Whose result in `new` differs from that in `old`, the largest change first; who is only in `old` is left out."""
    found = []
    for student, report in new.items():
        before = old.get(student)
        known, moved = before is not None and has_score(before), _moved(before, report)
        change = Change(
            student,
            before.score if known else None,
            report.score if has_score(report) else None,
            before.state if before else None,
            report.state,
            moved if has_score(report) else (),
        )
        if change.before != change.after or change.state_before != change.state_after or change.exercises:
            found.append(change)
    return sorted(found, key=lambda change: (-abs(change.delta or 0), change.student))


def _moved(before: Report | None, after: Report):
    old = {verdict.exercise: verdict.score for verdict in before.verdicts} if before and has_score(before) else {}
    pairs = [(verdict.number, old.get(verdict.exercise), verdict.score) for verdict in after.verdicts]
    return tuple(pair for pair in pairs if before is not None and pair[1] != pair[2])


@dataclass(frozen=True)
class Undone:
    """A run that was taken back: the `students` it had graded, and of them, `removed`, those it had graded first."""

    run: Run
    students: tuple[str, ...]
    removed: tuple[str, ...]


def undo(out: Path, restore: Callable[[str, str, Any], None]) -> Undone:
    """Take the last grade run in OUT back. Interrupted, it is ended by calling it again.

    Args:
        restore: called with (lecture, student, snapshot) to put the gradebook back, also when it is so already.
    Raises:
        UsageError: there is no run, or another process is grading into OUT.
        StorageError: what stood there before can no longer be read; nothing was taken back.
    """
    if not _read_runs(out):
        raise UsageError(f"there is no grade run in {out} that could be taken back")
    with _locked(out):
        run = _read_runs(out)[-1]
        ledger, folder = Ledger(Path(out), run.lecture), _runs(out) / run.id
        students, removed = [], []
        paths = sorted((folder / "before").glob("*.json"))
        for path in paths:
            _replaced(path)  # before anything is changed; they may hold too much to be kept
        for path in paths:
            replaced = _replaced(path)
            restore(run.lecture, replaced["student"], replaced["gradebook"])
            place = ledger._submissions / path.name
            if replaced["record"] is None:
                place.unlink(missing_ok=True)
                removed.append(replaced["student"])
            else:
                write_whole(place, _json(replaced["record"]))
            students.append(replaced["student"])
        _remove(folder)
        return Undone(run, tuple(students), tuple(removed))


def last_run(out: Path) -> Run | None:
    """The latest run of any lecture in OUT that was not taken back: the one that `undo` would."""
    runs = _read_runs(out)
    return runs[-1] if runs else None


# ---- below


def _carrying(report: Report, previous: Record | None, attempt: str) -> Report:
    """Our own failure shows the points that the same attempt had before; another attempt's points are not its own."""
    if report.state != "error" or previous is None or previous.attempt != attempt or not has_score(previous.report):
        return report
    run = previous.report.provenance.get(SCORE_FROM, previous.run)
    reason = report.reason or "It could not be graded."
    return replace(
        report,
        verdicts=previous.report.verdicts,
        reason=f"{reason} The score shown is that of an earlier run of the same files.",
        provenance={**report.provenance, SCORE_FROM: run},
    )


def _runs(out: Path) -> Path:
    return Path(out) / "report" / "runs"


def _read_runs(out: Path) -> list[Run]:
    return [_run(path) for path in sorted(_runs(out).glob("[!.]*/run.json"))]


def _run(path: Path) -> Run:
    with _told(path, f"Put a copy of it back, or move {path.parent} away: then only this run cannot be taken back"):
        return Run(**json.loads(path.read_text(encoding="utf-8")))


def _replaced(path: Path) -> dict[str, Any]:
    with _told(path, "Put a copy of it back; nothing was taken back"):
        replaced = json.loads(path.read_text(encoding="utf-8"))
        return {name: replaced[name] for name in ("student", "record", "gradebook")}


@contextlib.contextmanager
def _told(path: Path, step: str) -> Iterator[None]:
    """We write whole files: a person or a broken disk was at one that cannot be read."""
    try:
        yield
    except (ValueError, LookupError, TypeError) as error:
        raise StorageError(f"{path} is damaged ({error}). {step}; what is graded is kept") from error


def _prune(out: Path) -> None:
    folders = sorted(path.parent for path in _runs(out).glob("[!.]*/run.json"))
    for folder in [*folders[:-RUNS_KEPT], *_runs(out).glob(".*")]:
        _remove(folder)


def _remove(folder: Path) -> None:
    gone = folder.with_name(f".{folder.name.lstrip('.')}")
    folder.rename(gone)  # at once: a folder half removed is no run
    shutil.rmtree(gone, ignore_errors=True)


def _reports(folder: Path) -> dict[str, Report]:
    records = filter(None, map(_read_record, sorted(folder.glob("*.json"))))
    return {record.report.student: _light(record.report) for record in records}


def _light(report: Report) -> Report:
    return replace(report, notebook=None)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)  # a folder's name may hold half of a surrogate pair


def _plain(record: Record) -> dict:
    return asdict(record)


def _read_record(path: Path) -> Record | None:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return Record(_report(fields["report"]), fields["key"], fields["attempt"], fields["run"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:  # we write whole files, so a person or a broken disk was here
        log.warning("%s cannot be read (%s): its submission counts as not graded", path, error)
        return None


def _report(fields: dict) -> Report:
    verdicts = tuple(Verdict(**{**verdict, "codes": tuple(verdict["codes"])}) for verdict in fields["verdicts"])
    tuples = {name: tuple(fields[name]) for name in ("repairs", "events")}
    return Report(**{**fields, **tuples, "verdicts": verdicts})


@contextlib.contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Hold OUT/report/lock, and clear up after a holder who was killed; the system lets go of it when a process ends."""
    path = Path(out) / "report" / "lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "a+b")
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            else:
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise UsageError(f"another process is grading into {out}; wait for it, or give another --out") from error
        for folder in WRITTEN:
            remove_parts(Path(out) / folder)
        yield
    finally:
        file.close()
