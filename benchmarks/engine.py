"""`autograder grade` beside `nbgrader autograde`, on the same notebooks, machine and run.

    python benchmarks/engine.py [--sizes 24 100 300] [--nbgrader-sizes 24] [--lecture 02_indexing] [--out docs/benchmarks]

For each size a class of copies of the solved notebook is graded into a gradebook by both. Wall seconds are of this machine as
busy as it is; the ratios of one run are what counts. nbgrader grades one submission after another, so its larger classes may be left out.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from autograder import linux
from autograder.exercises import load_lecture
from autograder.sample import sample_class
from autograder.settings import load_settings

ROOT = Path(__file__).parents[1]
OURS, NBGRADER = "autograder grade", "nbgrader autograde"
MEMORY_SECONDS = 2.0
OWN_LECTURE = (
    "90_engine"  # six exercises: linear, cross-entropy, gradient of the MSE, a module, 200 steps of SGD, a plot
)
STOCK = """
c.Autograde.pre_convert_hook = None
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors." + name for name in "ClearOutput DeduplicateIds OverwriteKernelspec OverwriteCells CheckCellMetadata".split()
]
c.Autograde.autograde_preprocessors = [
    "nbgrader.preprocessors." + name for name in "Execute IgnorePattern LimitOutput SaveAutoGrades AssignLatePenalties CheckCellMetadata".split()
]
"""


@dataclass(frozen=True)
class Row:
    """One class graded: seconds of wall time, and of all processes together CPU seconds and the most memory in MiB."""

    grader: str
    size: int
    wall: float
    cpu: float
    memory: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[24], help="class sizes for autograder grade")
    parser.add_argument(
        "--nbgrader-sizes", type=int, nargs="*", default=[24], help="class sizes for nbgrader autograde"
    )
    parser.add_argument("--lecture", default=OWN_LECTURE, help="a lecture of benchmarks/solutions or of solutions")
    parser.add_argument("--out", type=Path, help="folder for the table and the plot")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        course = built_course(Path(folder) / "course", options.lecture)
        floor = floors(course, options.lecture)
        for size in sorted({*options.sizes, *options.nbgrader_sizes}):
            if size in options.sizes:
                rows.append(timed(OURS, size, fresh_class(course, options.lecture, size), ours(options.lecture)))
                demand_full_scores(course, size)
                print(rows[-1], file=sys.stderr)
            if size in options.nbgrader_sizes:
                fresh_class(course, options.lecture, size)
                with stock_configuration(course, options.lecture):
                    rows.append(timed(NBGRADER, size, course, ["-m", "nbgrader", "autograde", options.lecture]))
                print(rows[-1], file=sys.stderr)
    text = page(rows, floor, options.lecture)
    print(text)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        name = "engine" if options.lecture == OWN_LECTURE else f"engine_{options.lecture}"
        (options.out / f"{name}.md").write_text(text, encoding="utf-8")
        plot(rows, options.out / f"{name}.svg")


def built_course(folder: Path, lecture: str) -> Path:
    """A course of one lecture, built and released as any other."""
    home = next(home for home in (ROOT / "benchmarks", ROOT) if (home / "solutions" / lecture).is_dir())
    shutil.copytree(home / "solutions" / lecture, folder / "solutions" / lecture)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    run(folder, ["-m", "autograder.notebooks", lecture])
    run(folder, ["-m", "autograder", "release", lecture])
    return folder


def fresh_class(course: Path, lecture: str, size: int) -> Path:
    """`size` copies of the solved notebook, handed in, where nbgrader looks for them; nothing graded yet."""
    shutil.rmtree(course / "grading", ignore_errors=True)
    settings = load_settings(course)
    name = f"{lecture}.ipynb"
    released = (settings.course / lecture / name).read_text(encoding="utf-8")
    solved = (settings.solutions / lecture / name).read_text(encoding="utf-8")
    notebook = dict(sample_class(load_lecture(lecture, settings.solutions), released, solved))["solved"]
    for number in range(size):
        own = course / "grading" / "submitted" / f"student{number:03}" / lecture
        own.mkdir(parents=True)
        (own / name).write_text(notebook, encoding="utf-8")
        shutil.copy(settings.course / lecture / "checks.json", own)
    return course


def ours(lecture: str) -> list[str]:
    return ["-m", "autograder", "grade", lecture, "--submissions", "grading/submitted", "--trust-code"]


@contextlib.contextmanager
def stock_configuration(course: Path, lecture: str):
    """The lecture in a gradebook of its own, and stock nbgrader's own steps in the configuration, for a while."""
    config = course / "nbgrader_config.py"
    ours_text = config.read_text(encoding="utf-8")
    run(course, ["-m", "nbgrader", "generate_assignment", lecture, "--force", "--create"])
    config.write_text(ours_text + STOCK, encoding="utf-8")
    yield
    config.write_text(ours_text, encoding="utf-8")


def floors(course: Path, lecture: str) -> dict[str, float]:
    """CPU seconds of one submission's work without Jupyter, walls and gradebook; see floor.py."""
    command = [sys.executable, "-W", "ignore", ROOT / "benchmarks" / "floor.py", course, lecture]
    done = subprocess.run(command, env={**os.environ, "MPLBACKEND": "agg"}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the notebook does not work without Jupyter:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def timed(grader: str, size: int, course: Path, arguments: list[str]) -> Row:
    """Wall time of a command, CPU time of all it started (orphans too: they are handed to this process), peak memory."""
    linux.prctl(linux.SET_CHILD_SUBREAPER, 1)
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with peak_memory() as peak:
        run(course, arguments)
    wall = time.perf_counter() - started
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Row(grader, size, wall, cpu, max(peak))


@contextlib.contextmanager
def peak_memory():
    """A list that fills with the memory of all descendants, shared pages counted once, in MiB, every two seconds."""
    seen, done = [0.0], threading.Event()

    def watch():
        while not done.wait(MEMORY_SECONDS):
            total = 0
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(OSError):  # it has ended; psutil's own sum reads fifty times as much text
                    lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
                    total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) << 10
            seen.append(total / 2**20)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield seen
    finally:
        done.set()
        watching.join()


def run(course: Path, arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, *arguments], cwd=course, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def demand_full_scores(course: Path, size: int) -> None:
    results = json.loads((course / "grading" / "report" / "results.json").read_text(encoding="utf-8"))["submissions"]
    full = [s for s in results if s["score"] == s["max_score"]]
    if len(full) != size:
        raise SystemExit(f"{len(full)} of {size} solved notebooks got full points: the figures would mean nothing")


def page(rows: list[Row], floor: dict[str, float], lecture: str) -> str:
    """The table, and the ratios that the engine is built for."""
    lines = [
        "# The engine beside nbgrader",
        "",
        f"`{' '.join(['python', 'benchmarks/engine.py', *sys.argv[1:]])}` · lecture {lecture}, its solved notebook copied · "
        f"{len(os.sched_getaffinity(0))} cores, Python {sys.version.split()[0]}, torch {torch.__version__}. "
        "Both write a gradebook; CPU is of all processes of the command. Seconds are of this machine in this run: "
        "compare them with each other only.",
        "",
        "| submissions | grader | wall s | wall s each | CPU s each | peak memory MiB |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {r.size} | {r.grader} | {r.wall:.1f} | {r.wall / r.size:.2f} | {r.cpu / r.size:.2f} | {r.memory:.0f} |"
        for r in rows
    ]
    for size in sorted({r.size for r in rows}):
        by = {r.grader: r for r in rows if r.size == size}
        if len(by) == 2:
            ratio = by[NBGRADER].wall / by[OURS].wall
            lines += ["", f"At {size} submissions nbgrader takes {ratio:.1f} times as long."]
    lines += [
        "",
        f"The floors, in CPU seconds (`benchmarks/floor.py`): {floor['cells']:.3f} for a bare fork that executes the cells, "
        f"{floor['judged']:.3f} where it is also asked the visible and the hidden cases and its answers are judged.",
    ]
    for grader in (OURS, NBGRADER):
        of = sorted((r for r in rows if r.grader == grader), key=lambda r: r.size)
        if len(of) > 1:
            more = of[-1].size - of[0].size
            wall, cpu = (of[-1].wall - of[0].wall) / more, (of[-1].cpu - of[0].cpu) / more
            lines += [
                "",
                f"{grader}: each submission more, from {of[0].size} to {of[-1].size}, takes {wall:.2f} s and {cpu:.2f} CPU s: "
                f"{cpu / floor['cells']:.1f} times the first floor, {cpu / floor['judged']:.1f} times the second.",
            ]
    return "\n".join(lines) + "\n"


def plot(rows: list[Row], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "engine"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5))
    for grader, marker in ((OURS, "o"), (NBGRADER, "s")):
        points = [(r.size, r.wall) for r in rows if r.grader == grader]
        if points:
            axes.plot(*zip(*points, strict=True), marker=marker, label=grader)
    axes.set(xlabel="submissions", ylabel="wall seconds", title="Grading a class")
    axes.legend()
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    main()
