"""Lecture 00, start here: one worked exercise and one of your own, so that every tool has been used once."""

import torch

from autograder.exercises import exercise, prediction
from autograder.properties import no_warnings, same_kind, same_sharing, same_strides

prediction_dtype = prediction(
    "P1",
    "What is `torch.tensor([1, 2, 3]).dtype`, the type of the numbers inside?",
    {
        "a": (
            "torch.int64, because the list holds Python ints",
            "Right: `torch.tensor` takes the type from the values. Ints give int64, floats float32, bools bool.",
        ),
        "b": (
            "torch.float32, because torch is made for decimal numbers",
            "float32 is what torch picks for Python *floats*. These are ints, and torch looks at what you give it.",
        ),
        "c": (
            "int, the Python type",
            "A tensor stores raw numbers of one fixed size, not Python objects, so its type is one of torch's own.",
        ),
    },
    "a",
)

prediction_assignment = prediction(
    "P2",
    "`x = torch.tensor([1, 2])`, then `y = x`, then `y.add_(1)`. What does `x` hold now?",
    {
        "a": (
            "[1, 2]: y is a copy of x",
            "`y = x` copies nothing. It gives the same tensor a second name, as it would with a Python list.",
        ),
        "b": (
            "[2, 3]: x and y are two names of one tensor",
            "Right. A method that ends in `_` writes into the tensor itself, and there is only one tensor here.",
        ),
        "c": (
            "an error: a tensor cannot be changed",
            "Tensors can be changed. A trailing `_`, as in `add_`, marks the methods that do it.",
        ),
    },
    "b",
)

prediction_green = prediction(
    "P3",
    "A check says “visible checks passed”. What do you know?",
    {
        "a": (
            "The exercise has full points",
            "Not yet: you have seen a few cases. Grading runs more, with other numbers and odd inputs.",
        ),
        "b": (
            "Nothing, a check is only decoration",
            "It is worth more than that: the visible cases are real ones, the first of those that grading uses.",
        ),
        "c": (
            "The cases I can see came out right; more cases run when it is graded",
            "Right. An answer that does what the task says passes those; one fitted to the visible numbers does not.",
        ),
    },
    "c",
)


# ---- 0.1 -------------------------------------------------------------------------------------------------------------


@exercise(
    "0.1",
    points=1,
    minutes=2,
    stars=1,
    properties=[same_sharing, no_warnings],
    hints=[
        "The wrong attempt above gave back the right numbers. What happened to the tensor that was handed in?",
        "`x += 1` writes into the tensor x, as a method whose name ends in `_` does. The operator `+` makes a new one.",
        "The whole answer is one line: `return x + 1`.",
    ],
)
def plus_one(x):
    return x + 1


@plus_one.cases
def _(rng):
    yield torch.tensor([1, 2, 3])
    yield torch.tensor([[0.5, -1.0], [2.0, 4.0]])
    yield torch.tensor(7)
    yield rng.matrix(3, 4).t()
    yield torch.tensor([3], dtype=torch.int32)
    yield torch.tensor([], dtype=torch.float32)
    for _ in range(25):
        dtype = rng.choice([torch.int64, torch.int32, torch.float32, torch.float64])
        yield rng.integers(*(rng.integer(1, 4) for _ in range(rng.integer(1, 3))), dtype=dtype)


@plus_one.wrong(
    "X-plus_one-1",
    "The numbers are right, but the tensor that was handed in has changed, too: `add_` and `+=` write into it. "
    "`x + 1` makes a new tensor.",
    sample="wrong_copy",
)
def _(x):
    return x.add_(1)


@plus_one.wrong("X-plus_one-2", "This gives the input back as it was. Something has to be added before the return.")
def _(x):
    return x


@plus_one.wrong("X-plus_one-3", "The function gives nothing back: `print` only shows a result. End with `return`.")
def _(x):
    print(x + 1)


@plus_one.wrong(
    "X-plus_one-4",
    "Adding `1.0` turns whole numbers into decimal ones. Add the int `1`, and the type of the input is kept.",
)
def _(x):
    return x + 1.0


@plus_one.wrong(
    "X-plus_one-5",
    "This is one number for the whole tensor. Every element has to be one larger, so the shape stays.",
)
def _(x):
    return x.sum() + 1


@plus_one.wrong(
    "X-plus_one-6",
    "This is a Python list, not a tensor. `x + 1` works on all elements at once and stays a tensor.",
)
def _(x):
    return (x + 1).tolist()


@plus_one.right
def _(x):
    return x.clone().add_(1)


@plus_one.right
def _(x):
    import torch

    return torch.add(x, 1)


# ---- 0.2 -------------------------------------------------------------------------------------------------------------


@exercise(
    "0.2",
    points=1,
    minutes=5,
    stars=1,
    properties=[same_kind, same_strides, no_warnings],
    tolerance=(0.0, 0.0),  # float32's rounding is smaller than the usual tolerance of float64
    hints=[
        "Three things are asked for: the shape (2 rows, 3 columns), the value in every place, and the type float64. "
        "Is there a function that fills a shape with a value?",
        "`torch.full(size, fill_value, dtype=...)` makes a filled tensor. The size is a tuple, rows first.",
        "`return torch.full((2, 3), value, dtype=...)`: put the type there. What is float64 called in torch?",
    ],
)
def two_by_three(value):
    return torch.full((2, 3), value, dtype=torch.float64)


@two_by_three.cases
def _(rng):
    yield 7
    yield 0.1
    yield -2.5
    yield 0
    yield 2**40 + 1
    yield 1 / 3
    for _ in range(14):
        yield rng.integer(-1000, 1000)
        yield rng.integer(-1000, 1000) / 7


@two_by_three.wrong(
    "X-two_by_three-1",
    "This tensor is float32, torch's usual type for decimal numbers. Say which type you want: `dtype=torch.float64`.",
    sample="wrong_duplicates",
)
def _(value):
    import torch

    return torch.ones(2, 3) * value


@two_by_three.wrong(
    "X-two_by_three-2",
    "The values and the type are right, but the tensor has one dimension with six elements. "
    "Two rows of three are two dimensions: (2, 3).",
    sample="wrong_rank",
)
def _(value):
    import torch

    return torch.full((6,), value, dtype=torch.float64)


@two_by_three.wrong("X-two_by_three-3", "This has 3 rows and 2 columns. A size is read rows first: 2×3 is (2, 3).")
def _(value):
    import torch

    return torch.full((3, 2), value, dtype=torch.float64)


@two_by_three.wrong(
    "X-two_by_three-4",
    "The type is float64, but the digits went through float32 on the way, and that keeps only about seven. "
    "Converting afterwards cannot bring them back: make the tensor as float64 from the start.",
)
def _(value):
    import torch

    return (torch.ones(2, 3) * value).double()


@two_by_three.wrong(
    "X-two_by_three-5",
    "Without `dtype` torch takes the type from the value: an int gives int64, a float gives float32. Name the type.",
)
def _(value):
    import torch

    return torch.full((2, 3), value)


@two_by_three.wrong(
    "X-two_by_three-6",
    "This is a nested Python list. Wrap it: `torch.tensor(..., dtype=torch.float64)`.",
)
def _(value):
    return [[value, value, value], [value, value, value]]


@two_by_three.wrong(
    "X-two_by_three-7",
    "This shows six places, but there is one number in memory behind them: `expand` repeats without storing. "
    "Lecture 01 is about exactly that. Here each place shall have a number of its own: use `torch.full`.",
)
def _(value):
    import torch

    return torch.tensor(value, dtype=torch.float64).expand(2, 3)


@two_by_three.wrong(
    "X-two_by_three-8",
    "The type is float64, but without `dtype` torch takes a float as float32 first, and that keeps only about seven "
    "digits. `.double()` afterwards cannot bring them back: name the type where the tensor is made.",
)
def _(value):
    import torch

    return torch.full((2, 3), value).double()


@two_by_three.right
def _(value):
    import torch

    return torch.tensor([[value] * 3] * 2, dtype=torch.float64)


@two_by_three.right
def _(value):
    import torch

    return torch.empty(2, 3, dtype=torch.float64).fill_(value)
