"""How fast maskedtensor_ref is beside torch.masked, plain torch, numpy.ma and the limit: ratios within one process.

    python benchmarks/masked.py [--quick] [--out docs/benchmarks]

Prints the page; with --out it writes masked.md and masked.svg there. All contenders of a row take turns, and a ratio is
the median of the ratios within one turn, so that a busy machine is unfair to none. Time is CPU time of this process, in
one thread: what other processes take does not count. The limit is what nobody who computes the same with torch can beat
by much: the plain operation, and one pass by bits over the mask where the operation has to read past what is missing.
"""

import argparse
import contextlib
import ctypes
import functools
import gc
import math
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import maskedtensor_ref

OURS, PEER, PLAIN, NUMPY, LIMIT = "maskedtensor_ref", "torch.masked", "torch", "numpy.ma", "limit"
YARDSTICK = "torch.masked's add"
PEER_ADD_US = 130  # what the yardstick, torch.masked's add of one element, takes on the machine that the aims speak of
INF = float("inf")


# What is measured.


@dataclass(frozen=True)
class Operands:
    """The same numbers in one contender's own type.

    Attributes:
        a, b: float32 under one mask, (rows, columns). Plain and limit: the data alone.
        c: bool, (rows, columns), the condition of where.
        mask: bool, (rows, columns).
        x: float32, (rows, columns): the data of a.
        build: from data and mask to this type.
    """

    a: object
    b: object
    c: object
    mask: object
    x: object
    build: Callable = None


@dataclass(frozen=True)
class Operation:
    """One operation as each contender writes it; None where a contender has none.

    Attributes:
        kind: elementwise, reduction or other.
        torch: for maskedtensor_ref, torch.masked and, on the data, plain torch.
        numpy, limit: for numpy.ma; and for the limit, on data and mask.
        plain: whether plain torch has the operation.
    """

    name: str
    kind: str
    torch: Callable
    numpy: Callable | None = None
    limit: Callable | None = None
    plain: bool = True


@dataclass(frozen=True)
class Row:
    """One line of the table: contenders, by name, as functions without arguments."""

    name: str
    kind: str
    where: str
    size: int
    density: float
    contenders: dict


@dataclass(frozen=True)
class Timing:
    """A row and the CPU seconds of one call, for each contender in each turn."""

    row: Row
    seconds: dict

    def median(self, name):
        """Seconds; None for a contender that is not there."""
        return statistics.median(self.seconds[name]) if name in self.seconds else None

    def ratios(self, over, under):
        """over / under within each turn; empty when one of them is not there."""
        return [a / b for a, b in zip(self.seconds.get(over, ()), self.seconds.get(under, ()), strict=False)]

    def ratio(self, over, under):
        """The median of over / under; None when one of them is not there."""
        found = self.ratios(over, under)
        return statistics.median(found) if found else None


def missing_as(x, mask, value):
    """x where mask is True, else value: NaN-safe, by bits where that is quicker. x: contiguous float32."""
    if x.numel() < 1 << 14:
        return torch.where(mask, x, value)
    bits, words = mask.to(torch.int32).neg_(), x.view(torch.int32)
    if value == 0:
        return bits.bitwise_and_(words).view(torch.float32)
    v = torch.tensor(value, dtype=x.dtype).view(torch.int32).item()
    return bits.bitwise_and_(words ^ v).bitwise_xor_(v).view(torch.float32)


def any_of(mask, *dim):
    """Whether any is True, along dim or at all."""
    return mask.any(*dim) if mask.numel() < 1 << 14 else mask.view(torch.uint8).amax(*dim).view(torch.bool)


def count_of_rows(mask):
    """How many are True: (rows, 1)."""
    return mask.sum(1, True) if mask.numel() < 1 << 14 else mask.view(torch.int8).sum(1, True, dtype=torch.int32)


def mean_of_rows(o):
    """The limit of mean(1)."""
    n = count_of_rows(o.mask)
    return missing_as(o.a, o.mask, 0).sum(1, True) / n.clamp(min=1), n > 0


def std_of_rows(o):
    """The limit of std(1): two passes, as the distance from the mean needs them."""
    n = count_of_rows(o.mask)
    mean = missing_as(o.a, o.mask, 0).sum(1, True) / n
    distance = missing_as(o.a - mean, o.mask, 0)
    return ((distance * distance).sum(1, True) / (n - 1).clamp(min=0)).sqrt(), n > 0


def chosen_by_bits(o):
    """The limit of where, of two operands with one mask, which is the mask of the result."""
    if o.a.numel() < 1 << 14:
        return torch.where(o.c, o.a, o.b)
    bits, a, b = o.c.to(torch.int32).neg_(), o.a.view(torch.int32), o.b.view(torch.int32)
    return bits.bitwise_and_(a ^ b).bitwise_xor_(b).view(torch.float32)


def backward(o):
    """A new leaf, the sum of its squares, and its gradient."""
    leaf = o.build(o.x, o.mask)
    leaf.requires_grad_()
    (leaf * leaf).sum().backward()


def backward_limit(o):
    """backward, in plain torch."""
    leaf = o.x.clone().requires_grad_()
    torch.where(o.mask, leaf * leaf, 0).sum().backward()


def everywhere(name, kind, call):
    """An operation that every contender writes the same way."""
    return Operation(name, kind, call, call, call)


OPERATIONS = [
    everywhere("add", "elementwise", lambda o: o.a + o.b),
    everywhere("mul", "elementwise", lambda o: o.a * o.b),
    everywhere("div", "elementwise", lambda o: o.a / o.b),
    everywhere("add a number", "elementwise", lambda o: o.a + 1),
    everywhere("ge", "elementwise", lambda o: o.a >= o.b),
    Operation("sin", "elementwise", lambda o: o.a.sin(), lambda o: np.ma.sin(o.a), lambda o: o.a.sin()),
    Operation("exp", "elementwise", lambda o: o.a.exp(), lambda o: np.ma.exp(o.a), lambda o: o.a.exp()),
    Operation("abs", "elementwise", lambda o: o.a.abs(), lambda o: np.ma.abs(o.a), lambda o: o.a.abs()),
    Operation(
        "where",
        "elementwise",
        lambda o: torch.where(o.c, o.a, o.b),
        lambda o: np.ma.where(o.c, o.a, o.b),
        chosen_by_bits,
    ),
    Operation(
        "sum",
        "reduction",
        lambda o: o.a.sum(),
        lambda o: o.a.sum(),
        lambda o: (missing_as(o.a, o.mask, 0).sum(), any_of(o.mask)),
    ),
    Operation(
        "sum(1)",
        "reduction",
        lambda o: o.a.sum(1),
        lambda o: o.a.sum(1),
        lambda o: (missing_as(o.a, o.mask, 0).sum(1), any_of(o.mask, 1)),
    ),
    Operation("mean(1)", "reduction", lambda o: o.a.mean(1), lambda o: o.a.mean(1), mean_of_rows),
    Operation("std(1)", "reduction", lambda o: o.a.std(1), lambda o: o.a.std(1, ddof=1), std_of_rows),
    Operation(
        "amax(1)",
        "reduction",
        lambda o: o.a.amax(1),
        lambda o: o.a.max(1),
        lambda o: (missing_as(o.a, o.mask, -INF).amax(1), any_of(o.mask, 1)),
    ),
    Operation(
        "prod(1)",
        "reduction",
        lambda o: o.a.prod(1),
        lambda o: o.a.prod(1),
        lambda o: (missing_as(o.a, o.mask, 1).prod(1), any_of(o.mask, 1)),
    ),
    Operation(
        "argmin(1)",
        "reduction",
        lambda o: o.a.argmin(1),
        lambda o: o.a.argmin(1),
        lambda o: (missing_as(o.a, o.mask, INF).argmin(1), any_of(o.mask, 1)),
    ),
    Operation(
        "softmax(1)",
        "other",
        lambda o: torch.softmax(o.a, 1),
        None,
        lambda o: torch.softmax(missing_as(o.a, o.mask, -INF), 1),
    ),
    Operation(
        "construct",
        "other",
        lambda o: o.build(o.x, o.mask),
        lambda o: o.build(o.x, mask=o.mask),
        lambda o: (o.x.clone(), o.mask.clone()),
        plain=False,
    ),
    Operation("x*x, sum, backward", "other", backward, None, backward_limit, plain=False),
]


def strided_rows(sizes, densities):
    """Every operation at every size and density; one element is specified at any density."""
    for size in sizes:
        for density in densities if size > 1 else densities[:1]:
            operands = strided_operands(size, density)
            for op in OPERATIONS:
                contenders = {
                    OURS: functools.partial(op.torch, operands[OURS]),
                    PEER: functools.partial(op.torch, operands[PEER]),
                }
                if op.plain:
                    contenders[PLAIN] = functools.partial(op.torch, operands[PLAIN])
                if op.numpy:
                    contenders[NUMPY] = functools.partial(op.numpy, operands[NUMPY])
                contenders[LIMIT] = functools.partial(op.limit, operands[PLAIN])
                if size == 1:
                    contenders[YARDSTICK] = functools.partial(OPERATIONS[0].torch, operands[PEER])
                yield Row(op.name, op.kind, "strided", size, density if size > 1 else 1.0, contenders)


def strided_operands(size, density):
    """Each contender's operands, on equal numbers."""
    random = torch.Generator().manual_seed(size)
    rows = math.isqrt(size)
    shape = rows, size // rows
    x, y = (torch.rand(shape, generator=random) + 0.5 for _ in range(2))
    mask = torch.rand(shape, generator=random) < density if size > 1 else torch.ones(shape, dtype=torch.bool)
    c = torch.rand(shape, generator=random) < 0.5
    operands = {
        name: Operands(build(x, mask), build(y, mask), c, mask, x, build)
        for name, build in ((OURS, maskedtensor_ref.masked_tensor), (PEER, torch.masked.masked_tensor))
    }
    ours = operands[OURS]  # the limit reads the same memory: where a tensor lies is worth a third of its time
    operands[PLAIN] = Operands(ours.a.get_data(), ours.b.get_data(), c, ours.a.get_mask(), x)
    a, b, hidden, c = x.numpy(), y.numpy(), ~mask.numpy(), c.numpy()
    build = functools.partial(np.ma.array, copy=True)
    operands[NUMPY] = Operands(build(a, mask=hidden), build(b, mask=hidden), c, hidden, a, build)
    return operands


SPARSE = [  # on a and b, that store the same places; the limit has their stored values alone
    ("add", lambda a, b: a + b),
    ("mul", lambda a, b: a * b),
    ("sin", lambda a, b: a.sin()),
    ("abs", lambda a, b: a.abs()),
    ("sum", lambda a, b: a.sum()),
    ("amax", lambda a, b: a.amax()),
    ("prod", lambda a, b: a.prod()),
]


def sparse_rows(stored):
    """COO and CSR, with `stored` of ten times as many elements."""
    random = torch.Generator().manual_seed(stored)
    side = math.isqrt(10 * stored)
    places = torch.zeros(side * side, dtype=torch.bool)
    places[torch.randperm(side * side, generator=random)[:stored]] = True
    places[side - 1 :: side] = True  # torch.masked loses an empty last column of CSR
    places = places.view(side, side)
    x, y = (places * (torch.rand(side, side, generator=random) + 0.5) for _ in range(2))
    for where, to in (("COO", Tensor.to_sparse), ("CSR", Tensor.to_sparse_csr)):
        a, b, mask = to(x), to(y), to(places)
        a, b = (a.coalesce(), b.coalesce()) if where == "COO" else (a, b)
        mask = mask.coalesce() if where == "COO" else mask
        ours, peer = (
            (build(a, mask), build(b, mask)) for build in (maskedtensor_ref.masked_tensor, torch.masked.masked_tensor)
        )
        for name, call in SPARSE:
            contenders = {
                OURS: functools.partial(call, *ours),
                PEER: functools.partial(call, *peer),
                LIMIT: functools.partial(call, a.values(), b.values()),
            }
            if name in ("add", "mul") or (where == "COO" and name in ("sin", "abs", "sum")):
                contenders[PLAIN] = functools.partial(call, a, b)
            yield Row(name, "sparse", where, stored, 0.1, contenders)


LR, EPS, START = 0.1, 1e-10, 0.5  # of Adagrad; what its sum of squares starts from


def adagrad_rows(rows, columns):
    """One Adagrad step on a (rows, columns) parameter, of which 1 % of the rows have a gradient."""
    random = torch.Generator().manual_seed(rows)
    touched = torch.randperm(rows, generator=random)[: max(1, rows // 100)].sort().values
    values = torch.rand(len(touched), columns, generator=random) + 0.5
    start = torch.rand((rows, columns), generator=random)
    gradient = at_rows(touched, values, start.shape)
    entries = gradient.to_dense().to_sparse()

    def on(step, *gradient):
        return functools.partial(step, start.clone(), torch.full_like(start, START), *gradient)

    def row(name, where, ours, plain, peer=True, limit=True):
        contenders = {OURS: ours, PLAIN: stock(start, plain)}
        if peer:
            contenders[PEER] = on(tutorial_step, torch.masked.masked_tensor, entries)
        if limit:
            contenders[LIMIT] = on(step_by_rows, touched, values)
        return Row(name, "adagrad", where, start.numel(), 0.01, contenders)

    yield row("Adagrad step", "rows", on(masked_step, masked_rows(gradient)), gradient)
    yield row("Adagrad step that masks its gradient", "rows", on(masking_step, gradient), gradient)
    yield row(
        "Adagrad step, the tutorial's code", "COO", on(tutorial_step, maskedtensor_ref.masked_tensor, entries), entries
    )
    whole = gradient.to_dense()
    yield row("stock Adagrad, strided gradient", "strided", stock(start, whole, whole != 0), whole, False, False)


def at_rows(touched, values, shape):
    """A hybrid COO tensor of a shape that stores values (touched, columns) at the rows touched."""
    return torch.sparse_coo_tensor(touched[None], values, shape, is_coalesced=True, check_invariants=False)


def masked_rows(gradient):
    """The MaskedTensor that specifies the rows that a hybrid COO gradient stores."""
    specified = torch.ones_like(gradient.values(), dtype=torch.bool)
    return maskedtensor_ref.masked_tensor(gradient, at_rows(gradient.indices()[0], specified, gradient.shape))


def masked_step(param, total, grad):
    """Adagrad on a masked gradient, in place: what is not specified is not touched."""
    total.add_(grad * grad)
    param.add_(grad / (total.sparse_mask(grad).sqrt() + EPS), alpha=-LR)


def masking_step(param, total, gradient):
    """masked_step on a sparse gradient as autograd gives it."""
    masked_step(param, total, masked_rows(gradient))


def step_by_rows(param, total, touched, values):
    """The limit: rows by index, in place."""
    total[touched] += values * values
    param[touched] -= LR * values / (total[touched].sqrt() + EPS)


def tutorial_step(param, total, build, grad):
    """What PyTorch's tutorial teaches.

    Source: docs.pytorch.org/tutorials/unstable/maskedtensor_adagrad.html
    """
    mask = (grad.to_dense() != 0).to_sparse()
    masked_grad = build(grad, mask)
    total = total + masked_grad.pow(2).get_data()
    std = build(total.to_sparse(), mask).sqrt().add(EPS)
    return param.add((masked_grad / std).get_data(), alpha=-LR)


def stock(start, gradient, mask=None):
    """The step of torch.optim.Adagrad on a gradient: plain, or strided under a mask."""
    param = torch.nn.Parameter(start.clone())
    if mask is None:
        param.grad = gradient
    else:  # the gradient of what is behind as_masked_tensor is masked
        (maskedtensor_ref.as_masked_tensor(param * gradient, mask)).sum().backward()
    return torch.optim.Adagrad([param], lr=LR, eps=EPS, initial_accumulator_value=START).step


# How it is measured.


def timed(row, turns, block):
    """Time the contenders of a row in turns.

    Args:
        turns: how many times each contender is measured. block: seconds that one measurement should last at least.
    """
    calls = {}
    for name, call in row.contenders.items():
        try:
            call()
        except Exception as e:  # a contender that cannot do it is left out, and the table says so
            if name != PEER:
                raise
            print(f"{name} {row.name} {row.where}: {type(e).__name__}: {e}", file=sys.stderr)
            continue
        once = max(min(seconds_of(call, 1) for _ in range(3)), 1e-7)
        calls[name] = call, max(1, math.ceil(block / once))
    seconds = {name: [] for name in calls}
    names = list(calls)
    for turn in range(turns):
        k = turn % len(names)
        for name in names[k:] + names[:k]:
            call, number = calls[name]
            seconds[name].append(seconds_of(call, number))
    return Timing(row, seconds)


def seconds_of(call, number):
    """CPU seconds of one call, over a number of them, without the garbage collector.

    Three calls go before, until the cache holds what this contender reads, and not what the last one did.
    """
    gc.disable()
    try:
        for _ in range(3):
            call()
        began = time.process_time()
        for _ in range(number):
            call()
        return (time.process_time() - began) / number
    finally:
        gc.enable()


# What is said about it.


def geometric_mean(ratios):
    """exp of the mean log."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


@dataclass(frozen=True)
class Aim:
    """A goal, what was found, and the rows that miss it."""

    text: str
    goal: str
    found: str
    misses: list


WHY = {  # what a slow operation pays for, where it is known
    "construct": "it compares the mask with the copy it has of it, so that every later comparison is free",
    "std(1)": "two reductions, of which each is within the aim",
}


def aims(timings):
    """Each aim with what this run found; aims that the run has no row for are left out."""
    against = [(t.ratio(OURS, PEER), t) for t in timings if t.ratio(OURS, PEER)]
    worst = max(against, key=lambda pair: pair[0])
    yield Aim(
        "the slowest row beside torch.masked",
        "at most 1.3 times its time",
        f"{worst[0]:.2f} times ({label(worst[1].row)})",
        [f"{label(t.row)}: {r:.2f}" for r, t in against if r > 1.3],
    )
    mean = 1 / geometric_mean([r for r, _ in against])
    yield Aim(
        "the geometric mean over all rows, beside torch.masked",
        "at least 5 times as fast",
        f"{mean:.1f} times as fast",
        [] if mean >= 5 else [f"{mean:.1f}"],
    )
    large = [(t.ratio(OURS, LIMIT), t) for t in timings if t.row.where == "strided" and t.row.size >= 10**6]
    yield from _at_most(
        "a million elements, beside the limit", "{:.2f} times its time", 1.5, [p for p in large if p[0]]
    )
    for kind, goal in (("elementwise", 25), ("reduction", 40)):
        tiny = [(t.ratio(OURS, YARDSTICK), t) for t in timings if t.row.kind == kind and YARDSTICK in t.seconds]
        scaled = [(r * PEER_ADD_US, t) for r, t in tiny]
        yield from _at_most(
            f"one element, {kind}, where torch.masked's add takes {PEER_ADD_US} µs", "{:.1f} µs", goal, scaled
        )
    coo = [(t.ratio(OURS, LIMIT), t) for t in timings if t.row.where == "COO" and t.row.name == "add"]
    yield from _at_most("COO add, beside the same on the stored values alone", "{:.1f} times its time", 3, coo)
    step = [(t.ratio(OURS, PLAIN), t) for t in timings if t.row.where == "rows"]
    yield from _at_most(
        "a masked Adagrad step, beside torch.optim on a sparse gradient", "{:.1f} times its time", 3, step
    )


def _at_most(text, form, goal, found):
    if found:
        worst = max(found, key=lambda pair: pair[0])
        misses = [f"{label(t.row)}: {form.format(r)}" for r, t in found if r > goal]
        worst_text = f"{form.format(worst[0])} ({label(worst[1].row)})"
        yield Aim(text, "at most " + form.format(goal), worst_text, misses)


def label(row):
    """A row in words."""
    return f"{row.name}, {row.where}, {row.size:,} elements, {row.density:.0%} specified"


def page(timings, command):
    """The Markdown page: headline, plot, one table an operation, every row."""
    aimed = list(aims(timings))
    lines = [
        "# maskedtensor_ref beside torch.masked, in time",
        "",
        f"`{command}` measures it, and writes this page and the plot.",
        "",
        "| aim | goal | found (the worst row) | |",
        "| --- | --- | --- | --- |",
        *(f"| {a.text} | {a.goal} | {a.found} | {'missed' if a.misses else 'met'} |" for a in aimed),
        "",
        f"![{alternative(timings)}](masked.svg)",
        "",
    ]
    missed = [a for a in aimed if a.misses]
    if missed:
        lines += ["## Where an aim is missed", ""]
        lines += [f"* {a.text} ({a.goal}): " + "; ".join(a.misses) + "." for a in missed] + [""]
        lines += [f"* {name}: {why}." for name, why in WHY.items() if any(name in m for a in missed for m in a.misses)]
        lines += [""]
    lines += [
        "## How to read it",
        "",
        "All contenders of a row run in one process and take turns. A ratio is the median of the ratios within one "
        "turn; after ± stands half the distance of their quartiles. Ratios are to be trusted, and times are not. "
        "Measured in one thread, as CPU time, with an allocator that keeps what is freed, on torch "
        f"{torch.__version__.partition('+')[0]} and NumPy {np.__version__}, with {machine()}.",
        "",
        "*The limit* computes the same with torch on plain data and mask: the plain operation, one pass by bits over "
        "the mask where the operation reads past what is missing, and `any` over bytes; no wrapper, no checks, no "
        "gradients. For sparse tensors it is the operation on the stored values alone, for the Adagrad step rows by "
        "index, in place. *torch* is the plain operation on the data alone, which gives another answer; for the "
        "Adagrad step `torch.optim.Adagrad` on a sparse gradient. A dash: the contender has no such operation.",
        "",
        "## Times faster than torch.masked, strided",
        "",
        *by_size(timings, PEER, OURS, min, "{:.1f}"),
        "",
        "## Times the limit, strided",
        "",
        *by_size(timings, OURS, LIMIT, max, "{:.2f}"),
        "",
        "Each number is of the worst density. On tiny tensors the limit is a few bare calls into torch of about 1 µs, "
        "so what stands there is what a Python subclass costs.",
        "",
        "## Every row",
        "",
        "Time of maskedtensor_ref over the time of each.",
        "",
        "| operation | layout | elements | specified | µs | / torch.masked | / limit | / torch | / numpy.ma |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *map(line, timings),
        "",
    ]
    return "\n".join(lines)


def line(timing):
    """One row of the last table."""
    row = timing.row
    cells = [spread(timing.ratios(OURS, other)) for other in (PEER, LIMIT, PLAIN, NUMPY)]
    own = f"{timing.median(OURS) * 1e6:,.1f}"
    return f"| {row.name} | {row.where} | {row.size:,} | {row.density:.0%} | {own} | " + " | ".join(cells) + " |"


def spread(ratios):
    """The median, and half the distance of the quartiles."""
    if not ratios:
        return "–"
    low, middle, high = np.quantile(ratios, (0.25, 0.5, 0.75))
    return f"{middle:.3g} ± {(high - low) / 2:.1g}"


def by_size(timings, over, under, worst, form):
    """A table of ratios with a line for each operation, a column for each size, and the worst density in a cell."""
    some = strided(timings)
    sizes = sorted({t.row.size for t in some})
    yield "| operation | " + " | ".join(f"{size:,}" for size in sizes) + " |"
    yield "| --- |" + " ---: |" * len(sizes)
    for name in dict.fromkeys(t.row.name for t in some):
        at = {size: [t.ratio(over, under) for t in some if (t.row.name, t.row.size) == (name, size)] for size in sizes}
        yield (
            f"| {name} | "
            + " | ".join(form.format(worst(found)) if all(found) else "–" for found in at.values())
            + " |"
        )


def strided(timings):
    """The rows of OPERATIONS."""
    return [t for t in timings if t.row.kind not in ("sparse", "adagrad")]


def machine():
    """The machine in words: how many cores of which kind, and how many processes wanted them."""
    busy = f", about {os.getloadavg()[0]:.0f} processes wanting them" if hasattr(os, "getloadavg") else ""
    return f"{os.cpu_count()} {platform.machine()} cores{busy}"


def alternative(timings):
    """The plot in words."""
    against = [t.ratio(PEER, OURS) for t in timings if t.ratio(PEER, OURS)]
    return (
        "Two panels of dots, an operation a line and a colour for each size. "
        f"Left: times faster than torch.masked, from {min(against):.1f} to {max(against):.0f}. "
        "Right: time over the limit, which nears 1 as tensors grow."
    )


def plot(timings, path):
    """Dots on two logarithmic axes: how many times faster than the peer, and how far from the limit."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams |= {"svg.hashsalt": "masked", "svg.fonttype": "none", "font.size": 9}
    some, others = strided(timings), [t for t in timings if t.row.where in ("COO", "CSR", "rows")]
    names = list(dict.fromkeys([t.row.name for t in some] + [_place(t) for t in others]))
    sizes = sorted({t.row.size for t in some})
    colours = dict(zip(sizes, plt.get_cmap("viridis")(np.linspace(0.9, 0.05, len(sizes))), strict=True))
    figure, panels = plt.subplots(1, 2, sharey=True, figsize=(10, 0.26 * len(names) + 1.4), layout="constrained")
    titles = "times faster than torch.masked", "times the limit"
    for panel, title, over, under in zip(panels, titles, (PEER, OURS), (OURS, LIMIT), strict=True):
        panel.set_xscale("log")
        panel.xaxis.set_major_formatter("{x:g}")
        panel.set_title(title)
        panel.axvline(1, color="black", linewidth=0.8)
        panel.grid(axis="x", color="0.9")
        for size in sizes:
            points = [(t.ratio(over, under), names.index(t.row.name)) for t in some if t.row.size == size]
            x, y = zip(*((r, i) for r, i in points if r), strict=True)
            panel.scatter(x, y, s=22, color=colours[size], label=f"{size:,} elements", zorder=2)
        points = [(t.ratio(over, under), names.index(_place(t))) for t in others if t.ratio(over, under)]
        if points:
            panel.scatter(*zip(*points, strict=True), s=26, marker="s", color="0.4", label="sparse, Adagrad", zorder=2)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    figure.legend(*panels[1].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path, metadata={"Title": titles[0], "Description": alternative(timings), "Date": None})
    plt.close(figure)


def _place(timing):
    return timing.row.name if timing.row.kind == "adagrad" else f"{timing.row.name}, {timing.row.where}"


@dataclass(frozen=True)
class Run:
    """What is measured and how often: sizes and stored in elements, block in seconds."""

    sizes: tuple = (1, 100, 10_000, 1_000_000)
    densities: tuple = (0.1, 0.5, 0.9)
    stored: int = 100_000
    table: tuple = (10_000, 128)
    turns: int = 21
    block: float = 3e-3


QUICK = Run(sizes=(1, 1_000_000), densities=(0.5,), turns=9, block=3e-3)


M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h


def keep_memory():
    """Tell the allocator to keep what is freed: else the kernel's page faults, which come and go, are most of a row."""
    with contextlib.suppress(AttributeError, OSError, TypeError):  # glibc only
        for option in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
            ctypes.CDLL(None).mallopt(option, 1 << 30)


def measure(run):
    """The timings of a run, row after row."""
    keep_memory()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch.masked warns at every construction, torch about CSR
            rows = [strided_rows(run.sizes, run.densities), sparse_rows(run.stored), adagrad_rows(*run.table)]
            return [timed(row, run.turns, run.block) for some in rows for row in some]
    finally:
        torch.set_num_threads(before)


def write(timings, folder, command):
    """masked.md and masked.svg in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    plot(timings, folder / "masked.svg")
    (folder / "masked.md").write_text(page(timings, command), encoding="utf-8")


def main(arguments=None):
    """Measure, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="half a minute: two sizes, one density")
    parser.add_argument("--out", type=Path, help="folder for masked.md and masked.svg")
    chosen = parser.parse_args(arguments)
    timings = measure(QUICK if chosen.quick else Run())
    command = "python benchmarks/masked.py" + " --quick" * chosen.quick + " --out docs/benchmarks"
    if chosen.out:
        write(timings, chosen.out, command)
    else:
        print(page(timings, command))


if __name__ == "__main__":
    main()
