"""Who may import whom (design): arrows point down, no cycles, no import inside a function, one door per library."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("autograder", "maskedtensor_ref", "lecture_pictures")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}

DOORS = {  # library: the only modules of ours that may import it
    "nbgrader": {"autograder.release", "autograder.gradebook", "autograder.nbgrader_plugin"},
    "distributed": {"autograder.farm"},
    "dask": {"autograder.farm"},
    "jinja2": {"autograder.report", "autograder.nbgrader_plugin"},  # pages; a filter of nbgrader's pages
    "jupytext": {"autograder.notebooks"},
    "ipywidgets": {"lecture_pictures.controls"},
    "typer": {"autograder.cli"},
    "tensorboard": {"autograder.events", "autograder.tensorboard"},  # what a run holds; the lab of a notebook
}
LATE = {  # imports inside a function that the design allows, with the reason
    "autograder.cli": "each verb imports its own module, so that --help is quick",
    "autograder.__main__": "the same",
    "autograder.doctor": "looks for what may be missing",
    "autograder.probe": "sent as text to a process where the module may be absent",
}


def imports(path, late=False):
    """Absolute names of what a module imports; with `late`, only what it imports inside a function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = ".".join(path.relative_to(ROOT).with_suffix("").parts[:-1])
    nodes = ast.walk(tree)
    if late:
        functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        nodes = (n for f in functions for n in ast.walk(f))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            yield from (
                f"{module}.{alias.name}" if f"{module}.{alias.name}" in MODULES else module for alias in node.names
            )


def test_there_is_no_cycle():
    graph = {
        name: {i for i in imports(path) if i in MODULES and i != name}
        for name, path in MODULES.items()
        if not name.endswith(("__main__", "cli"))
    }
    done, path = set(), []

    def visit(name):
        assert name not in path, f"cycle: {' -> '.join([*path[path.index(name) :], name])}"
        if name in done:
            return
        path.append(name)
        for other in sorted(graph.get(name, ())):
            visit(other)
        done.add(path.pop())

    for name in sorted(graph):
        visit(name)


@pytest.mark.parametrize("name", sorted(set(MODULES) - set(LATE)))
def test_nothing_is_imported_inside_a_function(name):
    assert list(imports(MODULES[name], late=True)) == []


@pytest.mark.parametrize("library", DOORS)
def test_a_library_has_one_door(library):
    users = {name for name, path in MODULES.items() if any(i.split(".")[0] == library for i in imports(path))}
    assert users <= DOORS[library]


def test_the_reference_imports_torch_only():
    allowed = {"torch", "maskedtensor_ref"}
    import sys

    for name, path in MODULES.items():
        if name.startswith("maskedtensor_ref"):
            outside = {i.split(".")[0] for i in imports(path)} - allowed - sys.stdlib_module_names
            assert not outside, f"{name} imports {outside}"


def test_what_a_student_needs_imports_no_engine():
    reached, waiting = set(), ["autograder.check"]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [i for i in imports(MODULES[name]) if i in MODULES]
    engine = {
        "autograder.judge",
        "autograder.exercises",
        "autograder.kernels",
        "autograder.grade",
        "autograder.farm",
        "autograder.gradebook",
        "autograder.release",
    }
    assert not reached & engine
