"""No regular expression of ours takes longer than in proportion to the text that it reads, which a student may have written."""

import ast
import re
import time
from pathlib import Path
from re import _constants as kinds
from re import _parser

import pytest

import autograder

METHODS = ("search", "match", "fullmatch", "sub", "findall", "finditer", "split")
REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)
LENGTH = 100_000  # characters: what takes the square of it in steps takes many seconds
SHORT = {  # read text of so many characters at most
    "archive.py: MOODLE": 1000,  # the name of an entry
    "archive.py: CANVAS": 1000,
    "archive.py: BLACKBOARD": 1000,
    "archive.py: re.sub 34": 1000,
}


def patterns():
    """name: (pattern, flags, the method that it is called with) of every regular expression in the package."""
    found = {}
    for path in sorted(Path(autograder.__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        used = {
            ast.unparse(c.func.value): c.func.attr
            for c in calls
            if isinstance(c.func, ast.Attribute) and c.func.attr in METHODS
        }
        named = {
            id(n.value): n.targets[0].id
            for n in ast.walk(tree)
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
        }
        for number, call in enumerate(calls):
            called = ast.unparse(call.func)
            if called not in ("re.compile", "_has_line", *(f"re.{method}" for method in METHODS)):
                continue
            pattern = _text(call.args[0])
            if isinstance(pattern, bytes):
                pattern = pattern.decode("latin-1")
            flags = sum(getattr(re, flag) for flag in re.findall(r"re\.([A-Z]+)\b", ast.unparse(call)))
            if called == "_has_line":
                pattern, flags, method = "^" + pattern.format("name"), re.M, "search"
            else:
                method = (
                    used.get(named.get(id(call)), "search") if called == "re.compile" else called.removeprefix("re.")
                )
            found[f"{path.name}: {named.get(id(call)) or f'{called} {number}'}"] = (pattern, flags, method)
    return found


def _text(node):
    """A pattern with a name in the place of what is put into it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "name" for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return node.value if isinstance(node, ast.Constant) else "name"


def attacks(parsed, letters):
    """Texts that begin as a pattern wants and go on with what one of its repetitions takes, again and again."""
    for before, item, after in _repetitions(list(parsed), letters, ""):
        yield before + _long(item) + "\0"
        yield _long(before + item)
        yield _long(item)
        yield before + _long(item + after)


def _long(text):
    return text * (LENGTH // max(len(text), 1))


def _repetitions(parts, letters, before):
    """(what the pattern wants before, what a repetition takes, what it wants after) of every repetition."""
    for at, (kind, value) in enumerate(parts):
        after = "".join(_sample(part, letters) for part in parts[at + 1 : at + 3])
        if kind in REPEATS:
            if value[1] == kinds.MAXREPEAT:
                inner = list(value[2])
                if len(inner) == 1 and inner[0][0] in (
                    kinds.IN,
                    kinds.ANY,
                    kinds.NOT_LITERAL,
                    kinds.LITERAL,
                    kinds.CATEGORY,
                ):
                    yield from ((before, letter, after) for letter in _taken(inner[0], letters))
                else:
                    yield before, "".join(_sample(part, letters) for part in inner), after
            yield from _repetitions(list(value[2]), letters, before)
        elif kind == kinds.SUBPATTERN:
            yield from _repetitions(list(value[3]), letters, before)
        elif kind == kinds.BRANCH:
            for branch in value[1]:
                yield from _repetitions(list(branch), letters, before)
        elif kind in (kinds.ASSERT, kinds.ASSERT_NOT):
            yield from _repetitions(list(value[1]), letters, before)
        before += _sample((kind, value), letters)


def _taken(part, letters):
    """The letters that one part of a pattern takes."""
    kind, _ = part
    if kind == kinds.ANY:
        return [letter for letter in letters if letter != "\n"]
    one = _parser.SubPattern(_parser.State(), [part])
    compiled = re._compiler.compile(one) if hasattr(re, "_compiler") else None
    return [letter for letter in letters if compiled.fullmatch(letter)]


def _sample(part, letters):
    """The shortest text that a part of a pattern takes."""
    kind, value = part
    if kind in REPEATS:
        return "".join(_sample(inner, letters) for inner in value[2]) * max(value[0], 0)
    if kind == kinds.SUBPATTERN:
        return "".join(_sample(inner, letters) for inner in value[3])
    if kind == kinds.BRANCH:
        return "".join(_sample(inner, letters) for inner in value[1][0])
    if kind == kinds.LITERAL:
        return chr(value)
    if kind in (kinds.IN, kinds.ANY, kinds.NOT_LITERAL, kinds.CATEGORY):
        return (_taken(part, letters) or [""])[0]
    return ""


FOUND = patterns()


def test_the_regular_expressions_are_found():
    assert len(FOUND) > 50 and SHORT.keys() <= FOUND.keys()
    assert {"draft.py: WEB_PAGE", "diagnosis.py: NAMES", "gradebook.py: FAILED", "repair.py: CHECK"} <= FOUND.keys()


@pytest.mark.parametrize("name", FOUND)
def test_it_reads_what_is_made_to_be_long_to_read_in_time(name):
    pattern, flags, method = FOUND[name]
    compiled = re.compile(pattern, flags)
    literal = set(re.sub(r"\\.|[()\[\]?*+{}|^$]", "", pattern))
    letters = sorted({"a", "1", " ", "\n", "_", ".", "/", *literal} - {"\\"})
    call = getattr(compiled, method)
    for text in attacks(_parser.parse(pattern, flags), letters):
        text, started = text[: SHORT.get(name, LENGTH)], time.process_time()
        if method == "sub":
            call("", text)
        else:
            found = call(text)
            list(found) if method == "finditer" else None
        assert time.process_time() - started < 0.3, (pattern, text[:40])
