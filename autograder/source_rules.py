"""Rules that can be read from the text of an answer: no loop, no forbidden name.

Best effort, and the threat model says so: text that is assembled at run time is not seen here, its operations are counted
by the probe.
"""

import ast
import functools
import re
from collections.abc import Iterable
from dataclasses import replace

from IPython.core.inputtransformer2 import TransformerManager

from .compare import ASPECTS, UNSEEN, Difference
from .properties import COUNTED, Property

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
LOOP_MODULES = {
    "functools": ("reduce",),
    "itertools": ("accumulate", "starmap"),
}  # module: what calls a function again and again
THREADS = ("threading", "_thread", "concurrent", "multiprocessing", "asyncio", "fork")  # where no operation is counted


def broken_rule(cells: Iterable[str], name: str, properties=(), forbidden=()) -> Difference | None:
    """The first rule that the definition of `name` in `cells`, or what it calls there, breaks; None when it breaks none.

    Args:
        cells: texts of code cells, in order. One that does not parse breaks none: it failed when it ran. A file that was
            handed in is a cell that begins with %%writefile.
    """
    parts = _reached(list(_trees(cells)), name)
    if any(wanted.name == "no_loops" for wanted in properties):
        for part in parts:
            if found := _loop(part) or _recursion(part, parts):
                return replace(found, got=found.got + _elsewhere(part, name))
    counted = any(wanted.name in COUNTED for wanted in properties)
    for part in parts:
        for node in ast.walk(part):
            if used := next((name for name in _names(node) if name in forbidden), None):
                return _differs(f"no {used}", f"{used} in line {node.lineno}{_elsewhere(part, name)}")
            if counted and (used := next((name for name in _names(node) if name in THREADS), None)):
                got = f"{used} in line {node.lineno}{_elsewhere(part, name)}"
                return _differs("no other thread or process", got, UNSEEN)
    return None


def rests_on_source(properties: Iterable[Property], forbidden: Iterable[str]) -> bool:
    """Whether anything that is demanded of an answer is read from its text."""
    return bool(forbidden) or any(wanted.name in ("no_loops", *COUNTED) for wanted in properties)


def defined(cells: Iterable[str], name: str) -> bool:
    """Whether `name` is given a value somewhere in `cells` that can be read; not by exec, globals() or the like."""
    return bool(_reached(list(_trees(cells)), name))


def _elsewhere(part, name):
    """Whose line it is, where it is not that of the function that was asked for."""
    return f" of {part.name}" if getattr(part, "name", name) != name else ""


def _trees(cells):
    """(name of the module that the cell writes or "", its tree) of each cell that can be read."""
    for text in cells:
        if (tree := _tree(text)) is not None:
            yield _written(text), tree


@functools.lru_cache(maxsize=256)  # the cells of a notebook are read once an exercise
def _tree(text):
    text = text.partition("\n")[2] if _written(text) else text  # its lines are those of the file
    plain = "\n".join("pass" if line.startswith(("%", "!")) else line for line in text.splitlines())
    for read in (
        str,
        TransformerManager().transform_cell,
    ):  # IPython's own, where it is not Python alone: f?, %time, !ls
        try:
            return ast.parse(read(plain))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _written(text):
    """The name of the module that a cell writes, or ""."""
    found = re.match(r"%%(?:write)?file\s+(?:-a\s+)?(?:\S*/)?(\w+)\.py\s", text)
    return found[1] if found else ""


def _differs(expected, got, next_step=ASPECTS["source"]):
    return Difference("source", "your code", expected, got, next_step)


def _reached(trees, name):
    """The definitions of `name` and, one after another, of the functions, classes and values it mentions.

    Of several at the top level the last one holds, as in Python, and the one before where it is made of that (`f = f`); nested
    ones all count, for which one runs is not known, and so does what is put into a name: an import, an attribute, an item.

    Returns:
        dict of each definition, a node, to those that it mentions.
    """
    tops, more, put = {}, {}, {f"{module}." for module, _ in trees if module}
    for _, tree in trees:
        top = set(map(id, tree.body))
        for node in ast.walk(tree):
            for defined in _defines(node):
                if id(node) in top:
                    tops.setdefault(defined, []).append(node)
                else:
                    more.setdefault(defined, []).append(node)
            for defined, part in _puts(node):
                more.setdefault(defined, []).append(part)
                if isinstance(part, ast.Import) and f"{part.names[0].name}." in put:  # under another name
                    put.add(f"{defined}.")
            put |= _attributes_put(node)
    reached, mentions, waiting = {}, {}, [name]
    while waiting:
        current = waiting.pop()
        if current in reached:
            continue
        reached[current] = more.get(current, [])[:]
        for node in reversed(tops.get(current, [])):
            reached[current].insert(0, node)
            if isinstance(node, DEFINITIONS) or current not in _taken(node):
                break
        mentions |= {node: sorted(_taken(node, put)) for node in reached[current]}
        waiting += sorted(set().union(*(mentions[node] for node in reached[current])))
    return {node: [other for name in names for other in reached[name]] for node, names in mentions.items()}


DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _taken(node, put=frozenset()):
    """The names that a definition takes from outside: a function's own variables are no mention of namesakes elsewhere.

    Args:
        put: attributes that are names, too, for they were put onto something; and "module." of modules that were handed in,
            whose attributes are.
    """
    taken, waiting = set(), [(node, frozenset())]  # a stack: a sum of a thousand terms is a thousand levels deep
    while waiting:
        node, own = waiting.pop()
        if isinstance(node, ast.Name):
            taken |= {node.id} - own
        if isinstance(node, ast.Attribute) and (node.attr in put or f"{getattr(node.value, 'id', '')}." in put):
            taken.add(node.attr)
        if isinstance(node, ast.ImportFrom):
            taken |= {alias.name for alias in node.names}
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
    if isinstance(node, DEFINITIONS):
        return [node.name]
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value:
        return [target.id for target in _targets(node) if isinstance(target, ast.Name)]
    return []


def _targets(node):
    """What an assignment assigns to."""
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _puts(node):
    """(name, node) of what is put into names otherwise than by `name = value`."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:  # a statement of its own: its neighbours are no mention
            single = ast.Import([alias]) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, [alias], 0)
            yield alias.asname or alias.name.split(".")[0], ast.copy_location(single, node)
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
        for target in _targets(node):
            names = (
                []
                if isinstance(target, ast.Name) and isinstance(node, (ast.Assign, ast.AnnAssign))
                else _stored(target)
            )
            yield from ((name, node) for name in names)
    elif attribute := _set_by_call(node):
        yield attribute, node


def _stored(target):
    """The names that a target stores into: those of a tuple, an attribute's own and that of what it belongs to."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for item in target.elts for name in _stored(item)]
    if isinstance(target, ast.Attribute):
        return [target.attr, *_stored(target.value)]
    if isinstance(target, (ast.Subscript, ast.Starred)):
        return _stored(target.value)
    return [target.id] if isinstance(target, ast.Name) and target.id != "self" else []


def _attributes_put(node):
    """The attributes that a statement puts onto something, but for an object's own."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return {t.attr for t in _targets(node) if isinstance(t, ast.Attribute) and not _own_attribute(t)}
    return {_set_by_call(node)} - {""}


def _set_by_call(node):
    """The name in setattr(owner, "name", value), or ""."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setattr" and len(node.args) == 3:
        return str(getattr(node.args[1], "value", ""))
    return ""


def _loop(part):
    """The first loop over elements in a part of the code, as a Difference."""
    for node in ast.walk(part):
        if type(node) in LOOPS:
            return _differs(NO_LOOP, f"{LOOPS[type(node)]} in line {node.lineno}", AT_ONCE)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOOP_CALLS:
            return _differs(LOOP_CALLS[node.func.attr], f".{node.func.attr}() in line {node.lineno}", AT_ONCE)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LOOP_BUILTINS:
            return _differs(LOOP_BUILTINS[node.func.id], f"{node.func.id}() in line {node.lineno}", AT_ONCE)
        if isinstance(node, (ast.Attribute, ast.ImportFrom)) and (called := _called_again(node)):
            return _differs(NO_CALLS, f"{called}() in line {node.lineno}", AT_ONCE)
    return None


def _recursion(part, parts):
    """The Difference of a function that comes back to itself, by what it mentions or as a method of its own object."""
    if isinstance(part, DEFINITIONS) or isinstance(getattr(part, "value", None), ast.Lambda):
        seen, waiting = set(), [part]
        while waiting:
            for other in parts[waiting.pop()]:
                if other is part:
                    return _differs(NO_LOOP, f"a function that calls itself in line {part.lineno}", AT_ONCE)
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
    for method in ast.walk(part):
        if isinstance(method, FUNCTIONS[:2]) and any(_own_attribute(node) == method.name for node in ast.walk(method)):
            return _differs(NO_LOOP, f"a function that calls itself in line {method.lineno}", AT_ONCE)
    return None


def _own_attribute(node):
    """The name in self.name, or ""."""
    return node.attr if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self" else ""


def _called_again(node):
    """Of LOOP_MODULES, what a node mentions, or ""."""
    module = node.module if isinstance(node, ast.ImportFrom) else getattr(node.value, "id", "")
    names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else [node.attr]
    return next((name for name in names if name in LOOP_MODULES.get(module, ())), "")


def _names(node):
    """What a node mentions by name."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        return (node.attr,)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        modules = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
        return tuple(part for module in modules for part in module.split("."))
    return ()
