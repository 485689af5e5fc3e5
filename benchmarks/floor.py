"""The floor under the engine's CPU time: the work of one submission in a bare fork, without Jupyter, walls and gradebook.

    python benchmarks/floor.py COURSE LECTURE [FORKS]

Prints a JSON object of CPU seconds, medians over the forks: "cells", the notebook's cells alone; "judged", these, the
answers to visible and hidden cases, and their verdicts, without which a score could not be trusted.
"""

import io
import json
import os
import statistics
import sys
import time
from pathlib import Path

from autograder import judge, preload, probe
from autograder.exercises import case_seed, load_lecture
from autograder.records import Reply


def main(course: Path, name: str, forks: int = 10) -> None:
    with preload.to_stay():
        preload.import_all(preload.NOTEBOOKS)
        preload.touch()
    lecture = load_lecture(name, course / "solutions")
    notebook = json.loads((course / "solutions" / name / f"{name}.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    os.chdir(course / "course" / name)
    seen = [measured(lecture, cells, number) for number in range(forks + 1)][1:]  # the first fills caches
    cells_alone, judged = (statistics.median(column) for column in zip(*seen, strict=True))
    print(json.dumps({"cells": cells_alone, "judged": judged}))


def measured(lecture, cells: list[dict], number: int) -> tuple[float, float]:
    """CPU seconds of the cells alone, and of the whole work, for one student."""
    started = time.process_time()
    exercises = [exercise for exercise in lecture.exercises if not exercise.written]
    asked = [judge.question(exercise, case_seed(1, f"student{number}", exercise.id)) for exercise in exercises]
    read, write = os.pipe()
    if not os.fork():
        os.close(read)
        answer_in_fork(cells, asked, write)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        sizes, *answers = (pipe.read(size) for size in json.loads(pipe.readline()))
    _, status, used = os.wait4(-1, 0)
    if status:
        raise SystemExit("the cells do not run without Jupyter")
    texts = ["".join(cell["source"]) for cell in cells]
    for question, data in zip(asked, answers, strict=True):
        verdict = judge.verdict(question, judge.answers(question, Reply(question.exercise.id, data)), texts)
        assert verdict.score == verdict.points, verdict.message
    of_fork = used.ru_utime + used.ru_stime
    return json.loads(sizes)["cells"], of_fork + time.process_time() - started


def answer_in_fork(cells: list[dict], asked: list, write: int) -> None:
    """Execute the cells, answer the questions, send both's cost and the answers; never returns."""
    sys.stdout, names = io.StringIO(), {"__name__": "__main__"}
    for cell in cells:
        exec(compile("".join(cell["source"]), "<cell>", "exec"), names)
    spent = json.dumps({"cells": time.process_time()}).encode()
    parts = [spent, *(probe.answer(names[question.exercise.id], question.message) for question in asked)]
    with os.fdopen(write, "wb") as pipe:
        pipe.write(json.dumps([len(part) for part in parts]).encode() + b"\n" + b"".join(parts))
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2], *map(int, sys.argv[3:]))
