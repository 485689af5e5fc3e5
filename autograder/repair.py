"""A submitted notebook put back into the order and the marks of the released one.

What the release marks is found again by its mark (nbgrader's grade_id) or, where marks are lost, by its text. Locked
cells (the setup cell, the checks) become what was released; the student's answers and every other cell of theirs stay.
"""

import contextlib
import functools
import hashlib
import json
import re
from ast import (
    AST,
    AnnAssign,
    Assign,
    AsyncFunctionDef,
    Call,
    ClassDef,
    Constant,
    Expr,
    FunctionDef,
    Import,
    ImportFrom,
    Lambda,
    Name,
    Raise,
    Return,
    Yield,
    YieldFrom,
    dump,
    get_source_segment,
    iter_child_nodes,
    walk,
)
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from .draft import OTHER_LANGUAGE, Cell, lines, syntax
from .errors import CourseError

MOST_PARTS = 4  # of one split cell
CHECK = re.compile(r"^[ \t]*+check\(\s*([A-Za-z_]\w*)\s*\)", re.M)


@dataclass(frozen=True)
class Marked:
    """A cell of the release that nbgrader knows.

    Attributes:
        role: "answer" (a function to write), "written" (an answer in prose), "check" (graded) or "locked" (setup).
        exercise: id of the exercise that an answer, a written answer or a check belongs to, else "".
        raw: the whole cell as JSON, to be used as it stands.
        before: the text of the cell before it in the release.
    """

    id: str
    role: str
    exercise: str
    source: str
    raw: dict[str, Any]
    before: str

    @property
    def name(self) -> str:
        """What to call it in a sentence."""
        return {
            "answer": f"answer cell of {self.exercise}",
            "written": f"written answer {self.exercise}",
            "check": f"check of {self.exercise}",
            "locked": f"{self.id} cell",
        }[self.role]


@dataclass(frozen=True)
class Release:
    """The released notebook of a lecture: its marked cells by id, in their order, and its metadata."""

    marked: dict[str, Marked]
    metadata: dict[str, Any]
    sources: frozenset[str]

    def answer(self, exercise: str) -> Marked | None:
        return next(
            (m for m in self.marked.values() if m.exercise == exercise and m.role in ("answer", "written")), None
        )

    def of_role(self, *roles: str) -> list[Marked]:
        return [m for m in self.marked.values() if m.role in roles]


def release_of(text: str) -> Release:
    """The Release that the released notebook's JSON text holds.

    Raises:
        CourseError: it is not a notebook, or no cell of it is graded.
    """
    try:
        notebook = json.loads(text)
        marked, before = {}, ""
        for raw in notebook["cells"]:
            cell = _marked(raw, before)
            if cell is not None:
                marked[cell.id] = cell
            before = _source(raw)
        sources = frozenset(_plain(_source(raw)) for raw in notebook["cells"])
        release = Release(marked, notebook["metadata"], sources)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CourseError(
            f"the released notebook cannot be read ({error!r}); build it again with `autograder release`"
        ) from error
    if not release.of_role("check", "written"):
        raise CourseError("the released notebook has no graded cell; build it again with `autograder release`")
    return release


def _marked(raw: dict, before: str) -> Marked | None:
    mark = raw["metadata"].get("nbgrader") or {}
    graded, solution, locked = (bool(mark.get(key)) for key in ("grade", "solution", "locked"))
    if not (graded or solution or locked):
        return None
    id, source = mark["grade_id"], _source(raw)
    called = CHECK.search(source)
    if graded and not solution:
        return Marked(id, "check", called[1] if called else id.removeprefix("check_"), source, raw, before)
    role = "written" if graded else "answer" if solution else "locked"
    return Marked(id, role, "" if role == "locked" else id, source, raw, before)


def _source(raw: dict) -> str:
    source = raw["source"]
    return source if isinstance(source, str) else "".join(source)


def _plain(source: str) -> str:
    return "\n".join(lines(source))


# The repair


@dataclass
class Place:
    """A cell of the submission, and the id of the released cell that it is taken for; "" for an ordinary one."""

    cell: Cell
    id: str = ""


def repaired(cells: Iterable[Cell], release: Release) -> tuple[list[Place], list[str]]:
    """The cells in the order and with the marks of the release, and one sentence for everything that was put right.

    Nothing is recognised of a notebook that is not of this lecture; see `recognised`.
    """
    said: list[str] = []
    places = [Place(cell) for cell in cells]
    _take_marks(places, release, said)
    _join_split_answers(places, release, said)
    _settle_doubles(places, release, said)
    _recognise_by_text(places, release, said)
    _restore_kinds(places, release, said)
    _restore_locked(places, release, said)
    _follow_definitions(places, release, said)
    _restore_order(places, release, said)
    _put_back_missing(places, release, said)
    return places, said


def was_changed(source: str, released: str) -> bool:
    """Whether a cell's text says something else than the released one."""
    return _plain(source) != _plain(released)


def recognised(places: list[Place], release: Release) -> bool:
    """Whether an answer or a check of the release is among the cells."""
    return any(place.id and release.marked[place.id].role != "locked" for place in places)


def answered(places: list[Place], release: Release) -> int:
    """How many exercises are worked on, in their own cell or in another."""
    texts = {place.id: place.cell.source for place in places if place.id}
    written = [m for m in release.of_role("written") if was_changed(texts.get(m.id, m.source), m.source)]
    return len(written) + sum(
        _answers(texts.get(m.id, ""), m) or any(_answers_elsewhere(place, m, release) for place in places)
        for m in release.of_role("answer")
    )


def notebook_text(places: list[Place], release: Release) -> str:
    """The JSON text (nbformat 4.5) of the repaired notebook: the release's metadata, no outputs, an id a cell."""
    reserved = {marked.raw.get("id") for marked in release.marked.values()}
    used, cells = set(reserved), []
    for number, place in enumerate(places, start=1):
        raw = _raw(place, release)
        if not place.id:
            raw["id"] = place.cell.id if place.cell.id and place.cell.id not in used else _free(f"own-{number}", used)
        elif not raw.get("id"):
            raw["id"] = _free(re.sub(r"[^a-zA-Z0-9_-]", "-", place.id)[:60] or "cell", used)
        used.add(raw["id"])
        cells.append(raw)
    notebook = {"cells": cells, "metadata": release.metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, ensure_ascii=False) + "\n"  # nobody reads it: indented, it takes ten times as long


def _raw(place: Place, release: Release) -> dict[str, Any]:
    cell = place.cell
    if place.id:
        raw = {**release.marked[place.id].raw, "source": cell.source}
    else:
        raw = {"cell_type": cell.kind, "id": "", "metadata": {}, "source": cell.source}
    if raw["cell_type"] == "code":
        raw |= {"outputs": [], "execution_count": None}
    elif cell.attachments:
        raw["attachments"] = cell.attachments
    return raw


def _free(wanted: str, used: set) -> str:
    name, number = wanted, 1
    while name in used:
        number += 1
        name = f"{wanted}-{number}"
    return name


# Steps, in the order in which they are taken


def _take_marks(places: list[Place], release: Release, said: list[str]) -> None:
    unknown = []
    for place in places:
        if place.cell.grade_id in release.marked:
            place.id = place.cell.grade_id
        elif any(place.cell.mark.get(key) for key in ("grade", "solution", "locked")):
            unknown.append(place.cell.grade_id or "without a name")
    if unknown:
        listed = ", ".join(_short(name) for name in unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        said.append(
            f"{_count(len(unknown), 'cell')} marked for grading that this lecture does not have ({listed}): "
            "treated as ordinary."
        )


def _join_split_answers(places: list[Place], release: Release, said: list[str]) -> None:
    """A split cell leaves neighbours with one mark; where the text parses only together, it is one answer."""
    for marked in release.of_role("answer"):
        at = _at(places, marked.id)
        for _ in range(MOST_PARTS - 1):
            if at is None or [place.id for place in places[at : at + 2]] != [marked.id] * 2:
                break
            first, second = (place.cell.source for place in places[at : at + 2])
            apart = second.lstrip("\n")[:1] in (" ", "\t") or syntax(first) is None
            if not apart or syntax(f"{first}\n{second}") is None:
                break
            said.append(f"The {marked.name} was split in two; it was joined again.")
            places[at].cell = replace(places[at].cell, source=f"{first}\n{second}")
            del places[at + 1]


def _settle_doubles(places: list[Place], release: Release, said: list[str]) -> None:
    """One cell keeps each mark: of answers the first that was worked on, of locked cells the first as released."""
    for id, marked in release.marked.items():
        claims = [place for place in places if place.id == id]
        if len(claims) < 2:
            continue
        as_released = [_plain(place.cell.source) == _plain(marked.source) for place in claims]
        wanted = marked.role in ("check", "locked")
        kept = claims[as_released.index(wanted)] if wanted in as_released else claims[0]
        for place in claims:
            if place is not kept:
                place.id = ""
        for place in claims:
            # What holds nothing of the student's is dropped: pieces of a locked cell, an empty answer that would undo
            # the real one.
            theirs = (
                not _is_part(place.cell.source, marked.source)
                if wanted
                else _plain(place.cell.source) != _plain(marked.source)
            )
            if place is not kept and not theirs:
                places[:] = [other for other in places if other is not place]
        then = "one was kept" if wanted else "one counts as the answer, and all that differ from the release are run"
        said.append(f"The {marked.name} was there {_times(len(claims))}; {then}.")


def _recognise_by_text(places: list[Place], release: Release, said: list[str]) -> None:
    had_marks = any(place.id for place in places)
    found = []
    # Answers first: a cell that holds both an answer and its check is the answer.
    for marked in sorted(
        release.marked.values(), key=lambda marked: ("answer", "check", "locked", "written").index(marked.role)
    ):
        if any(place.id == marked.id for place in places):
            continue
        free = [place for place in places if not place.id]
        place = RECOGNISERS[marked.role](marked, free, places, release)
        if place is not None:
            place.id = marked.id
            found.append(marked)
    if not found:
        return
    if had_marks:
        said.extend(f"The {marked.name} had lost its mark and was recognised by its text." for marked in found)
    else:
        said.append("The notebook had lost all its marks for grading; its cells were recognised by their text.")


def _answer_by_text(marked: Marked, free: list[Place], places: list[Place], release: Release) -> Place | None:
    theirs = [place for place in free if _answers_elsewhere(place, marked, release)]
    binding = [place for place in free if place.cell.kind == "code" and _binds(place.cell.source, marked.exercise)]
    return next(iter(theirs + [place for place in binding if _is_stub(place.cell, marked)] + binding), None)


def _locked_by_text(marked: Marked, free: list[Place], places: list[Place], release: Release) -> Place | None:
    """The cell that has most of the released lines, and at least half of them."""
    wanted = set(lines(marked.source))
    shared = [len(wanted & set(lines(p.cell.source))) * (p.cell.kind == marked.raw["cell_type"]) for p in free]
    best = max(shared, default=0)
    return free[shared.index(best)] if best and 2 * best >= len(wanted) else None


def _written_by_text(marked: Marked, free: list[Place], places: list[Place], release: Release) -> Place | None:
    """The cell as released, or the first text after the question."""
    texts = [place for place in free if place.cell.kind != "code"]
    for place in texts:
        if _plain(place.cell.source) == _plain(marked.source):
            return place
    for question, place in pairwise(places):
        asked = marked.before.strip() and _plain(question.cell.source) == _plain(marked.before)
        if asked and not place.id and place.cell.kind != "code" and _plain(place.cell.source) not in release.sources:
            return place
    return None


RECOGNISERS = {
    "answer": _answer_by_text,
    "check": _locked_by_text,
    "locked": _locked_by_text,
    "written": _written_by_text,
}


def _restore_kinds(places: list[Place], release: Release, said: list[str]) -> None:
    for place in places:
        if place.id and place.cell.kind != release.marked[place.id].raw["cell_type"]:
            kind = release.marked[place.id].raw["cell_type"]
            said.append(
                f"The {release.marked[place.id].name} had become a {place.cell.kind} cell; "
                f"it was made a {kind} cell again."
            )
            place.cell = replace(place.cell, kind=kind, attachments={} if kind == "code" else place.cell.attachments)


def _restore_locked(places: list[Place], release: Release, said: list[str]) -> None:
    for place in list(places):
        marked = release.marked.get(place.id)
        if marked is None or marked.role not in ("check", "locked"):
            continue
        own = place.cell
        place.cell = replace(own, source=marked.source, attachments={})
        if not was_changed(own.source, marked.source):
            continue
        added = _additions(own.source, marked.source) if own.kind == "code" else ""
        at = next(i for i, other in enumerate(places) if other is place)
        if added:
            extra = Place(Cell("code", added))
            places.insert(at + (marked.role == "locked"), extra)
            missing = [a for a in release.of_role("answer") if _at(places, a.id) is None and _binds(added, a.exercise)]
            extra.id = missing[0].id if missing else ""
        kept = "; what you added runs in a cell of its own" if added else ""
        said.append(f"The {marked.name} was changed; it was put back as released{kept}.")


def _additions(own: str, released: str) -> str:
    """The statements of `own` that are new: none that was released, no checks, nothing that rebinds a released name."""
    tree, reference = syntax(own), syntax(released)
    if tree is None or reference is None:
        return ""
    known = {dump(node) for node in reference.body}
    bound = {name for node in reference.body for name in _targets(node)}
    try:
        new = [
            node
            for node in tree.body
            if dump(node) not in known and not _is_check(node) and not bound & set(_targets(node))
        ]
    except RecursionError:  # nested so deeply that only an attack writes it
        return ""
    return "\n".join(_segment(own, node) for node in new)


def _is_check(node) -> bool:
    call = node.value if isinstance(node, Expr) else None
    return isinstance(call, Call) and isinstance(call.func, Name) and call.func.id == "check"


def _targets(node) -> list[str]:
    """The names that an assignment binds."""
    if isinstance(node, AnnAssign) and node.value:
        targets = [node.target]
    else:
        targets = node.targets if isinstance(node, Assign) else []
    names = [item for target in targets for item in (getattr(target, "elts", None) or [target])]
    return [name.id for name in names if isinstance(name, Name)]


def _segment(source: str, node) -> str:
    """The lines of a statement as they stand in the text, its decorators and magics included."""
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    if node.col_offset:  # not the first statement of its line
        return get_source_segment(source, node) or ""
    return "\n".join(source.split("\n")[first - 1 : node.end_lineno])


def _follow_definitions(places: list[Place], release: Release, said: list[str]) -> None:
    """An answer cell that is as released, or without its function, gives way to the last cell that defines it.

    One cell may define any number of functions. Copies of the stub are dropped, also those in a cell with other code: they
    would undo the definition.
    """
    gave_way = []
    for marked in release.of_role("answer"):
        named = [place for place in places if place.cell.kind == "code" and marked.exercise in place.cell.source]
        elsewhere = [place for place in named if place.id != marked.id and _answers_elsewhere(place, marked, release)]
        own = next((place for place in places if place.id == marked.id), None)
        answers = own is not None and _answers(own.cell.source, marked)
        if own is None:
            found = elsewhere or _answered_at(places, marked.exercise, release) is not None
            what = f"{marked.exercise} is defined in another cell, which counts"
            said.append(f"The {marked.name} is missing; {what if found else 'the exercise counts as not answered'}.")
        if not (elsewhere or answers):
            continue
        stubs = {id(place) for place in named if place.id in ("", marked.id) and _is_stub(place.cell, marked)}
        places[:] = [place for place in places if id(place) not in stubs]
        if own is not None and not answers:
            what = "was left as released" if id(own) in stubs else f"does not answer {marked.exercise}"
            said.append(
                f"The {marked.name} {what}; another cell that defines {marked.exercise} was taken as the answer."
            )
            own.id = ""
            gave_way.append((marked, elsewhere[-1]))
        elif stubs:
            said.append(f"The {marked.name} was there once more as released; that copy was left out.")
        if _leave_out_later_stubs(places, marked, release):
            said.append(f"Below the answer to {marked.exercise} its stub stood once more; it was left out.")
    for marked, place in gave_way:  # when all wrong marks are gone: two answers may have changed places
        place.id = place.id or marked.id


def _answers(source: str, marked: Marked) -> bool:
    """Whether a text defines an exercise's function in another way than the release, comments and docstrings aside."""
    if not (_mentions_definition(source, marked.exercise) and was_changed(source, marked.source)):
        return False
    if not _has_last_line(source, marked.source):
        return True
    own = _definitions(source, marked.exercise)
    return not own or not all(_is_unanswered(given, marked) for given in own)


def _answers_elsewhere(place: Place, marked: Marked, release: Release) -> bool:
    """Whether an exercise is answered by a cell that is not known to be its own."""
    source = place.cell.source
    return (
        place.cell.kind == "code"
        and defines(source, marked.exercise)
        and not OTHER_LANGUAGE.match(source)
        and _plain(source) not in release.sources
        and _answers(source, marked)
    )


def _is_stub(cell: Cell, marked: Marked) -> bool:
    """Whether a cell is as released, comments and docstrings aside."""
    if cell.kind != "code" or not _has_last_line(cell.source, marked.source):
        return False
    return not was_changed(cell.source, marked.source) or _said_by(cell.source) == _said_by(marked.source)


def _has_last_line(source: str, released: str) -> bool:
    """Whether the last line of the stub is there, as in every stub: most answers need not be parsed."""
    return set(lines(released)[-1:]) <= set(lines(source))


def _leave_out_later_stubs(places: list[Place], marked: Marked, release: Release) -> bool:
    """Take the stub of an exercise out of what runs after its last answer; whether there was one.

    Where the released function is whole and something beside it is to be written, it stays: it may be part of the answer.
    """
    found = False
    for place in reversed(places):
        source = place.cell.source
        if place.cell.kind != "code" or marked.exercise not in source or OTHER_LANGUAGE.match(source):
            continue
        blank = _has_last_line(source, marked.source) and _is_blank(marked)
        own = _definitions(source, marked.exercise) if blank else []
        stubs = list(takewhile(lambda given: _is_unanswered(given, marked), reversed(own)))
        if stubs:
            place.cell, found = replace(place.cell, source=_without(source, stubs)), True
        if len(stubs) < len(own) or (not own and _plain(source) not in release.sources and _answers(source, marked)):
            break
    return found


def _is_blank(marked: Marked) -> bool:
    """Whether what is to be written belongs into the exercise's own function, which then raises as released."""
    return any(stub.raises for stub in _definitions(marked.source, marked.exercise)[-1:])


def _without(source: str, definitions: list["Definition"]) -> str:
    """A text without some of its functions or classes, the last of them first."""
    kept = source.split("\n")
    for given in definitions:
        del kept[given.first - 1 : given.last]
    return "\n".join(kept)


@dataclass(frozen=True)
class Definition:
    """A statement at top level that gives names a meaning.

    Attributes:
        first, last: its lines, decorators included; the first is 1.
        says: a digest of what it says, comments and docstrings aside.
        end: the same of the error with which a function ends; "" of any other.
        returns: whether a function may end before that.
        raises: whether an error is raised somewhere in it.
    """

    names: tuple[str, ...]
    first: int
    last: int
    says: str
    end: str
    returns: bool
    raises: bool


def _definitions(source: str, name: str) -> list[Definition]:
    """The statements at top level that give `name` a meaning; none of a text that does not parse."""
    return [given for given in _outline(source) if name in given.names]


@functools.lru_cache(maxsize=2048)  # a cell is asked about each exercise, and a long one takes half a second to parse
def _outline(source: str) -> tuple[Definition, ...]:
    tree = syntax(source)
    return tuple(_definition(node) for node in tree.body if _bound(node)) if tree else ()


def _definition(node: AST) -> Definition:
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    end = node.body[-1] if isinstance(node, FunctionDef) else None
    error = _digest(end) if isinstance(end, Raise) else ""
    raises = any(isinstance(inner, Raise) for inner in walk(node))
    return Definition(tuple(_bound(node)), first, node.end_lineno, _digest(node), error, _returns(node), raises)


def _bound(node) -> list[str]:
    """The names that a statement gives a meaning."""
    if isinstance(node, (FunctionDef, AsyncFunctionDef, ClassDef)):
        return [node.name]
    if isinstance(node, (Import, ImportFrom)):
        return [alias.asname or alias.name for alias in node.names]
    return _targets(node)


def _returns(node: AST) -> bool:
    """Whether a function returns or yields, the functions in it aside."""
    waiting = list(iter_child_nodes(node))
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, (Return, Yield, YieldFrom)):
            return True
        if not isinstance(inner, (FunctionDef, AsyncFunctionDef, ClassDef, Lambda)):
            waiting += iter_child_nodes(inner)
    return False


def _is_unanswered(given: Definition, marked: Marked) -> bool:
    """Whether a definition is the stub, comments and docstrings aside, or one that has been begun and can only end as the stub."""
    released = _definitions(marked.source, marked.exercise)[-1:]
    return any(given.says == stub.says or (given.end == stub.end != "" and not given.returns) for stub in released)


@functools.lru_cache(maxsize=2048)
def _said_by(source: str) -> str:
    return _digest(syntax(source))


def _digest(tree: AST | None) -> str:
    """Of what a syntax tree says without its docstrings, which it loses; of none, and of one that only an attack nests so deeply."""
    if tree is None:
        return ""
    for node in walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], Expr) and isinstance(body[0].value, Constant):
            del body[0]
    try:
        return hashlib.sha256(dump(tree).encode("utf-8", "surrogatepass")).hexdigest()
    except RecursionError:
        return ""


def _restore_order(places: list[Place], release: Release, said: list[str]) -> None:
    """The setup before all code, every check after its answer."""
    for marked in release.of_role("check"):
        check, answer = _at(places, marked.id), _answered_at(places, marked.exercise, release)
        if check is not None and answer is not None and check < answer:
            place = places.pop(check)
            places.insert(_below(places, answer - 1, marked, release), place)
            said.append(f"The {marked.name} stood before the answer; it was moved after it.")
    for marked in reversed(release.of_role("locked")):
        if marked.raw["cell_type"] != "code":
            continue
        at = _at(places, marked.id)
        others = [
            i for i, place in enumerate(places) if place.id and release.marked[place.id].role in ("answer", "check")
        ]
        if at is not None and others and at > others[0] and _leads(marked, release):
            places.insert(others[0], places.pop(at))
            said.append(f"The {marked.name} stood after the exercises; it was moved before them.")


def _below(places: list[Place], answer: int, check: Marked, release: Release) -> int:
    """Where a check goes: below its answer, and below the earlier checks of other answers in the same cell."""
    checks = [marked.id for marked in release.of_role("check")]
    earlier, at = checks[: checks.index(check.id)], answer + 1
    while at < len(places) and places[at].id in earlier:
        at += 1
    return at


def _leads(marked: Marked, release: Release) -> bool:
    """Whether a locked cell stands before every answer and check in the release."""
    ids = list(release.marked)
    return all(ids.index(marked.id) < ids.index(other.id) for other in release.of_role("answer", "check"))


def _put_back_missing(places: list[Place], release: Release, said: list[str]) -> None:
    if not recognised(places, release):
        return
    ids = list(release.marked)
    for id, marked in release.marked.items():
        if marked.role == "answer" or _at(places, id) is not None:
            continue
        answer = _answered_at(places, marked.exercise, release)
        earlier = [at for other in ids[: ids.index(id)] if (at := _at(places, other)) is not None]
        if answer is not None and marked.role == "check":
            at = _below(places, answer, marked, release)
        else:
            at = max(earlier, default=-1) + 1
        places.insert(at, Place(Cell(marked.raw["cell_type"], marked.source), id))
        said.append(f"The {marked.name} was missing; it was put back.")


def _answered_at(places: list[Place], exercise: str, release: Release) -> int | None:
    """Where an exercise's answer stands; where there is no cell for it, the last one that defines its function."""
    answer = release.answer(exercise)
    at = _at(places, answer.id) if answer else None
    if at is None and exercise:
        code = [(i, place.cell.source) for i, place in enumerate(places) if place.cell.kind == "code"]
        defining = [i for i, source in code if defines(source, exercise)]
        at = max(defining or [i for i, source in code if _binds(source, exercise)], default=None)
    return at


def _at(places: list[Place], id: str) -> int | None:
    return next((at for at, place in enumerate(places) if id and place.id == id), None)


# Texts are searched line by line, so that broken code is understood too.


def defines(source: str, name: str) -> bool:
    """Whether the text makes `name` a function or a class at top level."""
    return (
        _has_line(r"(?:async\s+def|def|class)\s+{0}\b", source, name)
        or _has_line(r"{0}\s*=\s*lambda\b", source, name)
        or _has_line(r"from\s+\S+\s+import\s[^\n]*\b{0}\b(?!\s+as\b)", source, name)
    )


def _binds(source: str, name: str) -> bool:
    """Whether the text gives `name` any meaning at top level."""
    return defines(source, name) or _has_line(r"{0}\s*(?::[^=\n]+)?=(?!=)", source, name)


def _mentions_definition(source: str, name: str) -> bool:
    """Whether the text gives `name` a meaning, be it inside of something else."""
    return _binds(source, name) or _has_line(r".*\b(?:def|class)\s+{0}\b", source, name)


def _has_line(begun: str, source: str, name: str) -> bool:
    return name in source and bool(re.search("^" + begun.format(re.escape(name)), source, re.M))


def _is_part(piece: str, whole: str) -> bool:
    """Whether every line of `piece` is one of `whole`, or a piece of it."""
    return _plain(piece) in _plain(whole) or set(lines(piece)) <= set(lines(whole))


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def _count(number: int, noun: str) -> str:
    return f"1 {noun} is" if number == 1 else f"{number} {noun}s are"


def _times(number: int) -> str:
    return "twice" if number == 2 else f"{number} times"


def similarity(cells: Iterable[Cell], release: Release) -> float:
    """How much of the release is found again: marks, each of which counts 1, and texts, up to 1 in all."""
    cells = list(cells)
    shared = {cell.grade_id for cell in cells} & set(release.marked)
    texts = {_plain(cell.source) for cell in cells} & release.sources
    return len(shared) + len(texts) / (1 + len(release.sources))


# Another lecture's notebook


def exercise_marked(mark: dict[str, Any]) -> str:
    """The id of the exercise whose answer or check a cell with nbgrader's `mark` is; "" for locked cells and others."""
    id = mark.get("grade_id")
    if not isinstance(id, str) or not (mark.get("grade") or mark.get("solution")):
        return ""
    return id if mark.get("solution") else id.removeprefix("check_")


def looks_like(cells: Iterable[Cell], course: Path | None, lecture_name: str) -> str:
    """The released lecture in `course`, other than this one, that has most in common with a notebook; "" for none."""
    cells, found = tuple(cells), {}
    for path in sorted(course.glob("*/*.ipynb")) if course else ():
        if path.stem != path.parent.name or path.stem == lecture_name:
            continue
        with contextlib.suppress(OSError, CourseError):
            release = release_of(path.read_text(encoding="utf-8"))
            places, _ = repaired(cells, release)
            if recognised(places, release):
                found[path.stem] = similarity(cells, release)
    return max(found, key=lambda name: found[name], default="")
