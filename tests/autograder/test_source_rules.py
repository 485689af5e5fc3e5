"""What the rules about the source of an answer find, and what they leave alone."""

import time

import pytest

from autograder.properties import never_calls, no_loops
from autograder.source_rules import broken_rule, defined

NOTEBOOK = "c = torch.sparse_csr_tensor(*parts)\nwords = [w for w in text]\n"  # a cell of the lecture


ITSELF = "a function that calls itself"


def found(answer, *cells):
    broken = broken_rule([NOTEBOOK, *cells, answer], "f", [no_loops], ["sparse_csr_tensor"])
    return broken and broken.got.split(" in line ")[0]


@pytest.mark.parametrize(
    "answer",
    [
        "def f(c):\n    return c",
        "def f(x):\n    c = x + 1\n    return c",
        "def f(x):\n    words = x\n    return words",
        "def f(x, *words, **c):\n    return words, c",
        "def f(x):\n    with x as c:\n        return c",
        "def f(x):\n    return (lambda c: c + 1)(x)",
        "def f(x):\n    if (c := x) is None:\n        return c",
    ],
)
def test_a_variable_of_an_answer_is_no_mention_of_a_namesake_in_another_cell(answer):
    assert found(answer) is None


@pytest.mark.parametrize(
    ("answer", "construct"),
    [
        ("def f(x):\n    return x + c", "sparse_csr_tensor"),
        ("def f(x):\n    return words", "a list comprehension"),
        ("def f(x, like=c):\n    return like", "sparse_csr_tensor"),
        ("def f(x, c=c):\n    return c", "sparse_csr_tensor"),
        ("def f(x):\n    global c\n    c = x\n    return c", "sparse_csr_tensor"),
        ("def f(x):\n    def g(words):\n        return words\n    return g(words)", "a list comprehension"),
        ("def f(x):\n    y = x\n    return helper(y)", "a for loop"),
        ("def f(x):\n    return torch.sparse_csr_tensor(*x)", "sparse_csr_tensor"),
    ],
)
def test_what_an_answer_takes_from_other_cells_counts_as_its_own(answer, construct):
    assert found(answer, "def helper(y):\n    for v in y:\n        pass\n    return v") == construct


def test_a_line_of_a_file_is_counted_in_that_file():
    broken = broken_rule(
        ["%%writefile mine.py\ndef f(x):\n    for v in x: pass", "from mine import f"], "f", [no_loops]
    )
    assert broken.got == "a for loop in line 2"


@pytest.mark.parametrize("term", ["x", "(lambda c: c)(x)"])
def test_a_long_or_deep_answer_is_read_to_its_end(term):
    total = " + ".join([term] * 1500)
    assert found(f"def f(x):\n    return {total}") is None
    assert found(f"def f(x):\n    return c + {total}") == "sparse_csr_tensor"
    assert found("def f(x):\n" + "    y = x\n" * 15_000 + "    return c") == "sparse_csr_tensor"


@pytest.mark.parametrize(
    ("answer", "cells", "construct"),
    [
        ("def f(x):\n    return make(x)", ["from torch import sparse_csr_tensor as make"], "sparse_csr_tensor"),
        ("def f(x):\n    return make(x)", ["make: object = torch.sparse_csr_tensor"], "sparse_csr_tensor"),
        ("def f(x):\n    return make(x)", ["make, other = torch.sparse_csr_tensor, 1"], "sparse_csr_tensor"),
        ("def f(x):\n    return made['it'](x)", ["made = {}\nmade['it'] = torch.sparse_csr_tensor"], "sparse_csr_tensor"),
        ("def f(x):\n    return x.rows()", ["def rows(x):\n    for v in x: pass\ntorch.Tensor.rows = rows"], "a for loop"),
        ("def f(x):\n    return x.rows()", ["setattr(torch.Tensor, 'rows', lambda x: [v for v in x])"], "a list comprehension"),
        ("def f(x):\n    for v in x: pass\n\nf?", [], "a for loop"),
        ("def f(x):\n    for v in x: pass\nif True:\n    %time f(c)", [], "a for loop"),
        ("def f(x):\n    for v in x: pass\nfiles = !ls", [], "a for loop"),
        ("from functools import reduce\ndef f(x):\n    return reduce(torch.add, x)", [], "reduce()"),
        ("def f(x):\n    return functools.reduce(torch.add, x)", ["import functools"], "reduce()"),
        ("def f(x):\n    return list(itertools.starmap(torch.add, x))", ["import itertools"], "starmap()"),
        ("from mine import f", ["%%writefile mine.py\ndef f(x):\n    for v in x: pass"], "a for loop"),
        ("import mine\ndef f(x):\n    return mine.g(x)", ["%%writefile mine.py\ndef g(x):\n    for v in x: pass"], "a for loop"),
        ("def f(x):\n    for v in x: pass\nf = f", [], "a for loop"),
        ("def f(x):\n    return f(x[1:])", [], ITSELF),
        ("f = lambda x: f(x[1:]) if len(x) else 0", [], ITSELF),
        ("def f(x):\n    def g(y):\n        return g(y[1:])\n    return g(x)", [], ITSELF),
        ("def f(x):\n    return g(x)\ndef g(x):\n    return f(x[1:])", [], ITSELF),
        ("def f(x):\n    return more['it'](x[1:])\nmore = {'it': f}", [], ITSELF),
        ("def f(x):\n    return Sum().of(x)", ["class Sum:\n    def of(self, x): return x[0] + self.of(x[1:])"], ITSELF),
        ("def f(x):\n    return Sum(x).it", ["class Sum:\n    def __init__(self, x): self.it = x[0] + Sum(x[1:]).it"], ITSELF),
        ("m = map\ndef f(x):\n    return list(m(abs, x))", [], "map()"),
        ("def f(x):\n    rows = x.tolist\n    return rows()", [], ".tolist()"),
        ("def f(x):\n    return getattr(x, 'tolist')()", [], ".tolist()"),
        ("from operator import methodcaller\ndef f(x):\n    return methodcaller('tolist')(x)", [], ".tolist()"),
        ("def f(x):\n    return getattr(torch, 'sparse_csr_tensor')(x)", [], "sparse_csr_tensor"),
        ("def f(x):\n    return ft.reduce(torch.add, x)", ["import functools as ft"], "reduce()"),
        ("def f(x):\n    return builtins.map(abs, x)", ["import builtins"], "map()"),
        ("from builtins import map as m\ndef f(x):\n    return m(abs, x)", [], "map()"),
        ("import mine as m\nf = m.g", ["%%writefile sub/mine.py\ndef g(x):\n    for v in x: pass"], "a for loop"),
        ("def f(x):\n    return torch.Tensor.__dict__['tolist'](x)", [], ".tolist()"),
        ("g = getattr\ndef f(x):\n    return g(x, 'tolist')()", [], ".tolist()"),
        ("def f(x):\n    match x:\n        case torch.Tensor(tolist=rows):\n            return rows()", [], ".tolist()"),
        ("def f(x):\n    return vars(torch)['sparse_csr_tensor'](x)", [], "sparse_csr_tensor"),
        ("def f(x):\n    return x._sparse_csr_tensor()", [], "_sparse_csr_tensor"),
        ("def f(x):\n    return getattr(builtins, 'map')(abs, x)", ["import builtins"], "map()"),
        ("def f(x):\n    return __import__('functools').reduce(torch.add, x)", [], "reduce()"),
        ("ft = importlib.import_module('functools')\ndef f(x):\n    return ft.reduce(torch.add, x)", [], "reduce()"),
        ("def f(x):\n    return sys.modules['itertools'].starmap(torch.add, x)", ["import sys"], "starmap()"),
        ("def f(x):\n    return pool.map(abs, x)", ["pool = ThreadPoolExecutor(1)"], ".map()"),
        ("def f(x):\n    return np.asarray(x)", ["import numpy as np"], "asarray()"),
        ("def f(x):\n    return max(x, key=abs)", [], "max()"),
        ("def f(x):\n    return list(iter(x.step, 0))", [], "iter()"),
        ("def f(x):\n    return re.sub('a', x.step, 'a' * len(x))", ["import re"], "sub()"),
        ("def f(x):\n    return list(DataLoader(x))", ["from torch.utils.data import DataLoader"], "DataLoader()"),
        ("def f(x):\n    return list(Walk(x))", ["class Walk:\n    def __next__(self): return 1"], "__next__()"),
        ("def f(x):\n    def go(me, n):\n        return me(me, n - 1)\n    return go(go, 3)", [], ITSELF),
        ("def f(x):\n    return Sum()(x)", ["class Sum:\n    def __call__(self, x): return x[0] + self(x[1:])"], ITSELF),
        ("def f(x):\n    return helper(x)", ["helper = get_ipython().user_ns['hidden']"], "get_ipython()"),
        ("def f(x):\n    return types.FunctionType(compile('x', 'x', 'eval'), {})()", [], "compile()"),
        ("def f(x):\n    return unit.f(x)", ["unit = torch.jit.CompilationUnit('...')"], ".CompilationUnit()"),
        ("import written_by_a_cell\ndef f(x):\n    return written_by_a_cell.f(x)", [], "written_by_a_cell, which was not handed in"),
    ],
)  # fmt: skip
def test_a_rule_is_not_evaded_by_where_or_how_something_is_written(answer, cells, construct):
    got = found(answer, *cells)
    assert got and got.split(" of ")[0] == construct


@pytest.mark.parametrize(
    ("answer", "cells"),
    [
        ("def f(x):\n    return math.prod(x.shape)", ["import math, sparse_csr_tensor"]),
        ("def f(x):\n    return x.relu()", ["import mine", "%%writefile mine.py\ndef relu(x):\n    for v in x: pass"]),
        ("def f(x):\n    return x.max()", ["class Net:\n    def __init__(self):\n        self.max = [v for v in text]"]),
        ("def f(x):\n    return mine.g(x)", ["import mine", "%%writefile mine.py\ndef g(x): return x\ndef h(x):\n    for v in x: pass"]),
        ("%%time\ndef f(x):\n    return x\n\nf?", []),
        ("def f(x):\n    return x\nf = torch.compile(f)", []),
        ("def relu(x):\n    return torch.relu(x)\ndef f(x):\n    return relu(x)", []),
        ("class Net(Base):\n    def __init__(self):\n        super().__init__()\nf = Net()", []),
        ("def f(x):\n    return x\nprint(f(1))", []),
        ("plain = f\ndef f(x):\n    return plain(x)", ["def f(x):\n    return x"]),
        ("def f(x):\n    map = x > 0\n    return x[map]", []),
        ("def filter(x, mask):\n    return x[mask]\ndef f(x):\n    return filter(x, x > 0)", []),
        ("rest = ''\na, b = !ls\nfiles[0]=!ls\ndef f(x):\n    return x", []),
        ("def f(x):\n    'tolist() and numpy are for later. torch.sparse_csr_tensor, too.'\n    return x * np.pi", ["import numpy as np"]),
        ("import written_by_a_cell\ndef f(x):\n    return x", []),
        ("from pack.mine import g\ndef f(x):\n    return g(x)", ["%%writefile pack/mine.py\ndef g(x): return x"]),
        ("def f(x):\n    return model(x)", ["class Net(nn.Module):\n    def forward(self, x): return x\nmodel = Net().eval()"]),
        ("def f(x):\n    return compile(x)", ["from torch import compile"]),
        ("def f(x, given):\n    return ~x if given in ('numpy.ma', 'key_padding_mask') else x", []),
        ("def f(x):\n    re, im = x.real, x.imag\n    return re.sub(im)", []),
    ],
)  # fmt: skip
def test_what_stands_beside_an_answer_breaks_no_rule_of_it(answer, cells):
    assert found(answer, *cells) is None


@pytest.mark.parametrize(
    ("cell", "readable"),
    [
        ("def f(x):\n    return x", True),
        ("if True:\n    f = lambda x: x", True),
        ("class Answer:\n    pass\nf = Answer().solve", True),
        ("from mine import f", True),
        ("%%time\ndef f(x):\n    return x", True),
        ("exec('def f(x): return x')", False),
        ("globals()['f'] = lambda x: x", False),
        ("def g(x):\n    return x", False),
    ],
)
def test_an_answer_is_defined_where_its_definition_can_be_read(cell, readable):
    assert defined([NOTEBOOK, cell], "f") is readable


@pytest.mark.parametrize(
    ("cells", "used"),
    [
        (["import threading", "def f(x):\n    t = threading.Thread(target=g)\n    return x + 0"], "threading"),
        (["from concurrent.futures import ThreadPoolExecutor as P", "def f(x):\n    return P(1)"], "concurrent"),
        (["import os\ndef helper():\n    return os.fork()", "def f(x):\n    return helper()"], "fork"),
        (["import threading\nt = threading.Thread()", "def f(x):\n    return x"], None),
        (["def f(x):\n    with torch._C._DisableTorchDispatch():\n        return x.clone()"], "_C"),
        (
            [
                "from torch.utils._python_dispatch import _disable_current_modes as off",
                "def f(x):\n    with off(): return x",
            ],
            "_python_dispatch",
        ),
        (["def f(x):\n    return __import__('torch._subclasses', fromlist=['x'])"], "_subclasses"),
    ],
)
def test_where_operations_are_counted_no_thread_may_do_them(cells, used):
    broken = broken_rule(cells, "f", [never_calls("clone")])
    assert (broken and broken.got.split(" in line ")[0]) == used
    assert broken_rule(cells, "f", []) is None


def many(count, line):
    return "\n".join(line.format(i, i + 1) for i in range(count))


@pytest.mark.parametrize(
    ("cells", "got"),
    [
        ([many(400, "def f{}(x): return f{}(x)"), "f = f0"], "more"),
        (
            [",".join(f"a{i}" for i in range(20_000)) + " = range(20000)", "def f(x):\n    return x\nf = (f, a0)[0]"],
            None,
        ),
        (["a = 1\n" * 30_000, "f = a"], None),
        ([many(400, "files{} = !ls") + "\ndef f(x):\n    return x"], None),
        (["x = '" + "a" * 200_000 + "'", "def f(x):\n    return x"], "200028"),
        ([many(190, "def f{}(x): return x\nf{} = f1 = f2 = f3 = f4 = 1"), "f = f0"], None),
    ],
)
def test_code_that_is_made_to_be_long_to_read_is_not_read_for_long(cells, got):
    started = time.process_time()
    broken = broken_rule(cells, "f", [no_loops])
    assert (broken and broken.got) == got
    assert time.process_time() - started < 10  # seconds; it was minutes
