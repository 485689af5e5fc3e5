"""The exercises of lecture 07, Adagrad with masked gradients: references, cases, wrong and right answers, predictions."""

import warnings

import torch

from autograder.exercises import exercise, prediction
from autograder.properties import copy_budget, device_agnostic, never_calls, no_loops, op_budget
from maskedtensor_ref import masked_tensor

TOL = (1e-5, 1e-6)  # two orders of the same float32 operations differ by less
OPTIMISERS = ("Adagrad", "adagrad", "fused_adagrad")  # the step as torch has it
POISON = (float("nan"), float("inf"), 1e30)  # what may stand where nothing is specified


def coo(indices, values, shape):
    """A sparse COO tensor as it is written down: duplicates and zeros stay."""
    return torch.sparse_coo_tensor(torch.as_tensor(indices), torch.as_tensor(values), shape, check_invariants=True)


def csr(dense, zeros=()):
    """A matrix as CSR, with the zeros at the places `zeros` stored, too."""
    given = dense != 0
    for place in zeros:
        given[place] = True
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), given.sum(1).cumsum(0)])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support", UserWarning)
        return torch.sparse_csr_tensor(
            starts, given.nonzero()[:, 1], dense[given], tuple(dense.shape), check_invariants=True
        )


def masked(data, mask, poison=float("nan")):
    """A strided MaskedTensor with `poison` wherever mask is False."""
    return masked_tensor(torch.where(mask, data, torch.full((), poison, dtype=data.dtype)), mask)


def masked_coo(indices, values, mask, shape):
    """A COO MaskedTensor that stores each of values, the unspecified ones too."""
    return masked_tensor(coo(indices, values, shape).coalesce(), coo(indices, mask, shape).coalesce())


def tutorial(dtype=torch.float32):
    """Parameter, state, indices and values of the step that the lecture works through."""
    param = torch.arange(8, dtype=dtype).view(2, 4)
    return param, torch.full_like(param, 0.5), [[0, 1, 1], [2, 0, 2]], torch.tensor([3, 4, 5], dtype=dtype)


def drawn(rng, shape, entries, hybrid=False, dtype=torch.float32):
    """A random COO gradient, in most cases with duplicates; hybrid: its entries are whole rows."""
    dims, rest = (1, shape[1:]) if hybrid else (len(shape), ())
    rows = [rng.integers(1, entries, low=0, high=n - 1) for n in shape[:dims]]
    return coo(torch.cat(rows), rng.normal(entries, *rest, dtype=dtype), shape)


# ---- 7.1 ------------------------------------------------------------------------------------------------------------


@exercise(
    "7.1",
    points=2,
    minutes=5,
    stars=1,
    concepts=["A-04"],
    properties=[device_agnostic, no_loops],
    forbidden=OPTIMISERS,
    visible=6,
    tolerance=TOL,
    hints=[
        "Three lines, in this order: the state grows by the squared gradient, its root tells how much there has been, "
        "and the parameter moves by lr times the gradient divided by that.",
        "Write into the two tensors: state_sum += ..., param -= ... (or add_, addcmul_, addcdiv_). `param = param - "
        "...` would only give a new tensor the old name. eps is added to the root, not under it.",
        "state_sum += grad * ___; std = state_sum.___() + eps; param -= lr * grad / ___",
    ],
)
def dense_step(param, state_sum, grad, lr, eps):
    state_sum += grad * grad
    param -= lr * grad / (state_sum.sqrt() + eps)


@dense_step.call
def _(function, param, state_sum, grads, lr, eps):
    for grad in grads:
        function(param, state_sum, grad, lr, eps)


@dense_step.cases
def _(rng):
    yield torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]), torch.tensor([[3.0, 0.5]]), 0.5, 0.0
    yield torch.tensor([1.0, 2.0]), torch.tensor([7.0, 0.0]), torch.tensor([[3.0, 0.0]]), 0.5, 0.25
    param, state, indices, values = tutorial()
    yield param, state, coo(indices, values, (2, 4)).to_dense()[None], 0.1, 1e-10
    yield torch.tensor([4.0]), torch.tensor([0.0]), torch.tensor([[1.0], [1.0], [-2.0]]), 1.0, 0.5
    yield rng.normal(3, 2).t(), rng.normal(3, 2).abs().t(), rng.normal(2, 2, 3), 0.1, 1e-3
    yield torch.tensor(2.0, dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64), torch.ones(1).double(), 0.1, 0
    yield torch.tensor([]), torch.tensor([]), torch.zeros(1, 0), 0.1, 0.1
    yield torch.ones(6)[::2], torch.zeros(6)[::2], torch.tensor([[1e-12, 1e12, -4.0]]), 0.1, 0.01
    yield rng.normal(3, 4), torch.zeros(3, 4), rng.normal(20, 3, 4), 0.3, 0.05  # twenty steps
    for _ in range(22):
        shape = [rng.integer(1, 4) for _ in range(rng.integer(1, 3))]
        dtype = rng.choice([torch.float32, torch.float64])
        state, grads = rng.normal(*shape, dtype=dtype).abs(), rng.normal(rng.integer(1, 4), *shape, dtype=dtype)
        yield rng.normal(*shape, dtype=dtype), state, grads, rng.choice([0.1, 0.5]), rng.choice([0.05, 0.5])


@dense_step.wrong(
    "X-7.1-1",
    "eps stands under the root. Then it is added to the sum of squares, and weighs as much as its own root: eps = "
    "0.25 counts as 0.5. torch takes the root first and adds eps to it.",
)
def _(param, state_sum, grad, lr, eps):
    state_sum += grad * grad
    param -= lr * grad / (state_sum + eps).sqrt()


@dense_step.wrong(
    "X-7.1-2",
    "The parameter moves by the state of before this step. The state comes first, so that the gradient of this step is "
    "counted in it; without it, a first step would divide by 0.",
)
def _(param, state_sum, grad, lr, eps):
    param -= lr * grad / (state_sum.sqrt() + eps)
    state_sum += grad * grad


@dense_step.wrong("X-7.1-3", "The parameter moves uphill: the step is subtracted, for the loss is to become smaller.")
def _(param, state_sum, grad, lr, eps):
    state_sum += grad * grad
    param += lr * grad / (state_sum.sqrt() + eps)


@dense_step.wrong(
    "X-7.1-4",
    "The tensors of the caller are as before: `param = param - ...` makes a new tensor and gives it the name, inside "
    "your function only. An optimiser writes into what it was given: -=, +=, or a method with an underscore.",
    sample="wrong_copy",
)
def _(param, state_sum, grad, lr, eps):
    state_sum = state_sum + grad * grad
    param = param - lr * grad / (state_sum.sqrt() + eps)
    return param, state_sum


@dense_step.wrong(
    "X-7.1-5",
    "The state forgets: it holds the last squared gradient only. Adagrad keeps the sum over all steps, which is why "
    "what was there has to be added to.",
)
def _(param, state_sum, grad, lr, eps):
    state_sum.copy_(grad * grad)
    param -= lr * grad / (state_sum.sqrt() + eps)


@dense_step.wrong(
    "X-7.1-6",
    "The state grows by the size of the gradient, not by its square. The root of a sum of squares has the unit of a "
    "gradient; the root of a sum of sizes has not.",
)
def _(param, state_sum, grad, lr, eps):
    state_sum += grad.abs()
    param -= lr * grad / (state_sum.sqrt() + eps)


@dense_step.wrong(
    "X-7.1-7", "The root is missing: lr * grad is divided by the sum of squares itself, so large gradients hardly move."
)
def _(param, state_sum, grad, lr, eps):
    state_sum += grad * grad
    param -= lr * grad / (state_sum + eps)


@dense_step.wrong(
    "X-7.1-8",
    "All elements share one number here, the root of the sum over the whole tensor. Adagrad gives each element a step "
    "size of its own: no .sum(), no .norm().",
)
def _(param, state_sum, grad, lr, eps):
    state_sum += grad * grad
    param -= lr * grad / (state_sum.sum().sqrt() + eps)


@dense_step.wrong(
    "X-7.1-9", "The gradient was written to. It belongs to the caller, who may look at it: make new tensors of it."
)
def _(param, state_sum, grad, lr, eps):
    state_sum += grad * grad
    grad /= state_sum.sqrt() + eps
    param -= lr * grad


@dense_step.wrong(
    "X-7.1-10",
    "eps was added to the finished step: division comes before addition. Put brackets round the root and eps: "
    "lr * grad / (root + eps).",
)
def _(param, state_sum, grad, lr, eps):
    state_sum += grad * grad
    param -= lr * grad / state_sum.sqrt() + eps


@dense_step.wrong(
    "X-7.1-11",
    "The state grows by the gradient itself. Gradients of opposite signs cancel then, as if nothing had been; squares "
    "only add up.",
)
def _(param, state_sum, grad, lr, eps):
    state_sum += grad
    param -= lr * grad / (state_sum.sqrt() + eps)


@dense_step.wrong(
    "X-7.1-12",
    "The parameter is right, but the caller's state is as before: `state_sum = state_sum + ...` makes a new tensor that "
    "nobody outside sees, so the next step has no history. Write into it: state_sum += ...",
)
def _(param, state_sum, grad, lr, eps):
    state_sum = state_sum + grad * grad
    param -= lr * grad / (state_sum.sqrt() + eps)


@dense_step.wrong(
    "X-7.1-13",
    "The root was written into the state. A method with an underscore changes its tensor: sqrt_() is not sqrt().",
)
def _(param, state_sum, grad, lr, eps):
    state_sum += grad * grad
    param -= lr * grad / (state_sum.sqrt_() + eps)


@dense_step.right
def _(param, state_sum, grad, lr, eps):
    state_sum.addcmul_(grad, grad, value=1)
    std = state_sum.sqrt().add_(eps)
    param.addcdiv_(grad, std, value=-lr)


@dense_step.right
def _(param, state_sum, grad, lr, eps):
    new = state_sum + grad**2
    state_sum.copy_(new)
    param.copy_(param - grad * (lr / (new**0.5 + eps)))


# ---- 7.2 ------------------------------------------------------------------------------------------------------------


@exercise(
    "7.2",
    points=3,
    minutes=10,
    stars=2,
    concepts=["A-07"],
    visible=4,
    hints=[
        "Put two numbers at one place. (a + b)² is a² + b² + 2ab: what decides whether the sum of the squares is too "
        "large or too small is the sign of ab.",
        "torch.sparse_coo_tensor(indices, values, (n,)) with indices of shape (1, entries), for instance [[0, 0]]. "
        "grad.coalesce() adds what stands at one place; then .indices() and .values() are to be had, and "
        "torch.sparse_coo_tensor puts squares back at the same places (and .coalesce() says that they are in order).",
        'a, b = {"too large": (1.0, ___), "too small": (1.0, ___), "right by luck": (1.0, ___)}[kind]; '
        "grad = torch.sparse_coo_tensor([[0, 0]], [a, b], (n,)); c = grad.coalesce(); "
        "squares = torch.sparse_coo_tensor(c.indices(), c.values() ** ___, (n,)).coalesce()",
    ],
)
def show_and_fix(kind, n):
    b = {"too large": -1.0, "too small": 1.0, "right by luck": 0.0}[kind]
    grad = torch.sparse_coo_tensor([[0, 0]], [1.0, b], (n,), check_invariants=True)
    summed = grad.coalesce()
    squares = torch.sparse_coo_tensor(summed.indices(), summed.values() ** 2, (n,), check_invariants=True)
    return grad, squares.coalesce()


@show_and_fix.facts
def _(answer, kind, n):
    import torch

    pair = isinstance(answer, (list, tuple)) and len(answer) == 2
    facts = {
        "a pair (grad, squares)": pair or answer,
        "both sparse COO": False,
        "both of shape (n,)": False,
        "grad names a place twice": False,
        "squaring first is " + kind: False,
        "squares names no place twice": False,
        "squares names the places of grad": False,
        "squares holds the square of each sum": False,
    }
    if not pair or not all(isinstance(t, torch.Tensor) and t.layout == torch.sparse_coo for t in answer):
        return facts
    facts["both sparse COO"] = True
    grad, squares = answer
    if any(tuple(t.shape) != (n,) or t.sparse_dim() != 1 for t in answer):
        return facts
    places, values = grad._indices()[0], grad._values().double()
    summed = torch.zeros(n, dtype=torch.float64).index_add_(0, places, values)
    naive, right = (values**2).sum().item(), (summed**2).sum().item()
    far = 1e-6 * max(naive, right)
    is_kind = {"too large": naive > right + far, "too small": naive < right - far}.get(kind, abs(naive - right) <= far)
    at = squares._indices()[0]
    dense = torch.zeros(n, dtype=torch.float64).index_add_(0, at, squares._values().double())
    return facts | {
        "both of shape (n,)": True,
        "grad names a place twice": len(places.unique()) < len(places),
        "squaring first is " + kind: is_kind,
        "squares names no place twice": len(at.unique()) == len(at),
        "squares names the places of grad": torch.equal(at.unique(), places.unique()),
        "squares holds the square of each sum": torch.allclose(dense, summed**2),
    }


@show_and_fix.cases
def _(rng):
    yield "too large", 3
    yield "too small", 3
    yield "right by luck", 4
    yield "too large", 2
    for n in (5, rng.integer(6, 30), rng.integer(31, 90)):
        for kind in ("too large", "too small", "right by luck"):
            yield kind, n


@show_and_fix.wrong(
    "M26",
    "Your squares are those of the single entries, added afterwards. That is what a COO tensor with duplicates stands "
    "for: the sum. A square of a sum is not the sum of the squares, so add first (coalesce) and square then.",
)
def _(kind, n):
    import torch

    b = {"too large": -1.0, "too small": 1.0, "right by luck": 0.0}[kind]
    grad = torch.sparse_coo_tensor([[0, 0]], [1.0, b], (n,), check_invariants=True)
    return grad, torch.sparse_coo_tensor([[0, 0]], [1.0, b * b], (n,), check_invariants=True).coalesce()


@show_and_fix.wrong(
    "X-7.2-1",
    "No place is named twice in this gradient, or no longer, after coalesce(): squaring first and squaring last are the "
    "same then. Give one place two entries, indices [[0, 0]], and return the gradient as it was made.",
)
def _(kind, n):
    import torch

    b = {"too large": -1.0, "too small": 1.0, "right by luck": 0.0}[kind]
    grad = torch.sparse_coo_tensor([[0, 1]], [1.0, b], (n,), check_invariants=True)
    return grad, torch.sparse_coo_tensor([[0, 1]], [1.0, b * b], (n,), check_invariants=True).coalesce()


@show_and_fix.wrong(
    "X-7.2-2",
    "It is the other way round. Two entries of one sign: their sum is large, and the squares one by one are too small. "
    "Two of opposite signs: they cancel, and the squares do not.",
)
def _(kind, n):
    import torch

    b = {"too large": 1.0, "too small": -1.0, "right by luck": 0.0}[kind]
    grad = torch.sparse_coo_tensor([[0, 0]], [1.0, b], (n,), check_invariants=True).coalesce()
    squares = torch.sparse_coo_tensor(grad.indices(), grad.values() ** 2, (n,), check_invariants=True)
    return torch.sparse_coo_tensor([[0, 0]], [1.0, b], (n,), check_invariants=True), squares.coalesce()


@show_and_fix.wrong(
    "X-7.2-3",
    "These are dense tensors. The gradient of an embedding is sparse: return both as COO, without to_dense().",
)
def _(kind, n):
    import torch

    b = {"too large": -1.0, "too small": 1.0, "right by luck": 0.0}[kind]
    grad = torch.sparse_coo_tensor([[0, 0]], [1.0, b], (n,), check_invariants=True)
    return grad, grad.to_dense() ** 2


@show_and_fix.wrong(
    "X-7.2-4",
    "The squares still name a place twice. Coalesce first: then each place has one entry, and one square.",
)
def _(kind, n):
    import torch

    b = {"too large": -1.0, "too small": 1.0, "right by luck": 0.0}[kind]
    grad = torch.sparse_coo_tensor([[0, 0]], [1.0, b], (n,), check_invariants=True)
    return grad, torch.sparse_coo_tensor([[0, 0]], [(1.0 + b) ** 2, 0.0], (n,), check_invariants=True)


@show_and_fix.wrong(
    "X-7.2-5",
    "The same gradient for every kind. Which sign has the second entry when squaring first gives too much, too little, "
    "or just the right number?",
)
def _(kind, n):
    import torch

    grad = torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (n,), check_invariants=True)
    return grad, torch.sparse_coo_tensor([[0]], [9.0], (n,), check_invariants=True).coalesce()


@show_and_fix.wrong(
    "X-7.2-6",
    "A place of grad is missing among the squares: entries that cancel make a stored 0, and to_sparse() of a dense tensor "
    "leaves zeros out. coalesce() keeps every place.",
)
def _(kind, n):
    import torch

    b = {"too large": -1.0, "too small": 1.0, "right by luck": 0.0}[kind]
    grad = torch.sparse_coo_tensor([[0, 0]], [1.0, b], (n,), check_invariants=True)
    return grad, (grad.to_dense() ** 2).to_sparse()


@show_and_fix.wrong(
    "X-7.2-7",
    "The squares are those of the single entries, and name a place as often as grad does. That is the fault to repair: "
    "coalesce first, then square.",
)
def _(kind, n):
    import torch

    b = {"too large": -1.0, "too small": 1.0, "right by luck": 0.0}[kind]
    grad = torch.sparse_coo_tensor([[0, 0]], [1.0, b], (n,), check_invariants=True)
    return grad, torch.sparse_coo_tensor([[0, 0]], [1.0, b * b], (n,), check_invariants=True)


@show_and_fix.right
def _(kind, n):
    import torch

    values = {"too large": [1.0, -1.0], "too small": [1.0, 1.0], "right by luck": [0.0, 0.0]}[kind]
    grad = torch.sparse_coo_tensor([[0, 0]], values, (n,), check_invariants=True)
    return grad, grad.coalesce() ** 2


@show_and_fix.right
def _(kind, n):
    import torch

    values = {"too large": [5.0, -2.0, 1.0], "too small": [1.0, 2.0, 1.0], "right by luck": [2.0, 0.0, 3.0]}[kind]
    grad = torch.sparse_coo_tensor([[1, 1, 0]], values, (n,), check_invariants=True)
    return grad, grad.coalesce().pow(2)


@show_and_fix.right
def _(kind, n):
    import torch

    places = [[0, 0, 1, 1]]  # "right by luck": what is too small at one place is too large at the other
    values = {"too large": [1.0, -3, 1, -1], "too small": [1.0, 3, 1, 1], "right by luck": [1.0, 1, 1, -1]}[kind]
    grad = torch.sparse_coo_tensor(places, values, (n,), check_invariants=True)
    summed = grad.coalesce()
    return grad, summed * summed


# ---- 7.3 ------------------------------------------------------------------------------------------------------------


@exercise(
    "7.3",
    points=4,
    minutes=20,
    stars=3,
    homework=True,
    concepts=["A-05", "A-07"],
    needs=["dense_step", "show_and_fix"],
    properties=[never_calls("to_dense", "to_sparse"), copy_budget(1024), no_loops],
    forbidden=["_indices", "_values", *OPTIMISERS],  # to_dense is seen when it is called
    visible=7,
    tolerance=TOL,
    hints=[
        "All arithmetic is on the stored values alone, which is as many numbers as there are entries. The places say "
        "where the results go.",
        "After coalesce(), grad.indices() has one column a place, and tuple(grad.indices()) is an index: "
        "state_sum[tuple(...)] reads exactly these elements, and += and -= with it write them. It works for whole rows "
        "(hybrid COO), too. No private names: indices() and values().",
        "grad = grad.coalesce(); at, g = tuple(grad.indices()), grad.values(); state_sum[at] += ___; "
        "param[at] -= lr * ___ / (state_sum[at].sqrt() + ___)",
    ],
)
def sparse_step(param, state_sum, grad, lr, eps):
    grad = grad.coalesce()
    at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)


@sparse_step.call
def _(function, param, state_sum, grad, lr, eps):
    function(param, state_sum, grad, lr, eps)
    return param, state_sum


@sparse_step.facts
def _(result, param, state_sum, grad, lr, eps):
    import torch

    def as_before(old, new):
        """Whether the new tensor is of the same kind, and bit by bit the old one where nothing was to be done."""
        if not isinstance(new, torch.Tensor) or (new.shape, new.dtype) != (old.shape, old.dtype):
            return False
        return torch.equal(old[rest].view(torch.uint8), new[rest].view(torch.uint8))

    rest = torch.ones(param.shape, dtype=torch.bool)
    rest[tuple(grad._indices())] = False
    return {"untouched elements are bitwise as before": as_before(param, result[0]) and as_before(state_sum, result[1])}


@sparse_step.cases
def _(rng):
    param, state, indices, values = tutorial()
    yield param, state, coo(indices, values, (2, 4)).coalesce(), 0.1, 1e-10
    rows = coo([[1, 3, 1]], [[1.0, 2.0], [0.5, -1.0], [1.0, 1.0]], (4, 2))
    yield torch.ones(4, 2), torch.zeros(4, 2), rows, 0.1, 1e-10
    yield torch.ones(3), torch.zeros(3), coo([[0, 2]], [0.0, 2.0], (3,)).coalesce(), 0.5, 0.25
    yield torch.ones(2, 2), torch.zeros(2, 2), coo([[0], [1]], [3.0], (2, 2)).coalesce(), 0.1, 0.0
    large = rng.normal(200, 8)
    yield large, torch.ones(200, 8), coo([[7, 99, 180]], rng.normal(3, 8), (200, 8)).coalesce(), 0.1, 0.5
    yield torch.ones(3), torch.ones(3), coo(torch.zeros(1, 0, dtype=torch.int64), torch.zeros(0), (3,)), 0.1, 0.1
    yield torch.ones(2), torch.ones(2), coo([[1, 1]], [2.0, -2.0], (2,)), 0.1, 0.1
    yield rng.normal(4, 3).t(), torch.ones(4, 3).t(), drawn(rng, (3, 4), 5), 0.1, 0.5
    yield rng.normal(2, 3, 2), torch.ones(2, 3, 2), drawn(rng, (2, 3, 2), 6), 0.1, 0.5
    yield torch.tensor([float("inf"), 1.0]), torch.ones(2), coo([[1]], [1.0], (2,)).coalesce(), 0.1, 0.0
    for _ in range(16):
        shape, dtype = (rng.integer(2, 6), rng.integer(1, 3)), rng.choice([torch.float32, torch.float64])
        grad = drawn(rng, shape, rng.integer(1, 6), hybrid=rng.choice([True, False]), dtype=dtype)
        yield rng.normal(*shape, dtype=dtype), rng.normal(*shape, dtype=dtype).abs() + 0.1, grad, 0.1, 0.5


@sparse_step.wrong(
    "X-7.3-5",
    "Right, and not allowed: _indices and _values are private, as the underscore in front says. They also give what is "
    "not coalesced without a word. indices() and values() do the same and refuse when something is wrong.",
)
def _(param, state_sum, grad, lr, eps):
    grad = grad.coalesce()
    at, g = tuple(grad._indices()), grad._values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)


@sparse_step.wrong(
    "M26",
    "indices() and values() are refused as long as a place may be named twice. The step squares, so the duplicates have "
    "to be added first: coalesce().",
)
def _(param, state_sum, grad, lr, eps):
    at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)


@sparse_step.wrong(
    "M11",
    "Where a place is named twice, one of its two gradients is lost: += with an index writes each place once. Coalesce "
    "first, and every place is named once.",
    sample="wrong_duplicates",
)
def _(param, state_sum, grad, lr, eps):
    at, g = tuple(grad._indices()), grad._values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)


@sparse_step.wrong(
    "X-7.3-1",
    "Each entry was squared by itself and the squares were added, so duplicates count too little or too much. The "
    "square of a sum is wanted: coalesce before you square.",
)
def _(param, state_sum, grad, lr, eps):
    at, g = tuple(grad._indices()), grad._values()
    state_sum.index_put_(at, g * g, accumulate=True)
    param.index_put_(at, -lr * g / (state_sum[at].sqrt() + eps), accumulate=True)


@sparse_step.wrong(
    "M27",
    "The gradient was made dense, so every element of the parameter is computed, with a gradient of 0 where there is "
    "none. That costs the whole table, and where the state and eps are 0 it is 0 / 0. Stay with the stored entries.",
)
def _(param, state_sum, grad, lr, eps):
    g = grad.to_dense()
    state_sum += g * g
    param -= lr * g / (state_sum.sqrt() + eps)


@sparse_step.wrong(
    "X-7.3-6",
    "The gradient was added to a tensor of zeros, so it is dense, and every element of the parameter is computed. That "
    "costs the whole table, and where the state and eps are 0 it is 0 / 0. Stay with the stored entries.",
)
def _(param, state_sum, grad, lr, eps):
    import torch

    g = torch.zeros_like(param) + grad
    state_sum += g * g
    param -= lr * g / (state_sum.sqrt() + eps)


@sparse_step.wrong(
    "M25",
    "The values are right, but on the way a tensor as large as the whole parameter came to be: state_sum.sqrt() takes "
    "the root of every element. Take the elements that you need out of the state first.",
)
def _(param, state_sum, grad, lr, eps):
    grad = grad.coalesce()
    at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    std = state_sum.sqrt() + eps
    param[at] -= lr * g / std[at]


@sparse_step.wrong(
    "X-7.3-2",
    "The gradient of the caller has changed: after coalesce(), values() shows the memory of the gradient itself if it "
    "was coalesced before, so a method with an underscore writes into it.",
)
def _(param, state_sum, grad, lr, eps):
    grad = grad.coalesce()
    at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    param[at] -= g.mul_(lr).div_(state_sum[at].sqrt() + eps)


@sparse_step.wrong(
    "X-7.3-3",
    "std was taken from the state of before this step. First the squares go into the state, then its root is taken.",
)
def _(param, state_sum, grad, lr, eps):
    grad = grad.coalesce()
    at, g = tuple(grad.indices()), grad.values()
    std = state_sum[at].sqrt() + eps
    state_sum[at] += g * g
    param[at] -= lr * g / std


@sparse_step.wrong(
    "X-7.3-4", "eps stands under the root. As in the dense step, the root comes first and eps is added to it."
)
def _(param, state_sum, grad, lr, eps):
    grad = grad.coalesce()
    at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at] + eps).sqrt()


@sparse_step.wrong(
    "X-7.3-7",
    "Neither the parameter nor the state has moved: `state_sum[at]` on the right of = is a copy, and what you added to "
    "it stayed there. Write through the index: state_sum[at] += ...",
)
def _(param, state_sum, grad, lr, eps):
    grad = grad.coalesce()
    at, g = tuple(grad.indices()), grad.values()
    state, moved = state_sum[at], param[at]
    state += g * g
    moved -= lr * g / (state.sqrt() + eps)


@sparse_step.wrong(
    "X-7.3-8",
    "grad.indices() is one tensor, and one tensor as an index names whole rows. tuple(grad.indices()) is an index for "
    "each dimension.",
)
def _(param, state_sum, grad, lr, eps):
    grad = grad.coalesce()
    at, g = grad.indices(), grad.values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)


@sparse_step.right
def _(param, state_sum, grad, lr, eps):
    import torch

    grad = grad.coalesce()
    state_sum.add_(grad.pow(2))
    std = state_sum.sparse_mask(grad).values().sqrt() + eps
    step = torch.sparse_coo_tensor(grad.indices(), grad.values() / std, grad.shape, check_invariants=True)
    param.add_(step, alpha=-lr)


@sparse_step.right
def _(param, state_sum, grad, lr, eps):
    summed = grad.coalesce()
    at, g = summed.indices().unbind(), summed.values()
    state = state_sum[at] + g**2
    state_sum.index_put_(at, state)
    param.index_put_(at, -lr * g / (state.sqrt() + eps), accumulate=True)


# ---- 7.4 ------------------------------------------------------------------------------------------------------------


@exercise(
    "7.4",
    points=3,
    minutes=10,
    stars=2,
    concepts=["A-06", "A-11"],
    needs=["dense_step"],
    visible=7,
    tolerance=TOL,
    hints=[
        "Write the dense step, with masked tensors in it. Arithmetic keeps track of what is specified; only at the end, "
        "where something plain is wanted, you say what a missing change means: no change, 0.",
        "g * g is masked as g is. g.to_tensor(0) is plain, with 0 where nothing is specified. A plain tensor plus a "
        "masked one is masked. get_data() would give whatever lies under the mask.",
        "total = state_sum + g * g; std = total.sqrt() + ___; new_state = state_sum + (g * g).to_tensor(___); "
        "new_param = param - (lr * g / std).to_tensor(___); return new_param, new_state, std",
    ],
)
def masked_step(param, state_sum, grad, lr, eps):
    squares = grad * grad
    std = (state_sum + squares).sqrt() + eps
    return param - (lr * grad / std).to_tensor(0), state_sum + squares.to_tensor(0), std


@masked_step.cases
def _(rng):
    nan, inf = float("nan"), float("inf")
    param, state, indices, values = tutorial()
    everything = torch.ones(3, dtype=torch.bool)
    yield param, state, masked_coo(indices, values, everything, (2, 4)), 0.1, 1e-10
    data, mask = torch.tensor([3.0, nan, 4.0]), torch.tensor([True, False, True])
    yield torch.ones(3), torch.zeros(3), masked_tensor(data, mask), 0.1, 0.5
    yield torch.ones(3), torch.ones(3), masked_coo([[0, 1]], [nan, 2.0], [False, True], (3,)), 0.1, 0.5
    yield torch.ones(2), torch.ones(2), masked_coo([[0, 1]], [0.0, 2.0], [True, True], (2,)), 0.1, 0.5
    yield torch.ones(2), torch.ones(2), masked_tensor(torch.tensor([inf, 1e30]), torch.tensor([False, False])), 0.1, 0.1
    yield torch.ones(2), torch.zeros(2), masked_tensor(torch.tensor([0.0, 1e30]), torch.tensor([True, False])), 0.1, 0.1
    yield param.double(), state.double(), masked(param.double(), param % 2 == 0, inf), 0.1, 0.25
    yield torch.ones(2), torch.ones(2), masked_coo([[0, 1]], [1e30, 2.0], [False, True], (2,)), 0.1, 0.5
    yield torch.tensor(1.0), torch.tensor(0.0), masked_tensor(torch.tensor(2.0), torch.tensor(True)), 0.1, 0.5
    for poison in POISON:
        for _ in range(3):
            shape = rng.integer(1, 3), rng.integer(1, 4)
            data, mask = rng.normal(*shape), rng.mask(*shape)
            yield rng.normal(*shape), rng.normal(*shape).abs() + 0.1, masked(data, mask, poison), 0.1, 0.5
            places = torch.ones(shape, dtype=torch.bool).nonzero().t()
            values = torch.where(mask, data, torch.full((), poison)).flatten()
            yield rng.normal(*shape), torch.ones(shape), masked_coo(places, values, mask.flatten(), shape), 0.1, 0.5


@masked_step.wrong(
    "M22",
    "What lies under the mask has come into the state: get_data() gives it along, NaN or whatever it is. to_tensor(0) "
    "puts a 0 wherever nothing is specified.",
)
def _(param, state_sum, grad, lr, eps):
    squares = grad * grad
    std = (state_sum + squares).sqrt() + eps
    return param - (lr * grad / std).get_data(), state_sum + squares.get_data(), std


@masked_step.wrong(
    "M24",
    "A specified gradient of 0 is no longer specified in your std: the mask was made anew with `!= 0`. Zero is a value; "
    "what is missing is another thing. The gradient brings its mask along.",
)
def _(param, state_sum, grad, lr, eps):
    import torch

    from maskedtensor_ref import as_masked_tensor

    dense = grad.to_tensor(0)
    g = as_masked_tensor(dense, dense != 0)
    g = g.to_sparse_coo() if grad.layout == torch.sparse_coo else g
    std = (state_sum + g * g).sqrt() + eps
    return param - (lr * g / std).to_tensor(0), state_sum + (g * g).to_tensor(0), std


@masked_step.wrong(
    "X-7.4-1",
    "Your std is a plain tensor, with a number everywhere. Where there is no gradient, nobody asked for a std: keep it "
    "masked, as the gradient is.",
)
def _(param, state_sum, grad, lr, eps):
    g = grad.to_tensor(0)
    state = state_sum + g * g
    std = state.sqrt() + eps
    return param - lr * g / std, state, std


@masked_step.wrong("X-7.4-2", "std was taken from the state of before this step. The squares go into the state first.")
def _(param, state_sum, grad, lr, eps):
    squares = grad * grad
    std = (state_sum + squares * 0).sqrt() + eps
    return param - (lr * grad / std).to_tensor(0), state_sum + squares.to_tensor(0), std


@masked_step.wrong("X-7.4-3", "eps stands under the root. The root comes first, and eps is added to it.")
def _(param, state_sum, grad, lr, eps):
    squares = grad * grad
    std = (state_sum + squares + eps).sqrt()
    return param - (lr * grad / std).to_tensor(0), state_sum + squares.to_tensor(0), std


@masked_step.wrong(
    "X-7.4-4",
    "The new parameter and the new state are masked here: everything that has no gradient is lost from them. They are "
    "plain tensors, with their old values where nothing is specified: make the *change* plain with to_tensor(0).",
)
def _(param, state_sum, grad, lr, eps):
    total = state_sum + grad * grad
    std = total.sqrt() + eps
    return param - lr * grad / std, total, std


@masked_step.wrong(
    "X-7.4-5",
    "The tensors of the caller have changed. This step is written out of place, as a formula: it returns new tensors.",
)
def _(param, state_sum, grad, lr, eps):
    total = state_sum + grad * grad
    std = total.sqrt() + eps
    state_sum.copy_(total)
    param.sub_(lr * grad / std)
    return param, state_sum, std


@masked_step.wrong(
    "X-7.4-6",
    "Where nothing is specified, param and state have become 0. to_tensor(0) belongs to the change, before it is added, "
    "and not to the result.",
)
def _(param, state_sum, grad, lr, eps):
    total = state_sum + grad * grad
    std = total.sqrt() + eps
    return (param - lr * grad / std).to_tensor(0), total.to_tensor(0), std


@masked_step.wrong(
    "X-7.4-7",
    "The step is right, but eps is missing in the std that comes back: it is the root plus eps, what is divided by.",
)
def _(param, state_sum, grad, lr, eps):
    squares = grad * grad
    root = (state_sum + squares).sqrt()
    return param - (lr * grad / (root + eps)).to_tensor(0), state_sum + squares.to_tensor(0), root


@masked_step.right
def _(param, state_sum, grad, lr, eps):
    total = state_sum + grad.pow(2)
    std = total.sqrt().add(eps)
    new_param, new_state = param.clone(), state_sum.clone()
    new_state.copy_(total)
    new_param.sub_(grad / std * lr)
    return new_param, new_state, std


@masked_step.right
def _(param, state_sum, grad, lr, eps):
    import torch

    total = torch.zeros_like(grad) + state_sum + grad.square()
    std = torch.sqrt(total) + eps
    return param + (-lr * (grad / std)).to_tensor(0), total.to_tensor(state_sum), std


# ---- 7.5 ------------------------------------------------------------------------------------------------------------


@exercise(
    "7.5",
    points=4,
    minutes=15,
    stars=3,
    concepts=["A-08"],
    needs=["dense_step", "show_and_fix"],
    properties=[no_loops],
    visible=5,
    tolerance=TOL,
    hints=[
        "One step, three times; only the set of elements that may move differs. Write the step once, for a bool tensor "
        "that says which elements count.",
        "grad.to_dense() adds duplicates and fills in zeros. Which places are *stored* it cannot tell: for that, make a "
        "bool tensor of False and write True at tuple(grad.coalesce().indices()). torch.where(counts, new, param) "
        "leaves the rest alone.",
        "g = grad.to_dense(); stored = torch.zeros_like(param, dtype=torch.bool); stored[tuple(___)] = True; total = g "
        "+ decay * param; new = param - lr * total / ((state_sum + ___).sqrt() + eps); return new, "
        "torch.where(stored, new, param), torch.where(___, new, param)",
    ],
)
def three_meanings(param, state_sum, grad, lr, eps, decay):
    g = grad.to_dense()
    stored = torch.zeros_like(param, dtype=torch.bool)
    stored[tuple(grad.coalesce().indices())] = True
    total = g + decay * param
    new = param - lr * total / ((state_sum + total * total).sqrt() + eps)
    return new, torch.where(stored, new, param), torch.where(g != 0, new, param)


@three_meanings.cases
def _(rng):
    zero = coo([[0, 1]], [3.0, 0.0], (3,)).coalesce()
    yield torch.tensor([2.0, 2.0, 2.0]), torch.zeros(3), zero, 0.5, 0.5, 0.5
    yield torch.tensor([2.0, 4.0]), torch.ones(2), coo([[1, 1]], [1.5, -1.5], (2,)), 0.1, 0.25, 0.5
    param, state, indices, _ = tutorial()
    yield param, state, coo(indices, [0.0, 4.0, 0.0], (2, 4)).coalesce(), 0.1, 1e-10, 0.1
    yield torch.ones(2, 2), torch.ones(2, 2), coo([[1, 1]], [[0.0, 1.0], [0.0, 1.0]], (2, 2)), 0.1, 0.5, 1.0
    yield torch.ones(3), torch.ones(3), coo(torch.zeros(1, 0, dtype=torch.int64), torch.zeros(0), (3,)), 0.1, 0.1, 0.2
    for _ in range(16):
        shape = rng.integer(2, 5), rng.integer(1, 3)
        grad = drawn(rng, shape, rng.integer(1, 5), hybrid=rng.choice([True, False]))
        keep = rng.mask(*grad._values().shape, density=0.6)
        grad = coo(grad._indices(), grad._values() * keep, shape)
        yield rng.normal(*shape) + 3, rng.normal(*shape).abs() + 0.1, grad, 0.1, 0.5, rng.choice([0.1, 0.5])


@three_meanings.wrong(
    "M24",
    "A stored zero was lost: the second result took `!= 0` for stored. Which places are stored only the indices tell, "
    "for a dense tensor shows every zero alike.",
)
def _(param, state_sum, grad, lr, eps, decay):
    import torch

    g = grad.to_dense()
    total = g + decay * param
    new = param - lr * total / ((state_sum + total * total).sqrt() + eps)
    return new, torch.where(g != 0, new, param), torch.where(g != 0, new, param)


@three_meanings.wrong(
    "M27",
    "In the first result the elements without an entry have not moved. Read densely, they have a gradient of 0, and "
    "with weight decay a gradient of 0 still makes a step.",
)
def _(param, state_sum, grad, lr, eps, decay):
    import torch

    g = grad.to_dense()
    stored = torch.zeros_like(param, dtype=torch.bool)
    stored[tuple(grad.coalesce().indices())] = True
    total = g + decay * param
    new = param - lr * total / ((state_sum + total * total).sqrt() + eps)
    return torch.where(stored, new, param), torch.where(stored, new, param), torch.where(g != 0, new, param)


@three_meanings.wrong(
    "M26",
    "Two entries that cancel count as not zero here, because you looked at each of them alone. The gradient of a place "
    "is their sum: coalesce, or look at the dense tensor.",
)
def _(param, state_sum, grad, lr, eps, decay):
    import torch

    g = grad.to_dense()
    stored, nonzero = (torch.zeros_like(param, dtype=torch.bool) for _ in range(2))
    at, values = tuple(grad._indices()), grad._values()
    stored[at] = True
    nonzero.index_put_(at, values != 0, accumulate=True)
    total = g + decay * param
    new = param - lr * total / ((state_sum + total * total).sqrt() + eps)
    return new, torch.where(stored, new, param), torch.where(nonzero, new, param)


@three_meanings.wrong(
    "X-7.5-1",
    "The decay was applied to the parameter beside the step. Here it is part of the gradient: grad + decay * param, "
    "and this sum is what goes into the state, too.",
)
def _(param, state_sum, grad, lr, eps, decay):
    import torch

    g = grad.to_dense()
    stored = torch.zeros_like(param, dtype=torch.bool)
    stored[tuple(grad.coalesce().indices())] = True
    new = param * (1 - lr * decay) - lr * g / ((state_sum + g * g).sqrt() + eps)
    return new, torch.where(stored, new, param), torch.where(g != 0, new, param)


@three_meanings.wrong(
    "X-7.5-2",
    "The state took the gradient without its decay. What is squared is what the step uses: grad + decay * param.",
)
def _(param, state_sum, grad, lr, eps, decay):
    import torch

    g = grad.to_dense()
    stored = torch.zeros_like(param, dtype=torch.bool)
    stored[tuple(grad.coalesce().indices())] = True
    new = param - lr * (g + decay * param) / ((state_sum + g * g).sqrt() + eps)
    return new, torch.where(stored, new, param), torch.where(g != 0, new, param)


@three_meanings.wrong(
    "X-7.5-3", "The three results stand in another order: first everything, then what is stored, then what is not 0."
)
def _(param, state_sum, grad, lr, eps, decay):
    import torch

    g = grad.to_dense()
    stored = torch.zeros_like(param, dtype=torch.bool)
    stored[tuple(grad.coalesce().indices())] = True
    total = g + decay * param
    new = param - lr * total / ((state_sum + total * total).sqrt() + eps)
    return torch.where(g != 0, new, param), torch.where(stored, new, param), new


@three_meanings.wrong(
    "X-7.5-4",
    "What does not count has become 0 instead of staying as it was. torch.where(counts, new, param) keeps the rest.",
)
def _(param, state_sum, grad, lr, eps, decay):
    import torch

    g = grad.to_dense()
    stored = torch.zeros_like(param, dtype=torch.bool)
    stored[tuple(grad.coalesce().indices())] = True
    total = g + decay * param
    new = param - lr * total / ((state_sum + total * total).sqrt() + eps)
    return new, new * stored, new * (g != 0)


@three_meanings.wrong(
    "X-7.5-5",
    "All three results are the same, moved everywhere: the step was written into param, and `old = param` is a second "
    "name for it, no copy. Compute a new tensor, or clone() first.",
)
def _(param, state_sum, grad, lr, eps, decay):
    import torch

    old, g = param, grad.to_dense()
    stored = torch.zeros_like(param, dtype=torch.bool)
    stored[tuple(grad.coalesce().indices())] = True
    total = g + decay * param
    state_sum += total * total
    param -= lr * total / (state_sum.sqrt() + eps)
    return param, torch.where(stored, param, old), torch.where(g != 0, param, old)


@three_meanings.wrong(
    "X-7.5-6",
    "The third result asks whether the gradient *with* its decay is 0. Asked is what stands in grad itself.",
)
def _(param, state_sum, grad, lr, eps, decay):
    import torch

    total = grad.to_dense() + decay * param
    stored = torch.zeros_like(param, dtype=torch.bool)
    stored[tuple(grad.coalesce().indices())] = True
    new = param - lr * total / ((state_sum + total * total).sqrt() + eps)
    return new, torch.where(stored, new, param), torch.where(total != 0, new, param)


@three_meanings.right
def _(param, state_sum, grad, lr, eps, decay):
    import torch

    summed = grad.coalesce()
    marks = torch.sparse_coo_tensor(
        summed.indices(), torch.ones_like(summed.values()), summed.shape, check_invariants=True
    )
    dense = summed.to_dense()

    def step(counts):
        total = torch.where(counts, dense + decay * param, 0)
        return param - lr * total / ((state_sum + total**2).sqrt() + eps)

    return step(torch.ones_like(dense, dtype=torch.bool)), step(marks.to_dense() > 0), step(dense.bool())


@three_meanings.right
def _(param, state_sum, grad, lr, eps, decay):
    summed = grad.coalesce()
    at, g = tuple(summed.indices()), summed.to_dense()
    total = g + decay * param
    everywhere = param - lr * total / ((state_sum + total.square()).sqrt() + eps)
    stored, nonzero = param.clone(), param.clone()
    stored[at] = everywhere[at]
    nonzero[g != 0] = everywhere[g != 0]
    return everywhere, stored, nonzero


# ---- 7.6 ------------------------------------------------------------------------------------------------------------


@exercise(
    "7.6",
    points=3,
    minutes=15,
    stars=3,
    concepts=["A-10"],
    needs=["dense_step"],
    properties=[device_agnostic, no_loops, op_budget(20)],
    visible=8,
    tolerance=TOL,
    hints=[
        "Multiplying by the mask does not hide a NaN. Choose: what stands under the mask is replaced before anything is "
        "computed with it.",
        "torch.where(mask, values, 0) is a gradient that is safe to square. With a state of 0 and an eps of 0 the "
        "quotient can still be 0 / 0 where nothing is specified: choose once more, among the changes.",
        "g = torch.where(mask, ___, 0); state_sum += g * g; change = lr * g / (state_sum.sqrt() + eps); "
        "param -= torch.where(mask, ___, 0)",
    ],
)
def where_step(param, state_sum, values, mask, lr, eps):
    g = torch.where(mask, values, 0)
    state_sum += g * g
    param -= torch.where(mask, lr * g / (state_sum.sqrt() + eps), 0)


@where_step.call
def _(function, param, state_sum, values, mask, lr, eps):
    function(param, state_sum, values, mask, lr, eps)
    return param, state_sum


@where_step.facts
def _(result, param, state_sum, values, mask, lr, eps):
    import torch

    def as_before(old, new):
        """Whether the new tensor is of the same kind, and bit by bit the old one where nothing was to be done."""
        if not isinstance(new, torch.Tensor) or (new.shape, new.dtype) != (old.shape, old.dtype):
            return False
        return torch.equal(old[rest].view(torch.uint8), new[rest].view(torch.uint8))

    rest = ~mask
    return {
        "what is not specified is bitwise as before": as_before(param, result[0]) and as_before(state_sum, result[1])
    }


@where_step.cases
def _(rng):
    nan, inf = float("nan"), float("inf")
    yield torch.ones(3), torch.zeros(3), torch.tensor([3.0, nan, 4.0]), torch.tensor([True, False, True]), 0.1, 0.5
    yield torch.ones(2), torch.zeros(2), torch.tensor([2.0, 1e30]), torch.tensor([True, False]), 0.1, 0.5
    yield torch.ones(2), torch.ones(2), torch.tensor([inf, -2.0]), torch.tensor([False, True]), 0.1, 0.5
    yield torch.ones(2), torch.zeros(2), torch.tensor([2.0, 1.0]), torch.tensor([True, False]), 0.1, 0.0
    param, state, indices, values = tutorial()
    grad = coo(indices, values, (2, 4)).to_dense()
    yield param, state, grad, grad != 0, 0.1, 1e-10
    yield torch.ones(2), torch.ones(2), torch.tensor([0.0, 2.0]), torch.tensor([True, True]), 0.1, 0.25
    yield torch.ones(3), torch.ones(3), torch.tensor([nan, 2.0, nan]), torch.tensor([True, True, False]), 0.1, 0.5
    yield (
        torch.ones(2, 1),
        torch.ones(2, 1),
        torch.tensor([[nan], [inf]]),
        torch.zeros(2, 1, dtype=torch.bool),
        0.1,
        0.1,
    )
    yield (
        torch.tensor([inf, 1.0]),
        torch.tensor([nan, 1.0]),
        torch.tensor([nan, 1.0]),
        torch.tensor([False, True]),
        0.1,
        0,
    )
    yield torch.tensor([]), torch.tensor([]), torch.tensor([]), torch.tensor([], dtype=torch.bool), 0.1, 0.1
    yield torch.tensor(1.0), torch.tensor(0.0), torch.tensor(nan), torch.tensor(False), 0.1, 0.0
    yield rng.normal(3, 2).t(), torch.ones(3, 2).t(), rng.normal(2, 3), rng.mask(2, 3), 0.1, 0.5
    large = rng.normal(40, 3)
    yield large, torch.ones(40, 3), rng.normal(40, 3), rng.mask(40, 3), 0.1, 0.5
    for poison in POISON:
        for _ in range(4):
            shape, dtype = (rng.integer(1, 4), rng.integer(1, 3)), rng.choice([torch.float32, torch.float64])
            mask, state = rng.mask(*shape), rng.normal(*shape, dtype=dtype).abs()
            values = rng.normal(*shape, dtype=dtype).masked_fill(~mask, poison)
            yield rng.normal(*shape, dtype=dtype), state, values, mask, 0.1, rng.choice([0.05, 0.5])


@where_step.wrong(
    "M22",
    "What stands under the mask has reached the state or the parameter. 0 times NaN is NaN, and 0 times infinity too: "
    "multiplying by a mask hides nothing. Choose with torch.where.",
)
def _(param, state_sum, values, mask, lr, eps):
    g = values * mask
    state_sum += g * g
    param -= lr * g / (state_sum.sqrt() + eps)


@where_step.wrong(
    "X-7.6-1",
    "NaN and infinity are gone, but 1e30 under the mask still counts. Junk need not look like junk: only the mask "
    "tells what is specified.",
)
def _(param, state_sum, values, mask, lr, eps):
    g = values.nan_to_num(0, 0, 0)
    state_sum += g * g
    param -= lr * g / (state_sum.sqrt() + eps)


@where_step.wrong(
    "M23",
    "The mask was read the wrong way round: what is not specified has moved. Here, as in MaskedTensor, True means "
    "specified (NumPy's masks are the other way).",
)
def _(param, state_sum, values, mask, lr, eps):
    g = values.masked_fill(mask, 0)
    state_sum += g * g
    param -= (lr * g / (state_sum.sqrt() + eps)).masked_fill(mask, 0)


@where_step.wrong(
    "X-7.6-2",
    "Almost: where nothing is specified, a state of 0 and an eps of 0 make 0 / 0, and the NaN has reached the parameter. "
    "Choose once more, among the changes.",
)
def _(param, state_sum, values, mask, lr, eps):
    import torch

    g = torch.where(mask, values, 0)
    state_sum += g * g
    param -= lr * g / (state_sum.sqrt() + eps)


@where_step.wrong(
    "X-7.6-3",
    "The parameter is right, but the state of what is not specified has changed. The next gradient there would find "
    "junk: mask what goes into the state, too.",
)
def _(param, state_sum, values, mask, lr, eps):
    import torch

    state_sum += values * values
    param -= torch.where(mask, lr * values / (state_sum.sqrt() + eps), 0)


@where_step.wrong(
    "X-7.6-4",
    "param and state_sum are as before: a new tensor was made, and nobody outside sees it. Write in place, with -= or "
    "copy_.",
)
def _(param, state_sum, values, mask, lr, eps):
    import torch

    g = torch.where(mask, values, 0)
    state_sum = state_sum + g * g
    param = torch.where(mask, param - lr * g / (state_sum.sqrt() + eps), param)


@where_step.wrong(
    "X-7.6-5",
    "The loop over the elements gives the right numbers, one at a time. torch.where, or an index with the mask, does "
    "all of them in one operation.",
)
def _(param, state_sum, values, mask, lr, eps):
    for place in mask.nonzero():
        at = tuple(place)
        state_sum[at] += values[at] ** 2
        param[at] -= lr * values[at] / (state_sum[at].sqrt() + eps)


@where_step.wrong("X-7.6-6", "eps stands under the root. The root comes first, and eps is added to it.")
def _(param, state_sum, values, mask, lr, eps):
    import torch

    g = torch.where(mask, values, 0)
    state_sum += g * g
    param -= torch.where(mask, lr * g / (state_sum + eps).sqrt(), 0)


@where_step.wrong(
    "X-7.6-7",
    "A NaN that is *specified* was hidden, too: nan_to_num asks for values, not for the mask. Where the mask is True "
    "everything counts, and a NaN there is one that you want to see.",
)
def _(param, state_sum, values, mask, lr, eps):
    g = values.nan_to_num() * mask
    state_sum += g * g
    param -= (lr * g / (state_sum.sqrt() + eps)).nan_to_num()


@where_step.wrong(
    "X-7.6-8",
    "values was written to, and it belongs to the caller. torch.where(mask, values, 0) makes a new tensor.",
)
def _(param, state_sum, values, mask, lr, eps):
    import torch

    values[~mask] = 0
    state_sum += values * values
    param -= torch.where(mask, lr * values / (state_sum.sqrt() + eps), 0)


@where_step.right
def _(param, state_sum, values, mask, lr, eps):
    g = values[mask]
    state = state_sum[mask] + g * g
    state_sum[mask] = state
    param[mask] -= lr * g / (state.sqrt() + eps)


@where_step.right
def _(param, state_sum, values, mask, lr, eps):
    import torch

    state_sum.copy_(torch.where(mask, state_sum + values**2, state_sum))
    param.copy_(torch.where(mask, param - lr * values / (state_sum.sqrt() + eps), param))


# ---- 7.7 ------------------------------------------------------------------------------------------------------------


@exercise(
    "7.7",
    points=5,
    minutes=30,
    stars=4,
    homework=True,
    concepts=["A-09"],
    needs=["dense_step", "sparse_step"],
    properties=[never_calls("to_dense"), copy_budget(2048), no_loops],
    forbidden=["_indices", "_values", *OPTIMISERS],  # to_dense is seen when it is called
    visible=8,
    tolerance=TOL,
    hints=[
        "The step itself is always the same: values, and the places where they go. So ask first for places and values, "
        "which each layout answers in its own way, and write the step once.",
        "grad.layout is torch.strided, torch.sparse_coo or torch.sparse_csr. CSR: col_indices() are the columns; "
        "crow_indices().diff() says how many entries each row has, and torch.arange(rows).repeat_interleave(counts) "
        "names the row of each entry. A strided gradient takes the place `...`: all of it.",
        "if CSR: rows = torch.arange(grad.shape[0]).repeat_interleave(grad.crow_indices().___()); at = (rows, "
        "grad.col_indices()); elif COO: grad = grad.___(); at = tuple(grad.indices()); else: at = ...; g = grad if "
        "strided, else grad.values(). Then the two lines of sparse_step.",
    ],
)
def any_layout_step(param, state_sum, grad, lr, eps):
    if grad.layout == torch.strided:
        at, g = ..., grad
    elif grad.layout == torch.sparse_csr:
        counts = grad.crow_indices().diff()
        rows = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
        at, g = (rows, grad.col_indices()), grad.values()
    else:
        grad = grad.coalesce()
        at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)


@any_layout_step.call
def _(function, param, state_sum, grad, lr, eps):
    function(param, state_sum, grad, lr, eps)
    return param, state_sum


@any_layout_step.facts
def _(result, param, state_sum, grad, lr, eps):
    import torch

    def as_before(old, new):
        """Whether the new tensor is of the same kind, and bit by bit the old one where nothing was to be done."""
        if not isinstance(new, torch.Tensor) or (new.shape, new.dtype) != (old.shape, old.dtype):
            return False
        return torch.equal(old[rest].view(torch.uint8), new[rest].view(torch.uint8))

    rest = torch.zeros(param.shape, dtype=torch.bool)
    if grad.layout != torch.strided:
        rest[:] = True
        rest[tuple(grad.to_sparse_coo()._indices())] = False
    return {"untouched elements are bitwise as before": as_before(param, result[0]) and as_before(state_sum, result[1])}


@any_layout_step.cases
def _(rng):
    param, state, indices, values = tutorial()
    grad = coo(indices, values, (2, 4)).coalesce()
    yield param, state, grad, 0.1, 1e-10
    yield param.clone(), state.clone(), csr(grad.to_dense()), 0.1, 1e-10
    yield torch.ones(2), torch.ones(2), torch.tensor([2.0, 0.0]), 0.1, 0.5
    empty_rows = torch.tensor([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0], [3.0, 0.0]])
    yield torch.ones(4, 2), torch.ones(4, 2), csr(empty_rows), 0.1, 0.5
    yield torch.ones(3, 2), torch.zeros(3, 2), coo([[1, 2, 1]], [[1.0, 2.0], [3.0, 0.0], [1.0, 1.0]], (3, 2)), 0.1, 0.5
    yield torch.ones(2, 2), torch.zeros(2, 2), csr(torch.tensor([[3.0, 0.0], [0.0, 0.0]])), 0.1, 0.0
    wide = torch.zeros(8, 200)
    wide[1, 7], wide[1, 180], wide[6, 3] = 2.0, -1.0, 0.5
    yield rng.normal(8, 200), torch.ones(8, 200), csr(wide), 0.1, 0.5
    yield torch.ones(2, 2), torch.zeros(2, 2), csr(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), zeros=[(1, 0)]), 0.1, 0.5
    yield rng.normal(8, 200), torch.ones(8, 200), wide.to_sparse_coo(), 0.1, 0.5
    yield rng.normal(3, 2).t(), torch.ones(3, 2).t(), csr(torch.eye(2, 3)), 0.1, 0.5
    yield torch.ones(2, 3), torch.ones(2, 3), csr(torch.zeros(2, 3)), 0.1, 0.5
    yield torch.ones(4), torch.ones(4), drawn(rng, (4,), 5), 0.1, 0.5
    for _ in range(6):
        shape, dtype = (rng.integer(2, 5), rng.integer(1, 4)), rng.choice([torch.float32, torch.float64])
        dense = rng.normal(*shape, dtype=dtype) * rng.mask(*shape)
        state = rng.normal(*shape, dtype=dtype).abs() + 0.1
        yield rng.normal(*shape, dtype=dtype), state, csr(dense), 0.1, 0.5
        yield rng.normal(*shape, dtype=dtype), state.clone(), dense, 0.1, 0.5
        yield rng.normal(*shape, dtype=dtype), state.clone(), drawn(rng, shape, 4, dtype=dtype), 0.1, 0.5


@any_layout_step.wrong(
    "X-7.7-6",
    "Right, and not allowed: _indices and _values are private, as the underscore in front says. After coalesce(), "
    "indices() and values() give the same, and refuse when something is wrong.",
)
def _(param, state_sum, grad, lr, eps):
    import torch

    if grad.layout == torch.strided:
        at, g = ..., grad
    elif grad.layout == torch.sparse_csr:
        counts = grad.crow_indices().diff()
        rows = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
        at, g = (rows, grad.col_indices()), grad.values()
    else:
        grad = grad.coalesce()
        at, g = tuple(grad._indices()), grad._values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)


@any_layout_step.wrong(
    "M27",
    "The gradient was made dense. It gives the right numbers for most gradients, at the price of the whole parameter, "
    "and 0 / 0 where state and eps are 0. Take the places from the layout itself.",
)
def _(param, state_sum, grad, lr, eps):
    g = grad.to_dense()
    state_sum += g * g
    param -= lr * g / (state_sum.sqrt() + eps)


@any_layout_step.wrong(
    "X-7.7-1",
    "Only COO works here: a CSR tensor has no indices(), and a strided one no coalesce(). Ask grad.layout which of the "
    "three it is.",
)
def _(param, state_sum, grad, lr, eps):
    grad = grad.coalesce()
    at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)


@any_layout_step.wrong(
    "X-7.7-2",
    "The row starts of CSR were taken for row numbers. crow_indices() has one number a row and one more: it says how "
    "many entries there are *before* each row; the differences are how many are in it.",
)
def _(param, state_sum, grad, lr, eps):
    import torch

    if grad.layout == torch.strided:
        at, g = ..., grad
    elif grad.layout == torch.sparse_csr:
        g = grad.values()
        at = grad.crow_indices()[: len(g)] % grad.shape[0], grad.col_indices()[: len(grad.crow_indices())]
    else:
        grad = grad.coalesce()
        at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)


@any_layout_step.wrong(
    "X-7.7-3",
    "Rows without entries were left out, so later entries went into the wrong rows. A row with 0 entries still has its "
    "number: repeat every row number by its count, zeros included.",
)
def _(param, state_sum, grad, lr, eps):
    import torch

    if grad.layout == torch.strided:
        at, g = ..., grad
    elif grad.layout == torch.sparse_csr:
        counts = grad.crow_indices().diff()
        counts = counts[counts > 0]
        rows = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
        at, g = (rows, grad.col_indices()), grad.values()
    else:
        grad = grad.coalesce()
        at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)


@any_layout_step.wrong(
    "M26",
    "A COO gradient may name a place twice, and this step squares: coalesce() it first. (CSR and strided gradients have "
    "no duplicates.)",
)
def _(param, state_sum, grad, lr, eps):
    import torch

    if grad.layout == torch.strided:
        at, g = ..., grad
    elif grad.layout == torch.sparse_csr:
        counts = grad.crow_indices().diff()
        rows = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
        at, g = (rows, grad.col_indices()), grad.values()
    else:
        at, g = tuple(grad._indices()), grad._values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)


@any_layout_step.wrong(
    "X-7.7-4",
    "Rows and columns are exchanged for CSR: an index names the row first, (rows, col_indices()).",
)
def _(param, state_sum, grad, lr, eps):
    import torch

    if grad.layout == torch.strided:
        at, g = ..., grad
    elif grad.layout == torch.sparse_csr:
        counts = grad.crow_indices().diff()
        rows = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
        at, g = (grad.col_indices(), rows), grad.values()
    else:
        grad = grad.coalesce()
        at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)


@any_layout_step.wrong(
    "X-7.7-5",
    "A strided gradient is refused or passed over. Its layout is torch.strided; there every element has a gradient, and "
    "the step is dense_step.",
)
def _(param, state_sum, grad, lr, eps):
    import torch

    if grad.layout == torch.strided:
        return
    grad = grad.to_sparse_coo().coalesce()
    at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)


@any_layout_step.wrong(
    "M25",
    "The values are right, but a tensor as large as the whole parameter came to be on the way. Take the elements that "
    "you need out of the state before the root, not after it.",
)
def _(param, state_sum, grad, lr, eps):
    import torch

    if grad.layout == torch.strided:
        at, g = ..., grad
    elif grad.layout == torch.sparse_csr:
        counts = grad.crow_indices().diff()
        rows = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
        at, g = (rows, grad.col_indices()), grad.values()
    else:
        grad = grad.coalesce()
        at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    std = state_sum.sqrt() + eps
    param[at] -= lr * g / std[at]


@any_layout_step.wrong(
    "X-7.7-7",
    "crow_indices()[1:] says how many entries there are up to the end of each row. How many are *in* it, which is what "
    "repeat_interleave wants, is the difference: crow_indices().diff().",
)
def _(param, state_sum, grad, lr, eps):
    import torch

    if grad.layout == torch.strided:
        at, g = ..., grad
    elif grad.layout == torch.sparse_csr:
        counts = grad.crow_indices()[1:]
        rows = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
        at, g = (rows, grad.col_indices()), grad.values()
    else:
        grad = grad.coalesce()
        at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)


@any_layout_step.right
def _(param, state_sum, grad, lr, eps):
    import torch

    if grad.layout == torch.strided:
        state_sum.addcmul_(grad, grad)
        param.addcdiv_(grad, state_sum.sqrt().add_(eps), value=-lr)
        return
    grad = grad.to_sparse_coo().coalesce()
    at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)


@any_layout_step.right
def _(param, state_sum, grad, lr, eps):
    import torch

    if grad.layout == torch.strided:
        state_sum += grad**2
        param -= lr * grad / (state_sum.sqrt() + eps)
        return
    if grad.layout == torch.sparse_csr:
        entries = torch.arange(len(grad.values()), device=param.device)
        rows = torch.searchsorted(grad.crow_indices(), entries, right=True) - 1
        at = rows, grad.col_indices()
    else:
        grad = grad.coalesce()
        at = grad.indices().unbind()
    g = grad.values()
    state = state_sum[at] + g * g
    state_sum.index_put_(at, state)
    param.index_put_(at, -lr * g / (state.sqrt() + eps), accumulate=True)


# ---- 7.8 ------------------------------------------------------------------------------------------------------------


@exercise(
    "7.8",
    points=4,
    minutes=15,
    stars=3,
    concepts=["A-02"],
    needs=["sparse_step"],
    properties=[never_calls("embedding_dense_backward", "to_dense")],
    visible=4,
    tolerance=(1e-4, 1e-5),
    hints=[
        "A training loop as in lecture 04: forget the old gradients, compute the loss, go back, step. What is new is "
        "one argument of the embedding, sparse=True.",
        "torch.nn.Embedding.from_pretrained(weight, freeze=False, sparse=True) uses the memory of weight itself: give "
        "it a clone. torch.optim.Adagrad takes sparse gradients as they are; make it once, before the loop. "
        "loss.item() is a float.",
        "table = torch.nn.Embedding.from_pretrained(weight.clone(), freeze=False, sparse=___); adagrad = "
        "torch.optim.Adagrad(table.parameters(), lr=___); for words, targets in batches: adagrad.zero_grad(); loss = "
        "torch.nn.functional.mse_loss(table(words), ___); losses.append(loss.item()); loss.backward(); adagrad.step()",
    ],
)
def train_embedding(weight, batches, lr):
    table = torch.nn.Embedding.from_pretrained(weight.clone(), freeze=False, sparse=True)
    adagrad = torch.optim.Adagrad(table.parameters(), lr=lr)
    losses = []
    for words, targets in batches:
        adagrad.zero_grad()
        loss = torch.nn.functional.mse_loss(table(words), targets)
        losses.append(loss.item())
        loss.backward()
        adagrad.step()
    return table.weight.detach(), losses


@train_embedding.facts
def _(answer, weight, batches, lr):
    import torch

    pair = isinstance(answer, (list, tuple)) and len(answer) == 2
    facts = {"a pair (trained weight, losses)": pair or answer, "trained": None, "losses": None}
    if not pair or not isinstance(answer[0], torch.Tensor):
        return facts | {"trained": answer[0] if pair else None, "unused rows are as before": False}
    trained, losses = answer
    used = torch.cat([words for words, _ in batches]) if batches else torch.zeros(0, dtype=torch.int64)
    rest = torch.ones(len(weight), dtype=torch.bool)
    rest[used] = False
    same = trained.shape == weight.shape and torch.equal(trained[rest], weight[rest])
    return facts | {"trained": trained, "losses": losses, "unused rows are as before": same}


@train_embedding.cases
def _(rng):
    two = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    yield torch.zeros(4, 2), [(torch.tensor([0, 2]), two)] * 3, 0.5
    yield rng.normal(3, 2), [(torch.tensor([1]), torch.zeros(1, 2)), (torch.tensor([0]), torch.zeros(1, 2))] * 2, 0.1
    yield rng.normal(3, 1), [(torch.tensor([2, 2, 0]), torch.tensor([[1.0], [2.0], [3.0]]))] * 4, 0.2  # a word twice
    yield rng.normal(2, 2), [], 0.1
    for _ in range(6):
        rows, dims, size = rng.integer(3, 8), rng.integer(1, 3), rng.integer(1, 4)
        batches = [(rng.integers(size, low=0, high=rows - 2), rng.normal(size, dims)) for _ in range(rng.integer(2, 8))]
        yield rng.normal(rows, dims), batches, rng.choice([0.1, 0.5])


@train_embedding.wrong(
    "M18",
    "The gradients of earlier steps are still there: backward adds to them. Forget them at every step, with zero_grad().",
)
def _(weight, batches, lr):
    import torch

    table = torch.nn.Embedding.from_pretrained(weight.clone(), freeze=False, sparse=True)
    adagrad, losses = torch.optim.Adagrad(table.parameters(), lr=lr), []
    for words, targets in batches:
        loss = torch.nn.functional.mse_loss(table(words), targets)
        losses.append(loss.item())
        loss.backward()
        adagrad.step()
    return table.weight.detach(), losses


@train_embedding.wrong(
    "M25",
    "The numbers are right, but the gradient is dense: as many numbers as the whole table, at every step. "
    "nn.Embedding(..., sparse=True), or from_pretrained with sparse=True, gives only the rows that were used.",
)
def _(weight, batches, lr):
    import torch

    table = torch.nn.Embedding.from_pretrained(weight.clone(), freeze=False)
    adagrad, losses = torch.optim.Adagrad(table.parameters(), lr=lr), []
    for words, targets in batches:
        adagrad.zero_grad()
        loss = torch.nn.functional.mse_loss(table(words), targets)
        losses.append(loss.item())
        loss.backward()
        adagrad.step()
    return table.weight.detach(), losses


@train_embedding.wrong(
    "X-7.8-1",
    "The weight of the caller was trained: from_pretrained uses the memory that it is given. Train a clone.",
)
def _(weight, batches, lr):
    import torch

    table = torch.nn.Embedding.from_pretrained(weight, freeze=False, sparse=True)
    adagrad, losses = torch.optim.Adagrad(table.parameters(), lr=lr), []
    for words, targets in batches:
        adagrad.zero_grad()
        loss = torch.nn.functional.mse_loss(table(words), targets)
        losses.append(loss.item())
        loss.backward()
        adagrad.step()
    return table.weight.detach(), losses


@train_embedding.wrong(
    "X-7.8-2",
    "A new Adagrad at every step begins with a state of 0 every time, so no step ever becomes smaller. Make it once, "
    "before the loop.",
)
def _(weight, batches, lr):
    import torch

    table, losses = torch.nn.Embedding.from_pretrained(weight.clone(), freeze=False, sparse=True), []
    for words, targets in batches:
        adagrad = torch.optim.Adagrad(table.parameters(), lr=lr)
        adagrad.zero_grad()
        loss = torch.nn.functional.mse_loss(table(words), targets)
        losses.append(loss.item())
        loss.backward()
        adagrad.step()
    return table.weight.detach(), losses


@train_embedding.wrong(
    "X-7.8-3",
    "The losses are those of after each step. The loss that you go back from is the one of before it; computing another "
    "one costs a forward pass more.",
)
def _(weight, batches, lr):
    import torch

    table = torch.nn.Embedding.from_pretrained(weight.clone(), freeze=False, sparse=True)
    adagrad, losses = torch.optim.Adagrad(table.parameters(), lr=lr), []
    for words, targets in batches:
        adagrad.zero_grad()
        torch.nn.functional.mse_loss(table(words), targets).backward()
        adagrad.step()
        losses.append(torch.nn.functional.mse_loss(table(words), targets).item())
    return table.weight.detach(), losses


@train_embedding.wrong(
    "X-7.8-4",
    "Plain gradient descent. It takes sparse gradients too, but gives every row the same step size; Adagrad is asked "
    "for.",
)
def _(weight, batches, lr):
    import torch

    table = torch.nn.Embedding.from_pretrained(weight.clone(), freeze=False, sparse=True)
    sgd, losses = torch.optim.SGD(table.parameters(), lr=lr), []
    for words, targets in batches:
        sgd.zero_grad()
        loss = torch.nn.functional.mse_loss(table(words), targets)
        losses.append(loss.item())
        loss.backward()
        sgd.step()
    return table.weight.detach(), losses


@train_embedding.wrong(
    "X-7.8-5",
    "The losses are tensors, each of which keeps its whole graph alive. Keep numbers: loss.item().",
)
def _(weight, batches, lr):
    import torch

    table = torch.nn.Embedding.from_pretrained(weight.clone(), freeze=False, sparse=True)
    adagrad, losses = torch.optim.Adagrad(table.parameters(), lr=lr), []
    for words, targets in batches:
        adagrad.zero_grad()
        loss = torch.nn.functional.mse_loss(table(words), targets)
        losses.append(loss)
        loss.backward()
        adagrad.step()
    return table.weight.detach(), losses


@train_embedding.wrong(
    "X-7.8-6",
    "Nothing wants a gradient here: from_pretrained freezes what it is given, unless you say freeze=False.",
)
def _(weight, batches, lr):
    import torch

    table = torch.nn.Embedding.from_pretrained(weight.clone(), sparse=True)
    adagrad, losses = torch.optim.Adagrad(table.parameters(), lr=lr), []
    for words, targets in batches:
        adagrad.zero_grad()
        loss = torch.nn.functional.mse_loss(table(words), targets)
        losses.append(loss.item())
        loss.backward()
        adagrad.step()
    return table.weight.detach(), losses


@train_embedding.right
def _(weight, batches, lr):
    import torch

    table, losses = torch.nn.Embedding(*weight.shape, sparse=True, device=weight.device), []
    with torch.no_grad():
        table.weight.copy_(weight)
    adagrad = torch.optim.Adagrad([table.weight], lr)
    for words, targets in batches:
        loss = ((table(words) - targets) ** 2).mean()
        loss.backward()
        adagrad.step()
        adagrad.zero_grad()
        losses.append(float(loss.detach()))
    return table.weight, losses


@train_embedding.right
def _(weight, batches, lr):
    import torch

    weight = weight.clone().requires_grad_()
    state, losses = torch.zeros_like(weight), []
    for words, targets in batches:
        loss = torch.nn.functional.mse_loss(torch.nn.functional.embedding(words, weight, sparse=True), targets)
        losses.append(loss.item())
        (grad,) = torch.autograd.grad(loss, weight)
        grad = grad.coalesce()
        at, g = tuple(grad.indices()), grad.values()
        with torch.no_grad():
            state[at] += g * g
            weight[at] -= lr * g / (state[at].sqrt() + 1e-10)
    return weight, losses


# ---- 7.9 ------------------------------------------------------------------------------------------------------------


@exercise(
    "7.9",
    points=3,
    minutes=10,
    stars=2,
    concepts=["A-08"],
    needs=["dense_step"],
    visible=5,
    hints=[
        "eps is compared with the root of the state. It matters where that root is no larger than eps; for a root of 1 "
        "nobody sees an eps of 1e-10.",
        "Choose the new state s + g² near eps² (then its root is near eps): for instance a state of 0 and a gradient of "
        "the size of eps. Under the root, eps counts as its own root, which for a small eps is far larger. 0 / 0 is "
        "NaN. And no torch.tensor(x) without brackets: torch.tensor([x]) has shape (1,).",
        'return torch.tensor([0.0]), torch.tensor([___]), where ___ is eps for "eps changes nothing" and for "inside or '
        'outside is the same", and something else for "without eps all is well".',
    ],
)
def eps_example(claim, eps):
    g = 0.0 if claim == "without eps all is well" else eps
    return torch.tensor([0.0]), torch.tensor([g])


@eps_example.facts
def _(answer, claim, eps):
    import torch

    pair = isinstance(answer, (list, tuple)) and len(answer) == 2
    facts = {
        "a pair (state_sum, grad)": pair or answer,
        "two float32 tensors": False,
        "each of shape (1,)": False,
        "finite, the state not below 0": False,
        "the claim fails": False,
    }
    if not pair or not all(isinstance(t, torch.Tensor) and t.dtype == torch.float32 for t in answer):
        return facts
    facts["two float32 tensors"] = True
    if not all(tuple(t.shape) == (1,) for t in answer):
        return facts
    facts["each of shape (1,)"] = True
    state, g = answer
    if not (torch.isfinite(state).all() and torch.isfinite(g).all() and (state >= 0).all()):
        return facts
    state, g = state.double(), g.double()
    new = state + g * g
    with_eps, under, without = g / (new.sqrt() + eps), g / (new + eps).sqrt(), g / new.sqrt()
    apart = lambda a, b: bool(((a - b).abs() > 0.1 * torch.maximum(a.abs(), b.abs())).all())
    fails = {
        "eps changes nothing": apart(with_eps, without),
        "inside or outside is the same": apart(with_eps, under),
        "without eps all is well": bool(without.isnan().all()),
    }[claim]
    return facts | {"finite, the state not below 0": True, "the claim fails": fails}


@eps_example.cases
def _(rng):
    yield "eps changes nothing", 1e-10
    yield "inside or outside is the same", 1e-6
    yield "without eps all is well", 1e-10
    yield "eps changes nothing", 0.25
    yield "inside or outside is the same", 1e-8
    for exponent in (rng.integer(1, 3), rng.integer(4, 7), rng.integer(8, 12)):
        for claim in ("eps changes nothing", "inside or outside is the same", "without eps all is well"):
            yield claim, 10.0**-exponent


@eps_example.wrong(
    "X-7.9-1",
    "These are tensors without a dimension, of shape (): torch.tensor(x). A parameter with one element has shape (1,): "
    "torch.tensor([x]).",
    sample="wrong_rank",
)
def _(claim, eps):
    import torch

    g = 0.0 if claim == "without eps all is well" else eps
    return torch.tensor(0.0), torch.tensor(g)


@eps_example.wrong(
    "X-7.9-2",
    "With a root of 1 in the state, a small eps is never seen. Where is the root of the state as small as eps?",
)
def _(claim, eps):
    import torch

    return torch.tensor([1.0]), torch.tensor([1.0])


@eps_example.wrong(
    "X-7.9-3",
    "The state is about as large as eps, but eps is added to its *root*, which is far larger. Make the root as small as "
    "eps.",
)
def _(claim, eps):
    import torch

    if claim == "without eps all is well":
        return torch.tensor([0.0]), torch.tensor([0.0])
    return torch.tensor([eps]), torch.tensor([eps])


@eps_example.wrong(
    "X-7.9-4",
    "A gradient of 0 makes a step of 0 with any eps above 0, so two of the claims still hold for it. Only where eps is "
    "left out does it do harm.",
)
def _(claim, eps):
    import torch

    return torch.tensor([0.0]), torch.tensor([0.0])


@eps_example.wrong(
    "X-7.9-5",
    "A state below 0, or one that is not finite, cannot be: it is a sum of squares.",
)
def _(claim, eps):
    import torch

    return torch.tensor([-eps]), torch.tensor([eps])


@eps_example.wrong(
    "X-7.9-6",
    "The gradient is tiny but not 0, so without eps the step is g / |g|, which is 1 and finite. NaN comes of 0 / 0 only.",
)
def _(claim, eps):
    import torch

    return torch.tensor([0.0]), torch.tensor([eps])


@eps_example.right
def _(claim, eps):
    import torch

    if claim == "without eps all is well":
        return torch.zeros(1), torch.zeros(1)
    return torch.tensor([eps**2]), torch.tensor([eps / 2])


@eps_example.right
def _(claim, eps):
    import torch

    small = {"eps changes nothing": -3 * eps, "inside or outside is the same": eps / 4}.get(claim, 0.0)
    return torch.zeros(1), torch.full((1,), small)


# ---- 7.10 -----------------------------------------------------------------------------------------------------------


@exercise(
    "7.10",
    points=3,
    minutes=10,
    stars=2,
    concepts=["A-13"],
    visible=3,
    hints=[
        "One row for each variant, fastest first; then say in words what the table says. A median does not move when "
        "one run was slow.",
        "statistics.median of a list, or the median of a tensor; torch.quantile(t, 0.75) - torch.quantile(t, 0.25) is "
        "the spread. Seconds times 1000 are milliseconds. sorted(rows, key=lambda row: row[1]) orders by the second "
        "entry.",
        'rows: (name, 1e3 * statistics.median(runs), 1e3 * (q75 - q25), median / smallest median). text: f"{fastest} '
        'takes {___:.3f} ms, and {slowest} takes ___ times as long. The reason is ___."',
    ],
)
def cost_report(times):
    rows = []
    for name, runs in times.items():
        t = torch.tensor(runs, dtype=torch.float64)
        low, middle, high = torch.quantile(t, torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)).tolist()
        rows.append((name, 1e3 * middle, 1e3 * (high - low)))
    rows.sort(key=lambda row: row[1])
    best = rows[0]
    table = [(*row, row[1] / best[1]) for row in rows]
    slowest = table[-1]
    text = (
        f"{best[0]} is the fastest with {best[1]:.3f} ms, and {slowest[0]} takes {slowest[3]:.0f} times as long. "
        "A variant is slow where it touches every element of the parameter instead of those that have a gradient."
    )
    return table, text


@cost_report.facts
def _(answer, times):
    import re

    pair = isinstance(answer, (list, tuple)) and len(answer) == 2
    facts = {
        "a pair (table, text)": pair or answer,
        "text is one string": pair and isinstance(answer[1], str),
        "table": answer[0] if pair else None,
        "two sentences": 0,
        "of five words or more": False,
        "name the fastest and the slowest": False,
    }
    if not facts["text is one string"]:
        return facts
    table, text = answer
    if not isinstance(table, (list, tuple)) or not all(isinstance(r, (list, tuple)) and len(r) == 4 for r in table):
        return facts
    sentences = [s for s in re.split(r"[.!?](?=\s|$)", text) if s.strip()]
    by_time = sorted(times, key=lambda name: sorted(times[name])[len(times[name]) // 2])
    return facts | {
        "table": [tuple(float(v) if isinstance(v, (int, float)) else v for v in row) for row in table],
        "two sentences": len(sentences),
        "of five words or more": all(len(s.split()) >= 5 for s in sentences),
        "name the fastest and the slowest": all(name in text for name in (by_time[0], by_time[-1])),
    }


@cost_report.cases
def _(rng):
    yield {"dense": [0.004, 0.002, 0.003], "sparse": [0.001, 0.0015, 0.009]}
    yield {"masked": [0.15, 0.16, 0.14, 0.2, 0.15], "dense": [0.002] * 5, "sparse": [0.0001, 0.0002, 0.0001, 0.0, 0.05]}
    yield {"rows": [0.5], "dense": [0.25]}
    names = ["dense", "sparse", "masked", "rows", "stock"]
    for _ in range(6):
        count = 2 * rng.integer(1, 4) + 1
        order = rng.permutation(5).tolist()[: rng.integer(2, 5)]
        yield {
            names[k]: [(rng.integer(10, 40) + 100 * place) / 10_000 for _ in range(count)]
            for place, k in enumerate(reversed(order))
        }


@cost_report.wrong(
    "M05",
    "The second column is the mean. One slow run pulls it up, and slow runs always happen: take the median.",
)
def _(times):
    import torch

    rows = []
    for name, runs in times.items():
        t = torch.tensor(runs, dtype=torch.float64)
        spread = (torch.quantile(t, 0.75) - torch.quantile(t, 0.25)).item()
        rows.append((name, 1e3 * t.mean().item(), 1e3 * spread, t.mean().item()))
    rows.sort(key=lambda row: row[1])
    table = [(*row[:3], row[3] / rows[0][3]) for row in rows]
    by_time = sorted(times, key=lambda name: sorted(times[name])[len(times[name]) // 2])
    return table, f"{by_time[0]} is faster here than {by_time[-1]}. The slow one does more work than needed."


@cost_report.wrong("X-7.10-1", "The times are still in seconds. The table is in milliseconds: times 1000.")
def _(times):
    import torch

    rows = []
    for name, runs in times.items():
        t = torch.tensor(runs, dtype=torch.float64)
        spread = (torch.quantile(t, 0.75) - torch.quantile(t, 0.25)).item()
        rows.append((name, torch.quantile(t, 0.5).item(), spread))
    rows.sort(key=lambda row: row[1])
    table = [(*row, row[1] / rows[0][1]) for row in rows]
    return table, f"{table[0][0]} is faster here than {table[-1][0]}. The slow one does more work than needed."


@cost_report.wrong(
    "X-7.10-2", "The rows stand in the order in which they came, or with the slowest first. The fastest comes first."
)
def _(times):
    import torch

    rows = []
    for name, runs in times.items():
        t = torch.tensor(runs, dtype=torch.float64)
        spread = (torch.quantile(t, 0.75) - torch.quantile(t, 0.25)).item()
        rows.append((name, 1e3 * torch.quantile(t, 0.5).item(), 1e3 * spread))
    rows.sort(key=lambda row: -row[1])
    table = [(*row, row[1] / rows[-1][1]) for row in rows]
    return table, f"{table[-1][0]} is faster here than {table[0][0]}. The slow one does more work than needed."


@cost_report.wrong(
    "X-7.10-3",
    "The ratio is upside down: it says how many times as long as the fastest a variant takes, so it is 1 for the "
    "fastest and more for all others.",
)
def _(times):
    import torch

    rows = []
    for name, runs in times.items():
        t = torch.tensor(runs, dtype=torch.float64)
        spread = (torch.quantile(t, 0.75) - torch.quantile(t, 0.25)).item()
        rows.append((name, 1e3 * torch.quantile(t, 0.5).item(), 1e3 * spread))
    rows.sort(key=lambda row: row[1])
    table = [(*row, rows[0][1] / row[1]) for row in rows]
    return table, f"{table[0][0]} is faster here than {table[-1][0]}. The slow one does more work than needed."


@cost_report.wrong(
    "X-7.10-4",
    "The third column is the whole range, which one bad run decides. The spread of the middle half is wanted: the "
    "quantile 0.75 minus the quantile 0.25.",
)
def _(times):
    import torch

    rows = []
    for name, runs in times.items():
        t = torch.tensor(runs, dtype=torch.float64)
        rows.append((name, 1e3 * torch.quantile(t, 0.5).item(), 1e3 * (t.max() - t.min()).item()))
    rows.sort(key=lambda row: row[1])
    table = [(*row, row[1] / rows[0][1]) for row in rows]
    return table, f"{table[0][0]} is faster here than {table[-1][0]}. The slow one does more work than needed."


@cost_report.wrong(
    "X-7.10-5",
    "The table is right; the text is not two sentences that name the fastest and the slowest variant. A reader wants to "
    "know which, how much, and why.",
)
def _(times):
    import torch

    rows = []
    for name, runs in times.items():
        t = torch.tensor(runs, dtype=torch.float64)
        spread = (torch.quantile(t, 0.75) - torch.quantile(t, 0.25)).item()
        rows.append((name, 1e3 * torch.quantile(t, 0.5).item(), 1e3 * spread))
    rows.sort(key=lambda row: row[1])
    return [(*row, row[1] / rows[0][1]) for row in rows], "See the table."


@cost_report.wrong(
    "X-7.10-6",
    "The table is right, but the text names variants that were typed in. Times differ from machine to machine: take the "
    "names out of the table.",
)
def _(times):
    import torch

    rows = []
    for name, runs in times.items():
        t = torch.tensor(runs, dtype=torch.float64)
        spread = (torch.quantile(t, 0.75) - torch.quantile(t, 0.25)).item()
        rows.append((name, 1e3 * torch.quantile(t, 0.5).item(), 1e3 * spread))
    rows.sort(key=lambda row: row[1])
    table = [(*row, row[1] / rows[0][1]) for row in rows]
    return table, "The first variant is the fastest one here. The last variant does more work than needed."


@cost_report.right
def _(times):
    import statistics

    def quantile(runs, q):
        runs = sorted(runs)
        place = q * (len(runs) - 1)
        low = int(place)
        high = min(low + 1, len(runs) - 1)
        return runs[low] + (place - low) * (runs[high] - runs[low])

    medians = {name: statistics.median(runs) for name, runs in times.items()}
    order = sorted(medians, key=medians.get)
    fastest = medians[order[0]]
    table = [
        [name, 1e3 * medians[name], 1e3 * (quantile(times[name], 0.75) - quantile(times[name], 0.25)), 0.0]
        for name in order
    ]
    for row in table:
        row[3] = medians[row[0]] / fastest
    text = f"Of all variants {order[0]} was the fastest! Does {order[-1]} touch more elements than it has to?"
    return table, text


@cost_report.right
def _(times):
    import numpy

    rows = []
    for name, runs in times.items():
        low, middle, high = numpy.percentile(runs, [25, 50, 75])
        rows.append((name, float(1000 * middle), float(1000 * (high - low))))
    rows = sorted(rows, key=lambda row: row[1])
    table = [(*row, row[1] / rows[0][1]) for row in rows]
    words = "The slowest one, {}, takes {:.1f} times as long as {}. It computes what nobody reads afterwards."
    return table, words.format(table[-1][0], table[-1][3], table[0][0])


# ---- predictions ----------------------------------------------------------------------------------------------------

PREDICTIONS = [
    prediction(
        "R1",
        "`x = torch.zeros(3)`, then `x[torch.tensor([0, 0, 2])] += 1`. What is `x`?",
        {
            "a": ("[2, 0, 1]", "Place 0 is named twice, but += reads both old values first and writes 0 + 1 twice."),
            "b": (
                "[1, 0, 1]",
                "x[i] += 1 reads, adds and writes: the second write to place 0 replaces the first. index_add_ or "
                "index_put_(..., accumulate=True) count.",
            ),
            "c": ("an error: an index may not repeat", "It may. Nothing warns you, which is why it is worth knowing."),
        },
        "b",
    ),
    prediction(
        "R2",
        "In a MaskedTensor, what does True in the mask say?",
        {
            "a": (
                "this element is hidden",
                "That is NumPy's convention, and that of some arguments of torch. MaskedTensor has the other one.",
            ),
            "b": ("this element is specified", "True means specified. Under False there may be anything."),
            "c": ("this element is not zero", "Zero is a value like any other. A mask does not look at values."),
        },
        "b",
    ),
    prediction(
        "R3",
        "A COO tensor of shape (2,) stores 1 and 2, both at place 0. What does `to_dense()` give?",
        {
            "a": ("[3, 0]", "What stands at one place is added. A COO tensor with duplicates stands for their sum."),
            "b": ("[2, 0]", "The last one does not win: that is how assignment by an index behaves."),
            "c": ("[1, 2]", "The place decides, not the order. Both entries belong to place 0."),
        },
        "a",
    ),
    prediction(
        "P1",
        "One Adagrad step with the sparse gradient above. Which elements of `param` change?",
        {
            "a": (
                "all eight",
                "Where there is no gradient, there is nothing to subtract: even read as a 0, it gives a step of 0.",
            ),
            "b": (
                "the two rows that have an entry",
                "Entries of this gradient are single numbers. (In the gradient of an embedding an entry is a whole row.)",
            ),
            "c": ("the three that have an entry", "Only the places that are named. The rest keeps its bits."),
        },
        "c",
    ),
    prediction(
        "P2",
        "`param` comes from the sparse step, `param2` from the masked one. May you rely on `torch.equal(param, param2)`?",
        {
            "a": ("yes, the formula is the same", "The formula is, the order of the roundings is not."),
            "b": (
                "no, the last digit may differ",
                "They differ by 2.4e-7 or not at all, as the processor multiplies and adds in one rounding or in two. "
                "Compare with allclose or assert_close.",
            ),
            "c": ("no, they differ in every digit", "They agree to seven digits. That is all that float32 has."),
        },
        "b",
    ),
    prediction(
        "P3",
        "What does `torch.optim.Adagrad` do with a gradient that is a MaskedTensor of `torch.masked`?",
        {
            "a": (
                "it moves what is specified",
                "That is what one would wish, and what maskedtensor_ref does. torch.masked has no rule for addcmul_.",
            ),
            "b": (
                "it treats what is masked as 0",
                "Nothing is filled in silently. It stops at its first in-place operation.",
            ),
            "c": (
                "it raises a TypeError",
                "Multiple dispatch failed for addcmul_: the first line of the step has no rule there.",
            ),
        },
        "c",
    ),
    prediction(
        "P4",
        "Which of these steps need memory of the size of the whole parameter?",
        {
            "a": (
                "only the dense one",
                "The dense one does. Look at the masked one again: to_dense(), and a state that is a new tensor.",
            ),
            "b": (
                "the dense one and the masked one as first published",
                "The dense one for its root and its quotient. The masked one calls to_dense(), makes a new state and "
                "turns the whole state into a sparse tensor. Only the sparse step keeps to its entries.",
            ),
            "c": (
                "none: each of them has a sparse gradient",
                "The gradient is small, but what is computed with it need not be.",
            ),
        },
        "b",
    ),
]
