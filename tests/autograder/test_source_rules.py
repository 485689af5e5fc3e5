"""What the rules about the source of an answer find, and what they leave alone."""

import pytest

from autograder.properties import no_loops
from autograder.source_rules import broken_rule

NOTEBOOK = "c = torch.sparse_csr_tensor(*parts)\nwords = [w for w in text]\n"  # a cell of the lecture


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


@pytest.mark.parametrize("term", ["x", "(lambda c: c)(x)"])
def test_a_long_or_deep_answer_is_read_to_its_end(term):
    total = " + ".join([term] * 1500)
    assert found(f"def f(x):\n    return {total}") is None
    assert found(f"def f(x):\n    return c + {total}") == "sparse_csr_tensor"
    assert found("def f(x):\n" + "    y = x\n" * 20_000 + "    return c") == "sparse_csr_tensor"
