"""Rules that can be read from the text of an answer: no loop, no forbidden name.

Best effort, and the threat model says so: text that is assembled at run time is not seen here, its operations are counted
by the probe.
"""

import ast
import bisect
import collections
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from . import draft
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
LOOP_ATTRIBUTES = {  # of a tensor or of NumPy: what is asked for instead
    "tolist": NO_COPY, "numpy": NO_COPY, "map_": NO_CALLS, "apply_": NO_CALLS, "vectorize": NO_CALLS,
}  # fmt: skip
LOOP_BUILTINS = {"map": NO_CALLS, "filter": NO_CALLS, "exec": NO_TEXT, "eval": NO_TEXT}
LOOP_MODULES = {  # module: what calls a function again and again
    "builtins": tuple(LOOP_BUILTINS),
    "functools": ("reduce",),
    "itertools": ("accumulate", "starmap"),
}
BY_TEXT = ("getattr", "attrgetter", "methodcaller")  # they take the name of an attribute
THREADS = ("threading", "_thread", "concurrent", "multiprocessing", "asyncio", "fork")  # where no operation is counted


def broken_rule(cells: Iterable[str], name: str, properties=(), forbidden=()) -> Difference | None:
    """The first rule that the definition of `name` in `cells`, or what it calls there, breaks; None when it breaks none.

    Args:
        cells: texts of code cells, in order. One that does not parse breaks none: it failed when it ran. A file that was
            handed in is a cell that begins with %%writefile.
    """
    if not rests_on_source(properties, forbidden):
        return None
    cells = list(cells)
    if (length := sum(map(len, cells))) > draft.LONGEST_PARSED:
        return _differs(f"at most {draft.LONGEST_PARSED} characters of code", f"{length}", READABLE)
    code = _reached(list(_trees(cells)), name)
    parts = code.parts
    if len(parts) > MOST_PARTS:
        return _differs(f"at most {MOST_PARTS} definitions that it rests on", "more", READABLE)
    if any(wanted.name == "no_loops" for wanted in properties):
        for part in parts:
            if found := _loop(part, code) or _recursion(part, code.mentions):
                return replace(found, got=found.got + _elsewhere(part, name))
    counted = any(wanted.name in COUNTED for wanted in properties)
    for part in parts:
        for node in ast.walk(part):
            for used in _names(node):
                got = f"{used} in line {node.lineno}{_elsewhere(part, name)}"
                if used in forbidden:
                    return _differs(f"no {used}", got)
                if counted and used in THREADS:
                    return _differs("no other thread or process", got, UNSEEN)
    return None


LONGEST_KEPT = 5_000  # characters of a cell whose tree is kept: it takes a hundred times as much memory
MOST_PARTS = 200
READABLE = (
    "Not every construct is allowed here, so your code is read: define what this exercise needs in a few short cells."
)


def rests_on_source(properties: Iterable[Property], forbidden: Iterable[str]) -> bool:
    """Whether anything that is demanded of an answer is read from its text."""
    return bool(forbidden) or any(wanted.name in ("no_loops", *COUNTED) for wanted in properties)


def defined(cells: Iterable[str], name: str) -> bool:
    """Whether `name` is given a value somewhere in `cells` that can be read; not by exec, globals() or the like."""
    return bool(_reached(list(_trees(cells)), name).parts)


def _elsewhere(part, name):
    """Whose line it is, where it is not that of the function that was asked for."""
    return f" of {part.name}" if getattr(part, "name", name) != name else ""


def _trees(cells):
    """(name of the module that the cell writes or "", its tree) of each cell that can be read."""
    for text in cells:
        if (tree := _tree(text)) is not None:
            yield _written(text), tree


def _tree(text):
    text = text.partition("\n")[2] if _written(text) else text  # its lines are those of the file
    return _kept_tree(text) if len(text) <= LONGEST_KEPT else draft.syntax(text)


_kept_tree = functools.lru_cache(maxsize=128)(draft.syntax)  # the cells of a notebook are read once an exercise


def _written(text):
    """The name of the module that a cell writes, or ""."""
    found = re.match(r"%%(?:write)?file\s+(?:-a\s+)?(?:\S*/)?(\w+)\.py\s", text)
    return found[1] if found else ""


def _differs(expected, got, next_step=ASPECTS["source"]):
    return Difference("source", "your code", expected, got, next_step)


@dataclass(frozen=True)
class _Code:
    """What an answer rests on.

    Attributes:
        mentions: of each definition (a node) the definitions that it mentions, and the names (texts) of others, of which each
            has its definitions here, too.
        names: all that the cells define.
    """

    mentions: dict
    names: frozenset

    @property
    def parts(self):
        """The definitions, in the order in which they are reached."""
        return [part for part in self.mentions if not isinstance(part, str)]

    @functools.cached_property
    def modules(self):
        """name: module, of the modules that are imported under a name of their own."""
        imported = (alias for part in self.parts if isinstance(part, ast.Import) for alias in part.names)
        return {alias.asname: alias.name for alias in imported if alias.asname}


def _reached(trees, name):
    """The definitions of `name` and, one after another, of the functions, classes and values it mentions.

    Of several at the top level the last one holds, as in Python, and for a statement there the last one before it (`f = f`);
    nested ones all count, for which one runs is not known, and so does what is put into a name: an import, an attribute, an item.
    """
    tops, more, put, place = {}, {}, {f"{module}." for module, _ in trees if module}, {}
    for _, tree in trees:
        for node in tree.body:
            place[node] = len(place)
        for node in ast.walk(tree):
            for defined in _defines(node):
                (tops if node in place else more).setdefault(defined, []).append(node)
            for defined, part in _puts(node):
                more.setdefault(defined, []).append(part)
                if isinstance(part, ast.Import) and f"{part.names[0].name}." in put:  # under another name
                    put.add(f"{defined}.")
            put |= _attributes_put(node)

    def bound(name, by=None):
        known = tops.get(name, [])
        if by in place and not _runs_later(by):
            known = known[: bisect.bisect_left(known, place[by], key=place.get)] or known
        return [*known[-1:], *([name] if name in more else [])]

    mentions, waiting = {}, collections.deque(bound(name))
    while waiting and len(mentions) <= 2 * MOST_PARTS:
        part = waiting.popleft()
        if part not in mentions:
            named = (
                more[part] if isinstance(part, str) else [b for n in sorted(_taken(part, put)) for b in bound(n, part)]
            )
            mentions[part] = named
            waiting += named
    return _Code(mentions, frozenset(tops.keys() | more.keys()))


def _runs_later(part):
    """Whether what a definition mentions is looked up when it is called, and not where it stands."""
    return isinstance(part, DEFINITIONS) or isinstance(getattr(part, "value", None), ast.Lambda)


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
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            taken |= {node.id} - own
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            taken |= {node.target.id} - own
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


def _loop(part, code):
    """The first loop over elements in a part of the code, as a Difference. A mention is enough: `m = map` is called as `m`."""
    outside = _taken(part) - code.names
    for node in ast.walk(part):
        if type(node) in LOOPS:
            return _differs(NO_LOOP, f"{LOOPS[type(node)]} in line {node.lineno}", AT_ONCE)
        for name, instead in _called_again(node, outside, code.modules):
            return _differs(instead, f"{name}() in line {node.lineno}", AT_ONCE)
    return None


def _called_again(node, outside, modules):
    """(what a node mentions, what is asked for instead) of all that calls a function for each element, or copies them."""
    if isinstance(node, ast.Name) and node.id in LOOP_BUILTINS and node.id in outside:
        yield node.id, LOOP_BUILTINS[node.id]
    for name in _names(node) if isinstance(node, (ast.Attribute, ast.Call)) else ():
        if name in LOOP_ATTRIBUTES:
            yield f".{name}", LOOP_ATTRIBUTES[name]
    if isinstance(node, ast.Attribute):
        owner = getattr(node.value, "id", "")
        names, module = [node.attr], modules.get(owner, owner)
    elif isinstance(node, ast.ImportFrom):
        names, module = [alias.name for alias in node.names], node.module
    else:
        return
    for name in names:
        if name in LOOP_MODULES.get(module, ()):
            yield name, LOOP_BUILTINS.get(name, NO_CALLS)


def _recursion(part, mentions):
    """The Difference of a function that comes back to itself, by what it mentions or as a method of its own object."""
    if _runs_later(part):
        seen, waiting = set(), [part]
        while waiting:
            for other in mentions.get(waiting.pop(), ()):
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


def _names(node):
    """What a node mentions by name."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        return (node.attr,)
    if isinstance(node, ast.Call) and {*_names(node.func)} & {*BY_TEXT}:
        return tuple(given.value for given in node.args if isinstance(getattr(given, "value", None), str))
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        modules = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
        return tuple(part for module in modules for part in module.split("."))
    return ()
