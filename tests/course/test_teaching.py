"""docs/teaching.md tells the truth: each mistake in it, typed in, is answered as it says there."""

import linecache
import re
from pathlib import Path

import pytest

from autograder import check as student_side
from autograder import checks_writer
from autograder.check import Checker, CheckFailed
from autograder.checks import FILE
from autograder.exercises import lecture_names, load_lecture

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "teaching.md"
SECTION = re.compile(r"^## (\w+)$", re.MULTILINE)
MISTAKE = re.compile(r"^### (.+?)\n.*?```python\n(.*?)```\n+```text\n(.*?)```", re.MULTILINE | re.DOTALL)


def mistakes():
    """(lecture, title, the code as typed, the answer as told) of every mistake on the page."""
    _, *parts = SECTION.split(PAGE.read_text(encoding="utf-8"))
    for lecture, text in zip(parts[::2], parts[1::2], strict=True):
        for title, code, answer in MISTAKE.findall(text):
            yield pytest.param(lecture, code, answer, id=f"{lecture}-{title}")


def typed_in(code):
    """The function that a cell with this code defines; its source can be read, as in a notebook."""
    name = f"<cell {hash(code)}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    space = {}
    exec(compile("import torch", name, "exec"), space)
    exec(compile(code, name, "exec"), space)
    return space[re.search(r"^def (\w+)", code, re.MULTILINE)[1]]


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """By lecture: a folder with its checks."""
    made = {}
    for name in lecture_names(ROOT / "solutions"):
        made[name] = tmp_path_factory.mktemp(name)
        text = checks_writer.to_json(load_lecture(name, ROOT / "solutions"))
        (made[name] / FILE).write_text(text, encoding="utf-8")
    return made


@pytest.mark.parametrize(("lecture", "code", "answer"), list(mistakes()))
def test_a_mistake_is_answered_as_the_page_says(lecture, code, answer, folders, monkeypatch):
    shown = []
    monkeypatch.setattr(student_side, "display", shown.append)
    with pytest.raises(CheckFailed):
        Checker(lecture, folders[lecture])(typed_in(code))
    (table,) = shown
    told = [line.rstrip() for line in repr(table).splitlines()[: len(table.rows) + 1]]  # without the progress line
    assert answer.rstrip().splitlines() == told


def test_each_lecture_on_the_page_has_its_six_likeliest_mistakes():
    found = [mark.values[0] for mark in mistakes()]
    assert found and all(found.count(lecture) >= 6 for lecture in found)
