"""Rules that can be read from the text of an answer: no loop, no forbidden name.

Best effort, and the threat model says so: text that is assembled at run time is not seen here, its operations are counted
by the probe.
"""

import ast

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
LOOP_CALLS = ("tolist", "item", "numpy", "map_", "apply_", "vectorize")
LOOP_BUILTINS = ("map", "filter", "exec", "eval")


def broken_rule(source: str, name: str, properties=(), forbidden=()) -> Difference | None:
    """The first rule that the definition of `name` in `source`, or what it calls there, breaks; None when it breaks none.

    Text that does not parse breaks none: its cell failed already.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    parts = _reached(tree, name)
    if any(wanted.name == "no_loops" for wanted in properties):
        for part in parts:
            if found := _loop(part):
                return _differs("no Python loop", found)
    for part in parts:
        for node in ast.walk(part):
            if (used := _name(node)) in forbidden:
                return _differs(f"no {used}", f"{used} in line {node.lineno}")
    return None


def _differs(expected, got):
    return Difference("source", "your code", expected, got, ASPECTS["source"])


def _reached(tree, name):
    """The top-level definitions of `name` and, one after another, of the functions and classes it mentions."""
    definitions = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            definitions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    definitions.setdefault(target.id, []).append(node)
    reached, waiting = {}, [name]
    while waiting:
        current = waiting.pop()
        if current in reached or current not in definitions:
            continue
        reached[current] = definitions[current]
        waiting += [n.id for d in definitions[current] for n in ast.walk(d) if isinstance(n, ast.Name)]
    return [node for nodes in reached.values() for node in nodes]


def _loop(part):
    for node in ast.walk(part):
        if type(node) in LOOPS:
            return f"{LOOPS[type(node)]} in line {node.lineno}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOOP_CALLS:
            return f".{node.func.attr}() in line {node.lineno}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LOOP_BUILTINS:
            return f"{node.func.id}() in line {node.lineno}"
    return None


def _name(node):
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.alias):
        return node.name.split(".")[-1]
    return None
