"""Rules that can be read from the text of an answer: no loop, no forbidden name.

Best effort, and the threat model says so: text that is assembled at run time is not seen here, its operations are counted
by the probe.
"""

import ast
import bisect
import collections
import functools
import importlib.util
import itertools
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
COUNTED_ONLY = "no other thread or process, and nothing that works beside the count"
AT_ONCE = (
    "Let torch work on the whole tensor at once. Refused is a loop over elements in Python, and likewise a copy of them to "
    "Python or NumPy: .tolist(), .numpy()."
)
LOOP_ATTRIBUTES = {  # of a tensor, of NumPy, of torch.jit, of a pool of threads: what is asked for instead
    "tolist": NO_COPY, "numpy": NO_COPY, "__array__": NO_COPY, "map_": NO_CALLS, "apply_": NO_CALLS, "vectorize": NO_CALLS,
    "frompyfunc": NO_CALLS, "apply_along_axis": NO_CALLS, "fromiter": NO_CALLS, "nditer": NO_CALLS, "map": NO_CALLS,
    "CompilationUnit": NO_TEXT,
}  # fmt: skip
LOOP_BUILTINS = {
    "map": NO_CALLS, "filter": NO_CALLS, "exec": NO_TEXT, "eval": NO_TEXT, "compile": NO_TEXT, "get_ipython": NO_TEXT,
}  # fmt: skip
LOOP_MODULES = {  # module: what in it calls a function again and again, or copies the elements, and what is asked for instead
    "builtins": LOOP_BUILTINS,
    "functools": dict.fromkeys(("reduce",), NO_CALLS),
    "itertools": dict.fromkeys(("accumulate", "starmap", "takewhile", "dropwhile", "filterfalse"), NO_CALLS),
    "re": dict.fromkeys(("sub", "subn"), NO_CALLS),
    "torch.utils.data": dict.fromkeys(("DataLoader",), NO_CALLS),
    "timeit": dict.fromkeys(("timeit", "repeat", "Timer"), NO_CALLS),
    "numpy": dict.fromkeys(("array", "asarray", "asanyarray", "ascontiguousarray", "from_dlpack"), NO_COPY),
}
CALLERS = dict.fromkeys(("sorted", "sort", "min", "max", "iter"), NO_CALLS)  # with a key, or up to a last value
LOOP_METHODS = ("__next__", "__getitem__", "__class_getitem__", "__missing__")  # of what Python walks through by itself
# Where no operation is counted: in another thread or process, and where torch is told to leave the counting mode out.
UNCOUNTED = (
    "threading", "_thread", "concurrent", "multiprocessing", "asyncio", "fork", "subprocess", "ctypes",
    "_C", "_python_dispatch", "_mode_utils", "_subclasses",
)  # fmt: skip


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
    if unread := sorted(filter(_unread(cells), itertools.chain(*map(_imported, parts)))):
        return _differs("modules that can be read", f"{unread[0]}, which was not handed in", READABLE)
    if any(wanted.name == "no_loops" for wanted in properties):
        for part in parts:
            if found := _loop(part, code) or _recursion(part, code.mentions):
                return replace(found, got=found.got + _elsewhere(part, name))
    counted = any(wanted.name in COUNTED for wanted in properties)
    for part in parts:
        for node in ast.walk(part):
            for used in _names(node):
                got = f"{used} in line {node.lineno}{_elsewhere(part, name)}"
                plain = used if isinstance(node, ast.Name) else used.strip("_")  # torch._softmax is the softmax, too
                if found := next((name for name in (used, plain) if name in forbidden), ""):
                    return _differs(f"no {found}", got)
                if counted and used in UNCOUNTED:
                    return _differs(COUNTED_ONLY, got, UNSEEN)
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


def _imported(part):
    """The modules, each by the first part of its name, that an import takes something from."""
    if isinstance(part, ast.Import):
        return [alias.name.split(".")[0] for alias in part.names]
    return [part.module.split(".")[0]] if isinstance(part, ast.ImportFrom) and part.module and not part.level else []


def _unread(cells):
    """Whether a module is neither installed nor among those that were handed in: its text stands nowhere."""
    handed_in = {word for text in cells if (path := _path(text)) for word in path.split("/")}
    return lambda module: module not in handed_in and not _installed(module)


@functools.lru_cache(maxsize=1024)
def _installed(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # __main__, which has none
        return True


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
    return _path(text).rpartition("/")[2]


def _path(text):
    """The path of the module that a cell writes, without its ending, or ""."""
    found = re.match(r"%%(?:write)?file\s+(?:-a\s+)?((?:\S*/)?\w+)\.py\s", text)
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
        """name: module, of the modules that have a name, by an import or by `name = __import__("module")`."""
        imported = (alias for part in self.parts if isinstance(part, ast.Import) for alias in part.names)
        named = {"__builtins__": "builtins"} | {alias.asname or alias.name: alias.name for alias in imported}
        for part in self.parts:
            if isinstance(part, ast.Assign) and (module := _module(part.value, named)):
                named |= {target.id: module for target in part.targets if isinstance(target, ast.Name)}
        return named


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
        if isinstance(node, FUNCTIONS[:2]) and node.name in LOOP_METHODS:
            return _differs(NO_LOOP, f"{node.name}() in line {node.lineno}", AT_ONCE)
        for name, instead in _called_again(node, outside, code.modules):
            return _differs(instead, f"{name}() in line {node.lineno}", AT_ONCE)
    return None


def _called_again(node, outside, modules):
    """(what a node mentions, what is asked for instead) of all that calls a function for each element, or copies them."""
    names, known = (), {}
    if isinstance(node, ast.Name):
        names, known = {node.id} & outside, LOOP_BUILTINS
    elif isinstance(node, ast.Attribute):
        names, known = (node.attr,), LOOP_MODULES.get(_module(node.value, modules), {})
    elif isinstance(node, ast.ImportFrom):
        names, known = [alias.name for alias in node.names], LOOP_MODULES.get(node.module, {})
    elif isinstance(node, ast.Call):
        names, known = (_called_by(node),), CALLERS
    elif isinstance(node, ast.Constant):  # getattr(builtins, "map")
        names, known = _names(node), LOOP_BUILTINS
    yield from ((name, known[name]) for name in names if name in known)
    if isinstance(node, (ast.Attribute, ast.Constant, ast.MatchClass)):
        # "numpy.ma" names something of a module's, and no attribute called numpy.
        named = _names(node)[-1:] if isinstance(node, ast.Constant) else _names(node)
        yield from ((f".{name}", LOOP_ATTRIBUTES[name]) for name in named if name in LOOP_ATTRIBUTES)


def _called_by(call):
    """What of Python's own calls a function again and again in this call: one that orders by a key, iter() to a last value."""
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    by_key = any(given.arg == "key" for given in call.keywords)
    return name if by_key or (name == "iter" and len(call.args) == 2) else ""


def _module(owner, modules):
    """The module of LOOP_MODULES that an expression says, or "": by a name of it, or as __import__ and sys.modules take it."""
    if isinstance(owner, ast.Name):
        said = modules.get(owner.id, "")
    elif isinstance(owner, ast.Call):
        said = getattr(owner.args[0], "value", "") if owner.args else ""
    else:
        said = getattr(getattr(owner, "slice", None), "value", "")
    return said if isinstance(said, str) and said in LOOP_MODULES else ""


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
    for function in ast.walk(part):
        if isinstance(function, FUNCTIONS) and any(_comes_back(node, function) for node in ast.walk(function)):
            return _differs(NO_LOOP, f"a function that calls itself in line {function.lineno}", AT_ONCE)
    return None


def _comes_back(node, function):
    """Whether a node calls the method that it stands in, or gives a function to that function itself: `go(go, n)`."""
    name = getattr(function, "name", "")
    if name and _own_attribute(node) == name:
        return True
    called = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
    if called == "self":
        return name in ("__call__", "forward")
    return bool(called) and any(getattr(given, "id", "") == called for given in node.args)


def _own_attribute(node):
    """The name in self.name, or ""."""
    return node.attr if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self" else ""


def _names(node):
    """What a node mentions: by name, or by a text that is nothing but a name, as getattr and __import__ take it."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        return (node.attr, f"{getattr(node.value, 'id', '')}.{node.attr}")
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        parts = node.value.split(".")
        return tuple(parts) if all(map(str.isidentifier, parts)) else ()
    if isinstance(node, ast.MatchClass):
        return tuple(node.kwd_attrs)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        module = getattr(node, "module", None)
        modules = [f"{module}.{alias.name}" if module else alias.name for alias in node.names]
        dotted = [whole.split(".") for whole in modules]
        return tuple(name for parts in dotted for name in (*parts, ".".join(parts[:2])))
    return ()
