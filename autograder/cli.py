"""The command line: a verb a function, results on stdout, everything else on stderr.

Each verb imports its own module, so that `--help` and a student's `doctor` are quick and need neither nbgrader nor Dask.
"""

import json
import logging
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .errors import AutograderError, UsageError

app = typer.Typer(
    name="autograder",
    help="Builds, runs, judges and reports PyTorch notebooks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
log = logging.getLogger(__name__)
out, err = Console(), Console(stderr=True)


def _path(text: str) -> Path:
    """A path as it is given: an empty one, of a variable that is not set, would be this folder."""
    if not text.strip():
        raise typer.BadParameter("it is empty; give a path")
    return Path(text)


LectureName = Annotated[str, typer.Argument(metavar="LECTURE", help="A lecture's name, e.g. 02_indexing.")]
AnyLecture = Annotated[
    str | None, typer.Argument(metavar="LECTURE", help="A lecture's name; all that DIR holds by default.")
]
OutFolder = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", parser=_path, help="Folder of the graded class (default: grading)."),
]
Lms = Annotated[str | None, typer.Option("--lms", help="moodle, canvas or blackboard.")]


INTERRUPTED = 130  # what Typer makes of Ctrl-C
STOPPED = "Stopped. What is graded is kept; the same call goes on from here."


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 an error of ours or of some submission, 2 wrong use or refused."""
    try:
        code = app(args=arguments, standalone_mode=False) or 0
    except typer.Exit as ended:
        code = ended.exit_code
    except typer.Abort:
        err.print("Stopped.")
        return 2
    except KeyboardInterrupt:
        err.print(STOPPED)
        return 2
    except AutograderError as error:
        err.print(f"autograder: {error}", style="red", highlight=False, markup=False, soft_wrap=True)
        return 2
    except ModuleNotFoundError as error:  # one of ours needs it: a lecture's own is a CourseError
        err.print(_missing(error), style="red", highlight=False, markup=False, soft_wrap=True)
        return 2
    except Exception as error:
        if hasattr(error, "format_message"):  # Typer's own: an unknown option, a missing argument
            err.print(
                f"autograder: {error.format_message()}{_given(error)} (autograder --help)",
                style="red",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
            return 2
        log.info("%s", "".join(traceback.format_exception(error)))
        said = f"autograder: A fault in the autograder: {type(error).__name__}: {error}"
        more = "" if log.isEnabledFor(logging.INFO) else " (autograder -v VERB shows where)"
        err.print(f"{said}{more}", style="red", highlight=False, markup=False, soft_wrap=True)
        return 1
    if code == INTERRUPTED:
        err.print(STOPPED)
        return 2
    return code


def _given(error: Exception) -> str:
    """What was given in place of a number: it stands in the error of the library that Typer asks."""
    found = error.__cause__.errors() if hasattr(error.__cause__, "errors") else []
    return f", given: {found[0]['input']!r}" if found else ""


def _missing(error: ModuleNotFoundError) -> str:
    from .doctor import command

    install = command('pip install "torch-lectures[grade]"')
    return f"autograder: {error.name} is not installed. {install} (or make setup)"


@app.callback()
def _configure(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what is done, on stderr.")] = False,
) -> None:
    ours, handler = logging.getLogger("autograder"), logging.StreamHandler(sys.stderr)  # not the root: Dask talks a lot
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    ours.handlers, ours.propagate = [handler], False
    ours.setLevel(logging.INFO if verbose else logging.WARNING)


@app.command()
def release(
    lectures: Annotated[
        list[str] | None, typer.Argument(metavar="LECTURE", help="Lectures to release; all by default.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail when course/ is stale or leaks an answer.")
    ] = False,
) -> None:
    """Build course/ from solutions/: the students' notebooks and their checks."""
    from . import release as releasing
    from .exercises import lecture_names
    from .settings import load_settings

    settings = load_settings()
    names = lectures or lecture_names(settings.solutions)
    releasing.release(names, settings, check=check)
    err.print(f"{'Checked' if check else 'Released'} {', '.join(names)} in {_shown(settings.course)}.")


@app.command("list")
def list_(
    lecture: LectureName,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """The exercises of a lecture: id, number, points, cells."""
    from .exercises import load_lecture
    from .settings import load_settings

    found = load_lecture(lecture, load_settings().solutions)
    rows = [
        {"id": e.id, "number": e.number, "points": e.points, "cells": [e.id] if e.written else [e.id, e.check_cell]}
        for e in found.exercises
    ]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(f"{row['number']:<6} {row['id']:<32} {row['points']:g} points   cells {', '.join(row['cells'])}")


@app.command()
def sample(
    lecture: LectureName,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", parser=_path, help="Where to write STUDENT/LECTURE/LECTURE.ipynb.")
    ],
) -> None:
    """Write the sample class: twelve submissions, right, wrong, broken and hostile ones."""
    from .exercises import load_lecture
    from .sample import write
    from .settings import load_settings

    settings = load_settings()
    students = write(load_lecture(lecture, settings.solutions), settings, folder)
    err.print(f"Wrote {len(students)} sample submissions to {_shown(folder)}.")


@app.command()
def doctor(
    notebooks: Annotated[
        list[Path] | None,
        typer.Argument(metavar="NOTEBOOK", parser=_path, help="Notebooks to look at before they are handed in."),
    ] = None,
) -> None:
    """Say what is missing or weak on this machine and in its lectures; or what is wrong with a notebook before hand-in."""
    from itertools import chain

    if notebooks:
        from .handin import examine_notebook
        from .settings import load_settings

        course = load_settings().course
        findings = chain.from_iterable(examine_notebook(path, course) for path in notebooks)
    else:
        from .doctor import examine_lectures, examine_machine

        findings = chain(examine_machine(), examine_lectures(Path.cwd()))
    missing = False
    for finding in findings:
        missing |= finding.level == "missing"
        mark = {"ok": "[green]✓[/]", "weak": "[yellow]△[/]", "missing": "[red]✗[/]"}[finding.level]
        out.print(mark, _escaped(finding.text), soft_wrap=True, highlight=False)
    if missing:
        raise typer.Exit(2)


@app.command()
def collect(
    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE", parser=_path, help="A zip downloaded from an LMS.")],
    lecture: LectureName,
    lms: Lms = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be unpacked where; write nothing.")
    ] = False,
    out_folder: OutFolder = None,
) -> None:
    """Unpack an LMS download into DIR/submitted, the latest attempt of each student."""
    from . import archive as archives
    from .exercises import load_lecture
    from .settings import load_settings

    settings = load_settings(out=out_folder)
    load_lecture(lecture, settings.solutions)
    rows = archives.collect(archive, lecture, settings, lms=lms, dry_run=dry_run)
    for row in rows:
        out.print(_escaped(str(row)), soft_wrap=True, highlight=False)
    if lost := sorted({row.student for row in rows if row.lost}):
        told = f"Not unpacked: what {', '.join(lost)} handed in. Nobody loses points for it: {archives.AGAIN}."
        err.print(told, style="yellow", markup=False, soft_wrap=True, highlight=False)
        raise typer.Exit(1)


@app.command()
def grade(
    lecture: LectureName,
    submissions: Annotated[
        Path, typer.Option("--submissions", metavar="PATH", parser=_path, help="Folder of STUDENT/LECTURE/*.ipynb.")
    ],
    out_folder: OutFolder = None,
    workers: Annotated[int | None, typer.Option(metavar="N", help="Worker processes (default: one a core).")] = None,
    scheduler: Annotated[str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp://...")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Private seed of the hidden cases (default: drawn).")
    ] = None,
    cell_seconds: Annotated[float | None, typer.Option(metavar="S", help="Wall seconds a cell may take.")] = None,
    submission_seconds: Annotated[
        float | None, typer.Option(metavar="S", help="Wall seconds a submission may take.")
    ] = None,
    memory_mib: Annotated[int | None, typer.Option(metavar="MIB", help="Memory a submission may use.")] = None,
    regrade: Annotated[
        bool, typer.Option("--regrade", help="Grade everything anew; show whose score changes before writing.")
    ] = False,
    trust_code: Annotated[bool, typer.Option("--trust-code", help="Grade even where there is no sandbox.")] = False,
) -> None:
    """Grade a class. A second call keeps what is unchanged and grades the rest."""
    from . import preload
    from . import workers as worker_processes
    from .backlog import backlog
    from .settings import load_settings

    settings = load_settings(
        out=out_folder,
        workers=workers,
        scheduler=scheduler,
        device=device,
        seed=seed,
        cell_seconds=cell_seconds,
        submission_seconds=submission_seconds,
        memory_mib=memory_mib,
        trust_code=trust_code or None,
    )
    likely = 0
    if (settings.solutions / lecture).is_dir():  # else a typing error
        likely = _entries(submissions) if regrade else backlog(submissions, lecture, settings)
    if likely and not settings.scheduler:
        hides = preload.hidden_by(settings.solutions / lecture / "exercises.py")
        worker_processes.start_importing(settings, hides)  # while this process imports what it needs itself
    with preload.to_stay():
        from .farm import opening
    with opening(settings, likely):
        with preload.to_stay():
            from .grading import grade_class

        errors = grade_class(lecture, submissions, settings, regrade=regrade, out=out, err=err)
    if errors:
        raise typer.Exit(1)


def _entries(folder: Path) -> int:
    try:
        return len(list(folder.iterdir()))
    except OSError:  # whoever grades says why
        return 0


@app.command()
def feedback(lecture: AnyLecture = None, out_folder: OutFolder = None) -> None:
    """Write a feedback page for every graded submission."""
    from .grading import feedback_class
    from .settings import load_settings

    feedback_class(lecture, load_settings(out=out_folder), err=err)


@app.command()
def report(lecture: AnyLecture = None, out_folder: OutFolder = None) -> None:
    """Write the class report again, and print its table."""
    from .grading import report_class
    from .settings import load_settings

    report_class(lecture, load_settings(out=out_folder), out=out, err=err)


@app.command()
def export(lecture: AnyLecture = None, out_folder: OutFolder = None, lms: Lms = None) -> None:
    """Print the grades as CSV, in the format that an LMS takes in."""
    from .grading import export_class
    from .settings import load_settings

    print(export_class(lecture, load_settings(out=out_folder), lms), end="")


@app.command()
def undo(out_folder: OutFolder = None) -> None:
    """Take the last grade run back: reports and gradebook are as before it."""
    from .grading import undo_last
    from .settings import load_settings

    undo_last(load_settings(out=out_folder), err=err)


@app.command()
def tensorboard(
    folder: Annotated[Path, typer.Argument(metavar="DIR", parser=_path, help="Folder of the runs.")] = Path("course"),
    port: Annotated[int, typer.Option(help="Port on this machine.", min=1, max=65535)] = 6006,
) -> None:
    """Open TensorBoard on the runs that the notebooks logged."""
    import subprocess

    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; give the folder that holds the runs, e.g. course/04_graphs")
    err.print(f"TensorBoard on {_shown(folder)}: http://localhost:{port} (Ctrl-C ends it)")
    command = [
        sys.executable,
        "-m",
        "tensorboard.main",
        "--logdir",
        str(folder),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    raise typer.Exit(subprocess.call(command))


def _shown(path: Path) -> str:
    """A path as short as it can be said."""
    try:
        return str(Path(path).resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
