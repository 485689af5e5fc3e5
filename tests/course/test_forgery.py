"""Answers that know nothing and lie about what they return, handed in beside blank ones: they earn nothing."""

import json

import pytest

from autograder import notebooks
from autograder.exercises import load_lecture
from autograder.grade import grade_submission
from autograder.records import Submission
from autograder.settings import load_settings

from .test_exercises import SOLUTIONS

FORGED = {  # each earned full points while the facts were computed in the student's process
    ("01_storage", "fair_timings"): '''
def fair_timings(statements, values, threads, seconds):
    from torch.utils import benchmark

    class Lie(benchmark.Measurement):
        def __init__(self, statement):
            self.task_spec = benchmark.TaskSpec(statement, "pass", num_threads=threads)
        number_per_run, raw_times, median, iqr = 1, [1e9, 1e9], 1.0, 0.0

    return [{"measurement": Lie(s), "median": 1.0, "iqr": 0.0} for s in statements]
''',
    ("03_activations", "counter_example"): '''
def counter_example(claim, n):
    class Yes:
        def __init__(self, truth):
            self.truth = truth
        def same(self, *a, **k):
            return self
        __lt__ = __gt__ = __sub__ = __add__ = __truediv__ = __and__ = __getitem__ = same
        def __getattr__(self, name):
            return self.same
        def __bool__(self):
            return self.truth

    yes = Yes(claim != "always defined")

    class Lie(torch.Tensor):
        __truediv__ = __add__ = __getitem__ = lambda self, other: yes

    return torch.zeros(n).as_subclass(Lie)
''',
    ("09_minimask", "safe"): '''
def safe(name, operands, masks):
    class Zero(torch.Tensor):
        def __eq__(self, other):
            return True
        def sum(self, *a, **k):
            return self
        def backward(self, *a, **k):
            for x in operands:
                x.grad = torch.zeros_like(x)

    torch.equal = torch.allclose = lambda *a, **k: True
    torch.where = lambda mask, a, b=None: a
    torch.isfinite = torch.ones_like
    return operands[0].as_subclass(Zero), masks[0]
''',
    ("07_adagrad", "show_and_fix"): '''
def show_and_fix(kind, n):
    class Number(float):
        def same(self, other):
            return self
        def true(self, other):
            return True
        __gt__ = __lt__ = __le__ = true
        __add__ = __radd__ = __sub__ = __rsub__ = __rmul__ = same
        def __abs__(self):
            return self

    torch.allclose = torch.equal = lambda *a, **k: True
    torch.Tensor.item = lambda self: Number(1)
    return torch.sparse_coo_tensor([[0, 0]], [7.0, 9.0], (n,)), torch.sparse_coo_tensor([[0]], [-1.0], (n,))
''',
    ("07_adagrad", "eps_example"): '''
def eps_example(claim, eps):
    class Yes:
        def __getattr__(self, name):
            return lambda *a, **k: self
        def __bool__(self):
            return True
        def same(self, *a):
            return self
        __mul__ = __add__ = __radd__ = __rmul__ = __truediv__ = __rtruediv__ = __sub__ = __gt__ = __lt__ = __ge__ = same

    class Lie(torch.Tensor):
        def detach(self):
            return self
        def double(self):
            return Yes()
        def __ge__(self, other):
            return Yes()

    torch.maximum = torch.isfinite = lambda *a: Yes()
    lie = torch.zeros(1).as_subclass(Lie)
    return lie, lie
''',
    ("08_masked_semantics", "broken_law"): '''
def broken_law(law, policy, n):
    class Yes:
        def __bool__(self):
            return True
        def same(self, *a, **k):
            return self
        __or__ = __ror__ = __gt__ = __ne__ = __sub__ = __getitem__ = any = all = sum = abs = double = same

    torch.where = torch.add = torch.sub = torch.mul = lambda *a: Yes()
    torch.Tensor.any = torch.Tensor.all = torch.Tensor.__ne__ = torch.Tensor.__gt__ = lambda *a, **k: Yes()
    m = masked_tensor(torch.zeros(n), torch.ones(n, dtype=torch.bool))
    return None if policy == "strict" else [m, m, m][: 3 if law.endswith("a * c") else 2]
''',
    ("08_masked_semantics", "assert_masked_close"): '''
def assert_masked_close(actual, expected, rtol, atol):
    class Anything(str):
        def __eq__(self, other):
            return True
        __hash__ = str.__hash__
        def lower(self):
            return self

    class Error(AssertionError):
        def __str__(self):
            return Anything("type shape dtype layout mask values [0] [1] [0, 0] [0, 1] [1, 1] []")

    if actual is not expected:
        raise Error()
''',
}  # fmt: skip


@pytest.mark.parametrize(("name", "id"), FORGED)
def test_a_forged_answer_earns_nothing(name, id):
    lecture, settings = load_lecture(name, SOLUTIONS), load_settings(SOLUTIONS.parent, trust_code=True)
    notebook = notebooks.read(settings.course / name / f"{name}.ipynb")
    (cell,) = (c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == id)
    cell.source = FORGED[name, id]
    report = grade_submission(Submission("mallory", name, json.dumps(notebook)), lecture, settings, seed=3)
    verdicts = {v.exercise: v for v in report.verdicts}
    assert report.state == "graded" and report.score == 0
    assert verdicts[id].message and "not answered yet" not in verdicts[id].message
