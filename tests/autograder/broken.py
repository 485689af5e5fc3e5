"""Broken submissions, each made from a notebook of a lecture: what students and their tools do to it.

    for name, broken in BROKEN.items():
        broken.make(folder, handed, released)  # folder: STUDENT/LECTURE, empty; the others: notebooks as JSON

`folder.name` is the lecture's name. Everything is found in the notebook by nbgrader's metadata, so any lecture will do
that has a setup cell and two exercises with checks.
"""

import copy
import gzip
import io
import json
import os
import re
import socket
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

LECTURE = "02_indexing"


@dataclass(frozen=True)
class Broken:
    """One way to break a submission.

    Attributes:
        make: writes the files, make(folder, handed, released); released is needed where handed is solved.
        state: "graded", "repaired" or "ungradable".
        says: words that its repairs, or the reason why it is ungradable, must hold.
        lost: how many exercises a solved notebook loses by it (meaningless when it is ungradable).
        gone: how many of the released cells that nbgrader knows are not in the repaired notebook.
    """

    make: Callable[..., None]
    state: str
    says: tuple[str, ...] = field(default=())
    lost: int = 0
    gone: int = 0


BROKEN: dict[str, Broken] = {}


def broken(state: str, *says: str, **counts: int):
    """Enter a function make(folder, handed) into BROKEN under its name."""

    def label(make):
        BROKEN[make.__name__] = Broken(
            lambda folder, handed, released="": make(folder, plain(handed)), state, says, **counts
        )
        return make

    return label


def edited(state: str, *says: str, **counts: int):
    """Enter a function that edits a notebook, edit(notebook) -> notebook or None, as a submission of the right name."""

    def label(edit):
        def make(folder, handed):
            notebook = json.loads(handed)
            write(folder, json.dumps(edit(notebook) or notebook, indent=1))

        make.__name__ = edit.__name__
        return broken(state, *says, **counts)(make)

    return label


def edited_with_stubs(state: str, *says: str, **counts: int):
    """The same for edit(notebook, stubs), stubs being the released texts of the answers by grade_id.

    Nothing is found elsewhere of an answer that was never worked on: these are for solved notebooks.
    """

    def label(edit):
        def make(folder, handed, released=""):
            notebook = json.loads(plain(handed))
            edit(notebook, {grade_id(cell): cell["source"] for cell in answers(json.loads(plain(released or handed)))})
            write(folder, json.dumps(notebook, indent=1))

        BROKEN[edit.__name__] = Broken(make, state, says, **counts)
        return make

    return label


def recoded(state: str, *says: str):
    """Enter a function that turns the notebook's JSON text into the bytes that are handed in."""

    def label(recode):
        def make(folder, handed):
            (folder / f"{folder.name}.ipynb").write_bytes(recode(handed))

        make.__name__ = recode.__name__
        return broken(state, *says)(make)

    return label


def plain(handed: str) -> str:
    """The notebook with every cell's source as one text, laid out as Jupyter does."""
    notebook = json.loads(handed)
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return json.dumps(notebook, indent=1, ensure_ascii=False)


def write(folder: Path, text: str, name: str = "") -> Path:
    path = folder / (name or f"{folder.name}.ipynb")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def small_release(lecture: str = LECTURE) -> str:
    """A released notebook by hand: setup, two exercises with checks, a written answer, text between them."""
    setup = f'import torch\nfrom autograder.check import Checker\n\ncheck = Checker("{lecture}")'
    setup += "\npredict, hint = check.predict, check.hint"
    stub = 'def {}(x, k):\n    """{}"""\n    # YOUR CODE HERE\n    raise NotImplementedError()'
    cells = [
        text("intro", "# Indexing\n\nA picture is worth a thousand words – même ici."),
        code("setup", setup, locked=True),
        text("card-1", "## 2.1 Every k-th of the last row"),
        code("last_row", stub.format("last_row", "Every k-th element of the last row."), solution=True),
        code("check_last_row", "check(last_row)", grade=True, locked=True, points=2),
        text("card-2", "## 2.2 A column"),
        code("column", stub.format("column", "Column k, as a view."), solution=True),
        code("check_column", "check(column)", grade=True, locked=True, points=3),
        text("card-3", "## 2.3 Why is a slice a view?"),
        text("why_view", "YOUR ANSWER HERE", grade=True, solution=True, points=1),
    ]
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps(
        {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False
    )


SOLUTIONS = {
    "last_row": "def last_row(x, k):\n    return x[-1, ::k]",
    "column": "def column(x, k):\n    y = x[:, k]\n    return y",
}


def small_solution(lecture: str = LECTURE) -> str:
    """The released notebook with both functions and the written answer filled in."""
    notebook = json.loads(small_release(lecture))
    for cell in notebook["cells"]:
        cell["source"] = SOLUTIONS.get(grade_id(cell), cell["source"])
        if grade_id(cell) == "why_view":
            cell["source"] = "It shares the storage, with another stride."
    return json.dumps(notebook, indent=1, ensure_ascii=False)


def code(id: str, source: str, **mark) -> dict:
    made = text(id, source, **mark)
    return made | {"cell_type": "code", "execution_count": None, "outputs": []}


def text(id: str, source: str, **mark) -> dict:
    metadata = (
        {"nbgrader": {"grade": False, "locked": False, "solution": False, **mark, "grade_id": id, "schema_version": 3}}
        if mark
        else {}
    )
    return {"cell_type": "markdown", "id": id.replace("_", "-"), "metadata": metadata, "source": source}


def grade_id(cell: dict) -> str:
    return cell["metadata"].get("nbgrader", {}).get("grade_id", "")


def answers(notebook: dict) -> list[dict]:
    return [c for c in notebook["cells"] if (m := c["metadata"].get("nbgrader")) and m["solution"] and not m["grade"]]


def checks(notebook: dict) -> list[dict]:
    return [c for c in notebook["cells"] if (m := c["metadata"].get("nbgrader")) and m["grade"] and not m["solution"]]


def setup(notebook: dict) -> dict:
    return next(c for c in notebook["cells"] if (m := c["metadata"].get("nbgrader")) and m["locked"] and not m["grade"])


def index(notebook: dict, cell: dict) -> int:
    return next(i for i, other in enumerate(notebook["cells"]) if other is cell)


def plain_code(source: str) -> dict:
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": "extra",
        "metadata": {},
        "outputs": [],
        "source": source,
    }


# Checks, answers and setup: deleted, doubled, moved, split, renamed, changed


@edited("graded")
def untouched(notebook):
    pass


@edited("repaired", "check of", "was missing; it was put back")
def deleted_check(notebook):
    notebook["cells"].remove(checks(notebook)[0])


@edited("repaired", "was missing; it was put back")
def deleted_all_checks(notebook):
    for cell in checks(notebook):
        notebook["cells"].remove(cell)


@edited("repaired", "twice; one was kept")
def duplicated_check(notebook):
    cell = checks(notebook)[0]
    notebook["cells"].insert(index(notebook, cell) + 1, copy.deepcopy(cell))


@edited("repaired", "3 times; one was kept")
def tripled_check_far_apart(notebook):
    cell = checks(notebook)[0]
    notebook["cells"].insert(0, copy.deepcopy(cell))
    notebook["cells"].append(copy.deepcopy(cell))


@edited("repaired", "stood before the answer")
def check_moved_before_its_answer(notebook):
    cell = checks(notebook)[1]
    notebook["cells"].remove(cell)
    notebook["cells"].insert(index(notebook, setup(notebook)) + 1, cell)


@edited("repaired", "twice; one was kept")
def split_check(notebook):
    cell = checks(notebook)[0]
    rest = copy.deepcopy(cell)
    cell["source"], rest["source"] = cell["source"][:6], cell["source"][6:]
    notebook["cells"].insert(index(notebook, cell) + 1, rest)


@edited("repaired", "was changed; it was put back as released")
def edited_check(notebook):
    checks(notebook)[0]["source"] = "print('all passed')"


@edited("repaired", "was changed", "cell of its own")
def answer_written_into_the_check(notebook):
    answer, check = answers(notebook)[0], checks(notebook)[0]
    check["source"] = f"{answer['source']}\n\n{check['source']}"
    notebook["cells"].remove(answer)


@edited("repaired", "was changed", "cell of its own")
def answer_written_into_another_check(notebook):
    answer, check = answers(notebook)[0], checks(notebook)[1]
    check["source"] = f"{answer['source']}\n\n{check['source']}"
    notebook["cells"].remove(answer)


@edited("repaired", "was missing; it was put back")
def check_merged_into_the_answer(notebook):
    answer, check = answers(notebook)[0], checks(notebook)[0]
    answer["source"] += "\n\n" + check["source"]
    notebook["cells"].remove(check)


@edited("repaired", "marked for grading that this lecture does not have", "recognised by its text")
def renamed_grade_id(notebook):
    checks(notebook)[0]["metadata"]["nbgrader"]["grade_id"] = "cell-1234"


@edited("repaired", "marked for grading that this lecture does not have (last_years_task)")
def cells_of_last_year(notebook):
    old = copy.deepcopy(checks(notebook)[0])
    old["source"], old["metadata"]["nbgrader"]["grade_id"] = "assert last_years_task() == 1", "last_years_task"
    notebook["cells"].append(old)


@edited("repaired", "answer cell of", "is missing; the exercise counts as not answered", lost=1, gone=1)
def deleted_answer(notebook):
    notebook["cells"].remove(answers(notebook)[0])


@edited("repaired", "is missing", "was put back", lost=1, gone=1)
def deleted_answer_and_check(notebook):
    notebook["cells"].remove(answers(notebook)[0])
    notebook["cells"].remove(checks(notebook)[0])


@edited("repaired", "twice; one counts as the answer")
def duplicated_answer(notebook):
    cell = answers(notebook)[0]
    notebook["cells"].insert(index(notebook, cell) + 1, copy.deepcopy(cell))


@edited_with_stubs("repaired", "twice; one counts as the answer")
def answer_doubled_by_an_empty_one_below(notebook, stubs):
    cell = answers(notebook)[0]
    stub = copy.deepcopy(cell) | {"source": stubs[grade_id(cell)]}
    notebook["cells"].insert(index(notebook, cell) + 1, stub)


@edited("repaired", "was split in two; it was joined again")
def split_answer(notebook):
    cell = answers(notebook)[-1]
    rest, lines = copy.deepcopy(cell), cell["source"].split("\n")
    cell["source"], rest["source"] = "\n".join(lines[:-1]), lines[-1]
    notebook["cells"].insert(index(notebook, cell) + 1, rest)


@edited("repaired", "had lost its mark and was recognised by its text")
def answer_deleted_and_written_anew(notebook):
    cell = answers(notebook)[0]
    notebook["cells"][index(notebook, cell)] = plain_code(cell["source"])


@edited_with_stubs("repaired", "another cell that defines", "was taken as the answer")
def answer_in_a_cell_below_the_check(notebook, stubs):
    cell, check = answers(notebook)[0], checks(notebook)[0]
    extra = plain_code(cell["source"].replace("):", "):  # mine", 1))
    cell["source"] = stubs[grade_id(cell)]
    notebook["cells"].insert(index(notebook, check) + 1, extra)


@edited_with_stubs("repaired", "another cell that defines", "was taken as the answer")
def answer_in_a_cell_above_its_own(notebook, stubs):
    cell = answers(notebook)[0]
    notebook["cells"].insert(index(notebook, cell), plain_code(cell["source"].replace("):", "):  # mine", 1)))
    cell["source"] = stubs[grade_id(cell)]


@edited_with_stubs("repaired", "twice", "another cell that defines")
def empty_answers_commented_and_doubled_around_the_real_one(notebook, stubs):
    cell = answers(notebook)[0]
    stub = copy.deepcopy(cell) | {"source": stubs[grade_id(cell)].replace("    #", "    # see above\n    #")}
    notebook["cells"].insert(index(notebook, cell) + 1, stub)
    notebook["cells"].insert(index(notebook, cell), copy.deepcopy(stub))
    cell["metadata"] = {}


@edited_with_stubs("repaired", "once more as released; that copy was left out")
def empty_copy_of_an_answer_without_its_mark(notebook, stubs):
    cell = answers(notebook)[0]
    notebook["cells"].insert(index(notebook, cell) + 1, plain_code(stubs[grade_id(cell)]))


@edited_with_stubs("repaired", "another cell that defines", "its stub stood once more")
def answer_above_its_stub_with_a_helper_beside_it(notebook, stubs):
    cell = answers(notebook)[0]
    notebook["cells"].insert(index(notebook, cell), plain_code(cell["source"]))
    cell["source"] = f"import math\n\n\n{stubs[grade_id(cell)]}\n\n\ndef helper(x):\n    return x"


@edited_with_stubs("repaired", "another cell that defines", "its stub stood once more")
def answer_above_its_stub_that_was_begun(notebook, stubs):
    cell = answers(notebook)[0]
    notebook["cells"].insert(index(notebook, cell), plain_code(cell["source"]))
    cell["source"] = stubs[grade_id(cell)].replace("    #", "    begun = [x for _ in range(k)]\n    #")


@edited_with_stubs("repaired", "its stub stood once more")
def answer_above_its_stub_in_one_cell(notebook, stubs):
    cell = answers(notebook)[0]
    cell["source"] += f"\n\n\n{stubs[grade_id(cell)]}\n\n\nlast = 1"


@edited_with_stubs("repaired", "its stub stood once more")
def stub_pasted_into_another_answer(notebook, stubs):
    first, second = answers(notebook)[:2]
    second["source"] += f"\n\n\n{stubs[grade_id(first)]}"


@edited("graded")
def answer_that_ends_like_the_stub(notebook):
    cell = answers(notebook)[0]
    cell["source"] = (
        "def helper(x):\n    return x\n\n\n"
        + cell["source"].replace("    return x", "    if k:\n        return x", 1)
        + "\n    raise NotImplementedError()"
    )


@edited_with_stubs("repaired", "was taken as the answer", gone=1)
def all_answers_in_the_first(notebook, stubs):
    first, *others = answers(notebook)
    first["source"] = "\n\n\n".join(cell["source"] for cell in answers(notebook))
    for cell in others:
        cell["source"] = stubs[grade_id(cell)]


@edited_with_stubs("repaired", "was taken as the answer", "stood before the answer", gone=1)
def all_answers_in_a_new_cell_at_the_end(notebook, stubs):
    extra = plain_code("\n\n\n".join(cell["source"] for cell in answers(notebook)) + "  # all")
    for cell in answers(notebook):
        cell["source"] = stubs[grade_id(cell)]
    notebook["cells"].append(extra)


@edited("repaired", "does not answer", "another cell that defines", "stood before the answer")
def answers_that_changed_places(notebook):
    first, second = answers(notebook)[:2]
    first["source"], second["source"] = second["source"], first["source"]


@edited("repaired", "is defined in another cell, which counts", gone=1)
def two_answers_in_one_cell(notebook):
    first, second = answers(notebook)[:2]
    first["source"] += f"\n\n\n{second['source']}"
    notebook["cells"].remove(second)


@edited("repaired", "had become a markdown cell; it was made a code cell again")
def answer_turned_into_text(notebook):
    cell = answers(notebook)[0]
    cell["cell_type"] = "markdown"
    del cell["outputs"], cell["execution_count"]


@edited("repaired", "had become a raw cell")
def check_turned_raw(notebook):
    cell = checks(notebook)[0]
    cell["cell_type"] = "raw"
    del cell["outputs"], cell["execution_count"]


@edited("repaired", "setup cell was missing; it was put back")
def deleted_setup(notebook):
    notebook["cells"].remove(setup(notebook))


@edited("repaired", "setup cell was changed", "cell of its own")
def setup_with_an_import_added(notebook):
    setup(notebook)["source"] += "\nimport math"


@edited("repaired", "setup cell was changed")
def setup_emptied(notebook):
    setup(notebook)["source"] = ""


@edited("repaired", "setup cell stood after the exercises")
def setup_moved_to_the_end(notebook):
    cell = setup(notebook)
    notebook["cells"].remove(cell)
    notebook["cells"].append(cell)


@edited("repaired", "setup cell was there twice")
def split_setup(notebook):
    cell = setup(notebook)
    rest, lines = copy.deepcopy(cell), cell["source"].split("\n")
    cell["source"], rest["source"] = "\n".join(lines[:1]), "\n".join(lines[1:])
    notebook["cells"].insert(index(notebook, cell) + 1, rest)


@edited("repaired", "lost all its marks")
def all_metadata_stripped(notebook):
    for cell in notebook["cells"]:
        cell["metadata"] = {}


@edited("repaired", "lost all its marks")
def exported_by_another_editor(notebook):
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"] = {"id": f"aB{number}", "colab": {"base_uri": "https://example.org"}}
        del cell["id"]
    notebook |= {
        "nbformat_minor": 0,
        "metadata": {"colab": {"provenance": []}, "kernelspec": {"name": "python3", "display_name": "Python 3"}},
    }
    return notebook


@edited("repaired", "lost all its marks")
def marks_of_a_wrong_type(notebook):
    for cell in notebook["cells"]:
        cell["metadata"]["nbgrader"] = ["grade"]


@edited("graded")
def points_and_locks_changed(notebook):
    for cell in checks(notebook):
        cell["metadata"]["nbgrader"] |= {"points": 10**6, "locked": False, "schema_version": "seven"}


@edited("graded")
def own_cells_added(notebook):
    notebook["cells"].insert(1, plain_code("print('mine')"))
    notebook["cells"].append({"cell_type": "markdown", "id": "note", "metadata": {}, "source": "a note"})


@edited("repaired", "marked for grading that this lecture does not have")
def own_cell_that_claims_points(notebook):
    forged = copy.deepcopy(checks(notebook)[0])
    forged["source"], forged["metadata"]["nbgrader"] = (
        "1000.0",
        {"grade": True, "grade_id": ["x"], "points": 1000, "locked": False},
    )
    notebook["cells"].append(forged)


@edited("graded")
def cells_tagged_to_be_skipped(notebook):
    for cell in notebook["cells"]:
        cell["metadata"]["tags"] = ["skip-execution", "raises-exception", "remove-cell"]


@edited("graded")
def all_text_cells_deleted(notebook):
    notebook["cells"] = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" or grade_id(cell)]


# The notebook's form


@edited("graded")
def cell_ids_missing(notebook):
    for cell in notebook["cells"]:
        del cell["id"]
    notebook["nbformat_minor"] = 4


@edited("graded")
def cell_ids_all_the_same(notebook):
    for cell in notebook["cells"]:
        cell["id"] = "same"


@edited("graded")
def cell_ids_illegal(notebook):
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = ["", "with blank", "x" * 99, 7, None, "ünï"][number % 6]


@edited("graded")
def metadata_missing(notebook):
    del notebook["metadata"]
    notebook["cells"][0].pop("metadata")


@edited("graded")
def sources_as_lists(notebook):
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)


@edited("repaired", "The lines of", "were stored without their ends")
def lines_without_their_ends(notebook):
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].split("\n")


@edited("repaired", "The lines of 1 cell were stored without their ends")
def lines_without_their_ends_in_one_answer(notebook):
    answers(notebook)[-1]["source"] = answers(notebook)[-1]["source"].split("\n")


@edited("repaired", "lists in lists")
def lines_as_lists_in_lists(notebook):
    for cell in notebook["cells"]:
        cell["source"] = [[[line], []] for line in cell["source"].splitlines(keepends=True)]


@edited("repaired", "Cells of the notebook were in an old format")
def texts_under_the_key_of_nbformat_3(notebook):
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["input"] = cell.pop("source").splitlines(keepends=True)


@edited("repaired", "Cells of the notebook were in an old format")
def texts_under_the_keys_of_nbformat_1(notebook):
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["code"] = cell.pop("source")
        else:
            cell |= {"cell_type": "text", "text": cell.pop("source")}


@edited("repaired", "was not stored as text")
def source_of_wrong_types(notebook):
    for source in (7, {"a": 1}, ["a", None, 3], True):
        notebook["cells"].append(plain_code(source))


@edited("graded")
def source_null_in_own_cell(notebook):
    notebook["cells"].append(plain_code(None))


@edited("repaired", "is no cell; it was left out")
def cells_that_are_no_cells(notebook):
    notebook["cells"] += ["text", None, 3, ["x"]]


@edited("repaired", "was of no known type")
def cell_type_unknown(notebook):
    notebook["cells"][0]["cell_type"] = "sql"
    notebook["cells"].append({"source": "x"})


@edited("graded")
def outputs_malformed(notebook):
    for cell, outputs in zip(
        answers(notebook) + checks(notebook), (None, "text", [None], [{"output_type": 3}]), strict=False
    ):
        cell["outputs"] = outputs
        cell["execution_count"] = "twelve"


@edited("graded")
def outputs_huge(notebook):
    answers(notebook)[0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 3_000_000}]


@edited("graded")
def kernelspec_unknown(notebook):
    notebook["metadata"]["kernelspec"] = {"name": "conda-env-ml-py", "display_name": "ml", "language": "python"}


@edited("graded")
def kernelspec_null(notebook):
    notebook["metadata"] = {"kernelspec": None, "language_info": 3}


@edited("repaired", "language 'R'")
def kernelspec_of_another_language(notebook):
    notebook["metadata"] = {
        "kernelspec": {"name": "ir", "language": "R", "display_name": "R"},
        "language_info": {"name": "R"},
    }


@edited("graded")
def nbformat_minor_of_the_future(notebook):
    notebook["nbformat_minor"] = 99


@edited("repaired", "newer than 4")
def nbformat_of_the_future(notebook):
    notebook["nbformat"] = 5


@edited("graded")
def nbformat_missing(notebook):
    del notebook["nbformat"], notebook["nbformat_minor"]


@edited("repaired", "old format")
def nbformat_3(notebook):
    cells = []
    for cell in notebook["cells"]:
        old = {"cell_type": cell["cell_type"], "metadata": cell["metadata"]}
        if cell["cell_type"] == "code":
            cells.append(
                old
                | {"input": cell["source"].splitlines(True), "language": "python", "outputs": [], "collapsed": False}
            )
        elif cell["source"].startswith("## "):
            cells.append(old | {"cell_type": "heading", "level": 2, "source": cell["source"][3:]})
        else:
            cells.append(old | {"source": cell["source"]})
    return {
        "metadata": {"name": ""},
        "nbformat": 3,
        "nbformat_minor": 0,
        "worksheets": [{"cells": cells, "metadata": {}}],
    }


@edited("repaired", "bare list of cells")
def notebook_as_a_list(notebook):
    return notebook["cells"]


@edited("graded")
def attachments_malformed(notebook):
    notebook["cells"][0]["attachments"] = {"a.png": {"image/png": "iVBORw0KGgo="}, "b": 3, "c": {"image/png": {"x": 1}}}


@edited("graded")
def metadata_nested_deeply(notebook):
    deep: dict = {}
    notebook["cells"][0]["metadata"] = deep
    for _ in range(300):
        deep["a"] = deep = {}


@edited("graded")
def characters_that_cannot_be_encoded(notebook):
    notebook["cells"].append(plain_code("print('\ud800 \0 \u2028')"))


@edited("graded")
def line_ends_of_windows(notebook):
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].replace("\n", "\r\n")


# The file's bytes


@recoded("graded")
def utf8_with_mark(handed):
    return handed.encode("utf-8-sig")


@recoded("graded")
def utf8_with_two_marks(handed):
    return b"\xef\xbb\xbf" * 2 + handed.encode()


@recoded("repaired", "UTF-16")
def utf16(handed):
    return handed.encode("utf-16")


@recoded("repaired", "UTF-16")
def utf16_without_mark(handed):
    return handed.encode("utf-16-le")


@recoded("repaired", "UTF-32")
def utf32(handed):
    return handed.encode("utf-32")


@recoded("repaired", "Windows-1252")
def windows_1252(handed):
    return handed.encode("cp1252", "replace").replace(b'"cells"', '"né": 1, "cells"'.encode("cp1252"), 1)


@recoded("repaired", "Latin-1")
def latin_1(handed):
    return handed.encode("latin-1", "replace").replace(b'"cells"', b'"n\xe9\x81": 1, "cells"', 1)


@recoded("repaired", "zero bytes")
def zero_bytes_at_the_end(handed):
    return handed.encode() + b"\0" * 4096


@recoded("repaired", "characters of the file were damaged")
def one_damaged_character(handed):
    return handed.replace('"cells"', '"é ü ñ": 1, "X": 1, "cells"', 1).encode().replace(b"X", b"\xff", 1)


@recoded("repaired", "Stray commas")
def trailing_commas(handed):
    return handed.rstrip().removesuffix("}").encode() + b",}"


@recoded("repaired", "the rest was ignored")
def tail_of_an_older_version(handed):
    return (handed + handed[len(handed) // 2 :]).encode()


@recoded("repaired", "Before the start of the notebook the file held something else")
def header_of_a_mail_above(handed):
    return b"Content-Type: application/json\r\n\r\n" + handed.encode()


@recoded("repaired", "Before the start of the notebook", "After the end of the notebook")
def pasted_as_a_block_of_code(handed):
    return f"```json\n{handed}\n```\n".encode()


@recoded("repaired", "Before the start of the notebook")
def colour_of_a_terminal_above(handed):
    return b"\x1b[0m\n" + handed.encode()


@recoded("repaired", "merge conflict")
def merge_conflict_in_metadata(handed):
    sides = '<<<<<<< HEAD\n"execution_count": 3,\n=======\n"execution_count": 4,\n>>>>>>> branch\n'
    merged, count = re.subn(r'^ *"execution_count": null,\n', sides, handed, count=1, flags=re.M)
    assert count == 1
    return merged.encode()


@recoded("repaired", "JSON string")
def notebook_inside_a_string(handed):
    return json.dumps(handed).encode()


@recoded("repaired", "Line breaks and tabs")
def raw_tab_inside_a_string(handed):
    return handed.replace('"cells"', '"a\tb": 1, "cells"', 1).encode()


@recoded("ungradable", "merge conflict", "differ")
def merge_conflict_in_an_answer(handed):
    lines = handed.split("\n")
    at = next(i for i, line in enumerate(lines) if '"source"' in line and "def " in line)
    other = lines[at].replace("def ", "def my_", 1)
    return "\n".join([*lines[:at], "<<<<<<< HEAD", lines[at], "=======", other, ">>>>>>> x", *lines[at + 1 :]]).encode()


@recoded("ungradable", "breaks off in the middle")
def half_a_file(handed):
    return handed.encode()[: len(handed) // 2]


@recoded("ungradable", "empty")
def empty_file(handed):
    return b""


@recoded("ungradable", "zero bytes")
def only_zero_bytes(handed):
    return bytes(9000)


@recoded("ungradable", "not valid JSON")
def json_with_single_quotes(handed):
    return repr(json.loads(handed)).encode()


@recoded("ungradable", "two different notebooks")
def two_notebooks_in_one_file(handed):
    return (handed + handed.replace("def ", "def my_")).encode()


@recoded("ungradable", "a zip archive")
def zip_called_ipynb(handed):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("02_indexing.ipynb", handed)
    return buffer.getvalue()


@recoded("ungradable", "gzip")
def gzip_called_ipynb(handed):
    return gzip.compress(handed.encode(), mtime=0)


@recoded("ungradable", "web page")
def web_page_called_ipynb(handed):
    return b"\n<!DOCTYPE html>\n<html><body>In [1]:</body></html>"


@recoded("ungradable", "PDF")
def pdf_called_ipynb(handed):
    return b"%PDF-1.7\n%\xe2\xe3\xcf\xd3"


@recoded("ungradable", "Python script")
def script_called_ipynb(handed):
    return b"#!/usr/bin/env python\n# coding: utf-8\n\n# In[1]:\n\nimport torch\n"


@recoded("ungradable", "plain text")
def letter_called_ipynb(handed):
    return b"Dear professor, my notebook would not upload."


@recoded("ungradable", "no list of cells")
def json_that_is_no_notebook(handed):
    return b'{"name": "package", "version": "1.0"}'


@recoded("ungradable", "no list of cells")
def json_number(handed):
    return b"9" * 5000


@recoded("ungradable", "nested far deeper")
def json_bomb(handed):
    return b"[" * 200_000


@recoded("graded")
def giant_integers(handed):
    return handed.replace('"nbformat": 4', '"big": ' + "9" * 6000 + ', "nbformat": 4', 1).encode()


@recoded("ungradable", "more than 5000")
def too_many_cells(handed):
    return json.dumps({"cells": [plain_code("1")] * 5001, "nbformat": 4, "metadata": {}}).encode()


@recoded("ungradable", "more than 2000000 are not read. Data belongs into a file")
def data_in_the_code(handed):
    cells = [plain_code(f"data = '{'x' * 900_000}'")] * 3
    return json.dumps({"cells": cells, "nbformat": 4, "metadata": {}}).encode()


@recoded("ungradable", "no cells with anything in them")
def no_cells(handed):
    return b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


@edited("ungradable", "None of the exercises", "it has softmax, which 02_indexing lacks")
def another_lectures_notebook(notebook):
    other = copy.deepcopy(checks(notebook)[0])
    other["source"], other["metadata"]["nbgrader"]["grade_id"] = "check(softmax)", "check_softmax"
    notebook["cells"] = [setup(notebook), other]


@edited("ungradable", "written in R")
def notebook_in_another_language(notebook):
    notebook["cells"] = [plain_code("x <- c(1, 2)")]
    notebook["metadata"] = {"kernelspec": {"name": "ir", "language": "R"}}


# Names and folders


@broken("repaired", "is called", "taken all the same")
def named_by_the_browser(folder, handed):
    write(folder, handed, f"{folder.name} (1).ipynb")


@broken("repaired", "is called Anna")
def named_after_the_student(folder, handed):
    write(folder, handed, f"Anna Lee {folder.name} FINAL.ipynb")


@broken("repaired", "is called solution.IPYNB")
def ending_in_capitals(folder, handed):
    write(folder, handed, "solution.IPYNB")


@broken("repaired", ".ipynb.txt")
def ending_added_by_the_browser(folder, handed):
    write(folder, handed, f"{folder.name}.ipynb.txt")


@broken("repaired", ".json")
def ending_changed_to_json(folder, handed):
    write(folder, handed, f"{folder.name}.json")


@broken("repaired", ".ipynb.download", "taken all the same")
def ending_added_while_downloading(folder, handed):
    write(folder, handed, f"{folder.name}.ipynb.download")


@broken("repaired", "is called Anna.ipynb.py")
def ending_of_a_script_added(folder, handed):
    write(folder, handed, "Anna.ipynb.py")


@broken("repaired", "is called Anna.ipynb.txt", "UTF-16")
def ending_added_by_an_editor_that_writes_utf16(folder, handed):
    (folder / "Anna.ipynb.txt").write_bytes(handed.encode("utf-16"))


@broken("repaired", "is called 02_indexing and not")
def without_an_ending(folder, handed):
    write(folder, handed, folder.name)
    write(folder, '{"cells": 7}', "data.json")


@broken("repaired", "taken all the same")
def blank_after_the_ending(folder, handed):
    write(folder, handed, f"{folder.name}.ipynb ")


@broken("repaired", "02_indexing.ipynb.download was graded, not 02_indexing.ipynb (which cannot be read)")
def right_name_empty_and_the_download_whole(folder, handed):
    write(folder, "")
    write(folder, handed, f"{folder.name}.ipynb.download")


@broken("repaired", "taken all the same")
def under_any_name_in_a_folder_called_like_the_notebook(folder, handed):
    write(folder / f"{folder.name}.ipynb", handed, "contents")


@broken("graded")
def data_in_json_beside(folder, handed):
    write(folder, handed)
    write(folder, '{"cells": [{"cell_type": "code", "source": "1"}]}', "data.json")


@broken("ungradable", "no notebook (.ipynb)", "Python script")
def a_script_and_data_in_json(folder, handed):
    write(folder, "import torch", f"{folder.name}.py")
    write(folder, '{"cells": [{"cell_type": "code", "source": "1"}]}', "data.json")


@broken("repaired", "2 notebooks", "was graded, not")
def two_notebooks(folder, handed):
    write(folder, json.dumps({"cells": [plain_code("1")], "metadata": {}, "nbformat": 4}), "scratch.ipynb")
    write(folder, handed)


@broken("repaired", "which cannot be read")
def right_name_broken_and_a_good_copy(folder, handed):
    write(folder, handed[: len(handed) // 3])
    write(folder, handed, f"{folder.name} (1).ipynb")


@broken("repaired", "2 notebooks; b.ipynb was graded")
def two_copies_the_newer_last(folder, handed):
    os.utime(write(folder, handed.replace("def ", "def old_"), "c.ipynb"), (1, 1))
    os.utime(write(folder, handed, "b.ipynb"), (2, 2))


@broken("graded")
def notebook_in_a_folder_of_its_own(folder, handed):
    write(folder / folder.name, handed, f"{folder.name}.ipynb")
    write(folder / folder.name, "1,2", "data.csv")


@broken("graded")
def no_folder_for_the_lecture(folder, handed):
    folder.rmdir()
    write(folder.parent, handed, f"{folder.name}.ipynb")


@broken("graded")
def folder_of_the_lecture_spelt_otherwise(folder, handed):
    folder.rmdir()
    write(folder.with_name(folder.name.upper().replace("_", " ")), handed, f"{folder.name}.ipynb")


@broken("graded")
def remains_of_operating_systems(folder, handed):
    write(folder, handed)
    for name in (
        ".DS_Store",
        "Thumbs.db",
        "__MACOSX/._x.ipynb",
        ".ipynb_checkpoints/x-checkpoint.ipynb",
        "__pycache__/a.pyc",
    ):
        write(folder, "junk", name)


@broken("repaired", "There is no notebook but .ipynb_checkpoints/", "may lack your last changes")
def only_the_copy_that_jupyter_makes(folder, handed):
    write(folder, handed, f".ipynb_checkpoints/{folder.name}-checkpoint.ipynb")
    write(folder, "not a notebook", ".ipynb_checkpoints/x-checkpoint.ipynb")


@broken("repaired", "There is no notebook but __MACOSX/")
def only_among_what_a_system_left_behind(folder, handed):
    write(folder, handed, f"__MACOSX/{folder.name}.ipynb")
    write(folder, "\0\5\26\7", f"__MACOSX/._{folder.name}.ipynb")


@broken("ungradable", "Nothing was handed in")
def empty_folder(folder, handed):
    pass


@broken("ungradable", "Nothing was handed in")
def another_lectures_folder_only(folder, handed):
    folder.rmdir()
    write(folder.with_name("77_other"), handed, "77_other.ipynb")


@broken("ungradable", "no notebook (.ipynb)", "Python script")
def only_a_script(folder, handed):
    write(folder, "import torch", f"{folder.name}.py")


@broken("ungradable", "no notebook (.ipynb)", "exported web page")
def only_a_web_page(folder, handed):
    write(folder, "<html></html>", f"{folder.name}.html")


@broken("ungradable", "no notebook (.ipynb)", "Unpack the archive")
def only_an_archive(folder, handed):
    with zipfile.ZipFile(folder / "hand-in.zip", "w") as archive:
        archive.writestr(f"{folder.name}.ipynb", handed)


@broken("ungradable", "MiB", "Clear the outputs")
def notebook_too_large(folder, handed):
    with open(folder / f"{folder.name}.ipynb", "wb") as file:
        file.truncate(64 * 2**20)


@broken("repaired", "data.bin (64.0 MiB) was left out")
def data_too_large(folder, handed):
    write(folder, handed)
    with open(folder / "data.bin", "wb") as file:
        file.truncate(64 * 2**20)


@broken(
    "repaired",
    "torch.py was left out",
    "random.py",
    "numpy/__init__.py",
    "sitecustomize.py",
    "here.pth",
    "autograder.py",
)
def files_that_shadow_libraries(folder, handed):
    write(folder, handed)
    for name in (
        "torch.py",
        "random.py",
        "numpy/__init__.py",
        "sitecustomize.py",
        "here.pth",
        "autograder.py",
        "Torch.PY",
        "helper.py",
    ):
        write(folder, "raise SystemExit", name)


@broken("repaired", "links are not followed")
def links_out_of_the_folder(folder, handed):
    write(folder, handed)
    (folder / "passwd").symlink_to("/etc/passwd")
    (folder / "up").symlink_to(folder.parent.parent, target_is_directory=True)


@broken("ungradable", "02_indexing.ipynb is a link, and links are not followed")
def notebook_is_a_link(folder, handed):
    elsewhere = write(folder.parent.parent / ".elsewhere", handed, "x.ipynb")
    (folder / f"{folder.name}.ipynb").symlink_to(elsewhere)


@broken("repaired", "pipe was left out: it is a pipe", "door was left out: it is a socket")
def a_pipe_and_a_socket_among_the_files(folder, handed):
    write(folder, handed)
    os.mkfifo(folder / "pipe")
    listen_at(folder / "door")


def listen_at(path):
    """Leave a socket behind at a path that may be longer than a socket's may be."""
    before = os.open(".", os.O_RDONLY)
    try:
        os.chdir(path.parent)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.fchdir(before)
        os.close(before)


@broken("ungradable", "02_indexing.ipynb is a pipe", "no notebook in it")
def notebook_is_a_pipe(folder, handed):
    os.mkfifo(folder / f"{folder.name}.ipynb")


@broken("ungradable", "02_indexing.ipynb is a socket")
def notebook_is_a_socket(folder, handed):
    listen_at(folder / f"{folder.name}.ipynb")


@broken("ungradable", "02_indexing.ipynb is a folder")
def notebook_is_a_folder(folder, handed):
    (folder / f"{folder.name}.ipynb").mkdir()


@broken("ungradable", "02_indexing.ipynb is a folder")
def notebook_is_a_folder_with_something_in_it(folder, handed):
    write(folder / f"{folder.name}.ipynb", "<notebook/>", "notebook.xml")


@broken("graded")
def notebook_in_a_folder_that_is_called_like_it(folder, handed):
    write(folder / f"{folder.name}.ipynb", handed, f"{folder.name}.ipynb")


@broken("repaired", "2 notebooks; a.ipynb was graded, not b.ipynb")
def two_notebooks_of_the_lecture_one_empty(folder, handed):
    empty = json.loads(handed)
    for cell in answers(empty)[1:]:
        empty["cells"].remove(cell)
    os.utime(write(folder, handed, "a.ipynb"), (1, 1))
    os.utime(write(folder, json.dumps(empty), "b.ipynb"), (2, 2))


@broken("graded")
def timestamp_unreadable(folder, handed):
    write(folder, handed)
    (folder / "timestamp.txt").write_bytes(b"\xff\xfe next tuesday, or 2024-99-99")


@broken("graded")
def own_checks_handed_in(folder, handed):
    write(folder, handed)
    write(folder, '{"forged": true}', "checks.json")


@broken("repaired", "cannot be used on every machine")
def file_names_that_break_things(folder, handed):
    write(folder, handed)
    write(folder, "x", "new\nline.txt")
    with open(os.path.join(os.fsencode(folder), b"\xff\xfe.txt"), "wb"):
        pass


@broken("repaired", "the rest was not looked at")
def thousands_of_files(folder, handed):
    write(folder, handed)
    (folder / "many").mkdir()
    for number in range(2100):
        (folder / "many" / f"{number:05d}").touch()


@broken("repaired", "was left out: it is a folder 8 folders deep")
def folders_in_folders(folder, handed):
    write(folder, handed)
    write(folder, "x", "/".join("d" * 60) + "/x.txt")


@broken("ungradable", "is a folder 8 folders deep", "no notebook in it")
def notebook_far_down(folder, handed):
    write(folder, handed, "/".join("d" * 12) + f"/{folder.name}.ipynb")
