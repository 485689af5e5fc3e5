"""`autograder grade` beside `nbgrader autograde`, on the same notebooks, machine and run.

    python benchmarks/engine.py [--sizes 24 100 300] [--nbgrader-sizes 24] [--lecture 02_indexing] [--out docs/benchmarks]

For each size a class of copies of the solved notebook is graded into a gradebook by both. Wall seconds are of this machine as
busy as it is; the ratios of one run are what counts. nbgrader grades one submission after another, so its larger classes may be left out.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from autograder.exercises import load_lecture
from autograder.sample import sample_class
from autograder.settings import load_settings

ROOT = Path(__file__).parents[1]
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
    """One class graded: seconds of wall time, and of CPU time of all processes together."""

    grader: str
    size: int
    wall: float
    cpu: float

    @property
    def each(self) -> float:
        return self.wall / self.size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[24])
    parser.add_argument("--nbgrader-sizes", type=int, nargs="*", default=[24])
    parser.add_argument("--lecture", default="02_indexing")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for size in sorted({*options.sizes, *options.nbgrader_sizes}):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            course = course_with_class(Path(folder), options.lecture, size)
            if size in options.sizes:
                rows.append(timed("autograder grade", size, course, ours(options.lecture)))
                demand_full_scores(course, size)
            if size in options.nbgrader_sizes:
                generate_stock(course, options.lecture)
                rows.append(timed("nbgrader autograde", size, course, ["-m", "nbgrader", "autograde", options.lecture]))
        print(rows[-1], file=sys.stderr)
    text = page(rows, options.lecture)
    print(text)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "engine.md").write_text(text, encoding="utf-8")
        plot(rows, options.out / "engine.svg")


def course_with_class(folder: Path, lecture: str, size: int) -> Path:
    """A course of one lecture, and `size` copies of its solved notebook where nbgrader looks for them."""
    for name in ("solutions", "course"):
        shutil.copytree(ROOT / name / lecture, folder / name / lecture)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    settings = load_settings(folder)
    name = f"{lecture}.ipynb"
    released = (settings.course / lecture / name).read_text(encoding="utf-8")
    solved = (settings.solutions / lecture / name).read_text(encoding="utf-8")
    notebook = dict(sample_class(load_lecture(lecture, settings.solutions), released, solved))["solved"]
    for number in range(size):
        own = folder / "grading" / "submitted" / f"student{number:03}" / lecture
        own.mkdir(parents=True)
        (own / name).write_text(notebook, encoding="utf-8")
        shutil.copy(settings.course / lecture / "checks.json", own)
    return folder


def ours(lecture: str) -> list[str]:
    return ["-m", "autograder", "grade", lecture, "--submissions", "grading/submitted", "--trust-code"]


def generate_stock(course: Path, lecture: str) -> None:
    """The lecture in a gradebook of its own, and stock nbgrader's own steps in the configuration."""
    shutil.rmtree(course / "grading" / "autograded", ignore_errors=True)
    (course / "grading" / "gradebook.db").unlink(missing_ok=True)
    run(course, ["-m", "nbgrader", "generate_assignment", lecture, "--force", "--create"])
    with open(course / "nbgrader_config.py", "a", encoding="utf-8") as file:
        file.write(STOCK)


def timed(grader: str, size: int, course: Path, arguments: list[str]) -> Row:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run(course, arguments)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - started
    return Row(grader, size, wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def run(course: Path, arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, *arguments], cwd=course, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def demand_full_scores(course: Path, size: int) -> None:
    results = json.loads((course / "grading" / "report" / "results.json").read_text(encoding="utf-8"))["submissions"]
    full = [s for s in results if s["score"] == s["max_score"]]
    if len(full) != size:
        raise SystemExit(f"{len(full)} of {size} solved notebooks got full points: the figures would mean nothing")


def page(rows: list[Row], lecture: str) -> str:
    """The table, and the ratio where both graded the same class."""
    lines = [
        "# The engine beside nbgrader",
        "",
        f"`{' '.join(['python', 'benchmarks/engine.py', *sys.argv[1:]])}` · lecture {lecture}, its solved notebook copied · "
        f"{len(os.sched_getaffinity(0))} cores, Python {sys.version.split()[0]}, torch {torch.__version__}. "
        "Both write a gradebook. Seconds are of this machine in this run; compare them with each other only.",
        "",
        "| submissions | grader | wall s | wall s each | CPU s of waited-for processes, each |",
        "| ---: | --- | ---: | ---: | ---: |",
    ]
    lines += [f"| {r.size} | {r.grader} | {r.wall:.1f} | {r.each:.2f} | {r.cpu / r.size:.2f} |" for r in rows]
    for size in sorted({r.size for r in rows}):
        by = {r.grader: r for r in rows if r.size == size}
        if len(by) == 2:
            ratio = by["nbgrader autograde"].wall / by["autograder grade"].wall
            lines += ["", f"At {size} submissions nbgrader takes {ratio:.1f} times as long."]
    return "\n".join(lines) + "\n"


def plot(rows: list[Row], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "engine"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5))
    for grader, marker in (("autograder grade", "o"), ("nbgrader autograde", "s")):
        points = [(r.size, r.wall) for r in rows if r.grader == grader]
        if points:
            axes.plot(*zip(*points, strict=True), marker=marker, label=grader)
    axes.set(xlabel="submissions", ylabel="wall seconds", title="Grading a class")
    axes.legend()
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    main()
