"""Rules that can be read from the text of an answer: no loop, no forbidden name.

Best effort, and the threat model says so: text that is assembled at run time is not seen here, its operations are counted
by the probe.
"""

import ast
import functools
from collections.abc import Iterable
from dataclasses import replace

from .compare import ASPECTS, Difference

LOOPS = {
    ast.For: "a for loop",
    ast.AsyncFor: "a for loop",
    ast.While: "a while loop",
    ast.ListComp: "a list comprehension",
    ast.SetComp: "a set comprehension",
    ast.DictComp: "a dict comprehension",
    ast.GeneratorExp: "a generator expression",
}
NO_LOOP = "no Python loop"
NO_COPY = "no copy of the elements to Python or NumPy"
NO_CALLS = "no call of a Python function for each element"
NO_TEXT = "no code inside a text"
AT_ONCE = (
    "Let torch work on the whole tensor at once. Refused is a loop over elements in Python, and likewise a copy of them to "
    "Python or NumPy: .tolist(), .numpy()."
)
LOOP_CALLS = {  # method: what is asked for instead
    "tolist": NO_COPY, "numpy": NO_COPY, "map_": NO_CALLS, "apply_": NO_CALLS, "vectorize": NO_CALLS,
}  # fmt: skip
LOOP_BUILTINS = {"map": NO_CALLS, "filter": NO_CALLS, "exec": NO_TEXT, "eval": NO_TEXT}


def broken_rule(cells: Iterable[str], name: str, properties=(), forbidden=()) -> Difference | None:
    """The first rule that the definition of `name` in `cells`, or what it calls there, breaks; None when it breaks none.

    Args:
        cells: texts of code cells, in order. One that does not parse breaks none: it failed when it ran.
    """
    parts = _reached(list(_trees(cells)), name)
    if any(wanted.name == "no_loops" for wanted in properties):
        for part in parts:
            if found := _loop(part):
                return replace(found, got=found.got + _elsewhere(part, name))
    for part in parts:
        for node in ast.walk(part):
            if (used := _name(node)) in forbidden:
                return _differs(f"no {used}", f"{used} in line {node.lineno}{_elsewhere(part, name)}")
    return None


def _elsewhere(part, name):
    """Whose line it is, where it is not that of the function that was asked for."""
    return f" of {part.name}" if getattr(part, "name", name) != name else ""


def _trees(cells):
    for text in cells:
        if (tree := _tree(text)) is not None:
            yield tree


@functools.lru_cache(maxsize=256)  # the cells of a notebook are read once an exercise
def _tree(text):
    plain = "\n".join("pass" if line.startswith(("%", "!")) else line for line in text.splitlines())
    try:
        return ast.parse(plain)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _differs(expected, got, next_step=ASPECTS["source"]):
    return Difference("source", "your code", expected, got, next_step)


def _reached(trees, name):
    """The definitions of `name` and, one after another, of the functions, classes and values it mentions.

    Of several at the top level the last one holds, as in Python; nested ones all count, for which one runs is not known.
    """
    last, nested = {}, {}
    for tree in trees:
        top = set(map(id, tree.body))
        for node in ast.walk(tree):
            for defined in _defines(node):
                if id(node) in top:
                    last[defined] = node
                else:
                    nested.setdefault(defined, []).append(node)
    reached, waiting = {}, [name]
    while waiting:
        current = waiting.pop()
        if current in reached:
            continue
        reached[current] = [*([last[current]] if current in last else []), *nested.get(current, [])]
        waiting += sorted(set().union(*map(_taken, reached[current])))
    return [node for nodes in reached.values() for node in nodes]


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _taken(node):
    """The names that a definition takes from outside: a function's own variables are no mention of namesakes elsewhere."""
    taken, waiting = set(), [(node, frozenset())]  # a stack: a sum of a thousand terms is a thousand levels deep
    while waiting:
        node, own = waiting.pop()
        if isinstance(node, ast.Name):
            taken |= {node.id} - own
        inside = {}  # the body; defaults, annotations and decorators are looked up outside
        if isinstance(node, FUNCTIONS):
            inside = dict.fromkeys(node.body if isinstance(node.body, list) else [node.body], own | _own(node))
        waiting += [(child, inside.get(child, own)) for child in ast.iter_child_nodes(node)]
    return taken


def _own(function):
    """The parameters of a function, and what it assigns in its own scope."""
    given = function.args
    own = {a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg) if a}
    waiting, outside = list(function.body) if isinstance(function.body, list) else [function.body], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            outside |= set(node.names)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):  # another scope
            waiting += ast.iter_child_nodes(node)
    return own - outside


def _defines(node):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


def _loop(part):
    """The first loop over elements in a part of the code, as a Difference."""
    for node in ast.walk(part):
        if type(node) in LOOPS:
            return _differs(NO_LOOP, f"{LOOPS[type(node)]} in line {node.lineno}", AT_ONCE)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOOP_CALLS:
            return _differs(LOOP_CALLS[node.func.attr], f".{node.func.attr}() in line {node.lineno}", AT_ONCE)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LOOP_BUILTINS:
            return _differs(LOOP_BUILTINS[node.func.id], f"{node.func.id}() in line {node.lineno}", AT_ONCE)
    return None


def _name(node):
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.alias):
        return node.name.split(".")[-1]
    return None
