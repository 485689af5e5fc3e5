"""What can count in an exercise besides the value: views, strides, operations, warnings, gradients.

A property is data, `Property(name, arguments)`, so that it can be released beside the visible cases. What it demands of an
answer stands in `compare`, what it demands of the source in `source_rules`. Most are relative to the reference: where the
reference returns a view of `x`, so must the answer.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Property:
    """One demand beyond the value. `arguments` are plain data."""

    name: str
    arguments: tuple = ()

    @property
    def text(self) -> str:
        """What is checked, for an exercise card."""
        said = (str(argument).lstrip("_") for argument in self.arguments)  # aten calls to_dense() _to_dense
        return TEXTS[self.name].format(", ".join(said))


TEXTS = {
    "same_sharing": "shares memory exactly where it should (view or copy)",
    "same_strides": "strides",
    "same_kind": "kind of tensor",
    "no_warnings": "no warnings",
    "op_budget": "no more torch operations than needed",
    "copy_budget": "copies no more than needed",
    "never_calls": "does not call {0}",
    "gradient": "gradient",
    "finite_gradient": "gradient is finite",
    "same_requires_grad": "whether a gradient is tracked",
    "device_agnostic": "works on any device",
    "small_storage": "keeps no more memory than needed",
    "no_loops": "no Python loop over elements, no copy of them to Python or NumPy (`.tolist()`, `.numpy()`)",
    "same_plot": "the figure: {0}",
}

PLOT_PARTS = ("data", "titles", "axis labels", "legend", "shared x axis", "shared y axis", "line styles", "alt text")

same_sharing = Property("same_sharing")  # result tensors share storage with the inputs that the reference's share with
same_strides = Property("same_strides")
same_kind = Property("same_kind")  # tensor, parameter, array, scalar
no_warnings = Property("no_warnings")
gradient = Property("gradient")  # of the inputs that require it, as the reference's; set Exercise(gradient=True) too
finite_gradient = Property("finite_gradient")
same_requires_grad = Property("same_requires_grad")
device_agnostic = Property("device_agnostic")  # the call also succeeds on a fake GPU and stays there
small_storage = Property("small_storage")  # storage bytes of each result are those of the reference
no_loops = Property("no_loops")  # read from the source: no for, while, comprehension, .tolist(), .numpy()

COUNTED = ("op_budget", "copy_budget", "never_calls")  # they look at every dispatched operation, which counting slows


def op_budget(extra: int = 6) -> Property:
    """At most `extra` dispatched operations more than the reference needs, on every case."""
    return Property("op_budget", (extra,))


def copy_budget(extra: int = 128) -> Property:
    """At most `extra` bytes of new memory more than the reference needs, intermediate results included, on every case."""
    return Property("copy_budget", (extra,))


def same_plot(*parts: str) -> Property:
    """The figure that is returned shows what the reference's shows, in these of PLOT_PARTS (all of them by default).

    The function returns a matplotlib figure, or with "alt text" the pair (figure, description). Not the pixels count: see
    `plots` for what each part demands. Where the reference has no title, no legend and so on, none is demanded.
    """
    if unknown := set(parts) - set(PLOT_PARTS):
        raise ValueError(f"same_plot has no parts {sorted(unknown)}; there are {', '.join(PLOT_PARTS)}")
    return Property("same_plot", parts or PLOT_PARTS)


def never_calls(*names: str) -> Property:
    """None of these operations is dispatched, e.g. "to_dense", "clone"; names as in aten."""
    return Property("never_calls", names)
