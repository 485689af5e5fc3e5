"""What is told of an answer in its place, computed outside of the process that gave it.

Where not the answer itself is judged but what is true of it ("the claim fails"), the exercise has a function
`facts(result, *case)`. Its text runs in the judge, and in a student's notebook, on what came back, the reference's as everybody
else's. What came back may be hostile: the function sees plain values and no object of the student's, and whatever it raises
on them is a wrong answer.
"""

import functools
import json
import warnings

import torch

from . import probe, wire
from .records import Seen, SeenObject, SeenTensor

UNUSABLE = "UnusableResult"  # the error of a result on which the facts raised: no reference raises one of this name


def told(answer: bytes, question: bytes, text: str, first: int = 0) -> bytes:
    """The same answer with what the facts say in the place of each result.

    Args:
        question: what was answered, from its case number `first` on; the facts see the cases as they were before the calls.
        text: of the function `facts`; "" leaves the answer as it is.
    Raises:
        Unreadable: the answer does not follow the format.
    """
    if not text:
        return answer
    cases = wire.cases(question)[first:]
    with wire.reading():
        meta, tensors = wire.opened(answer)
        pack = _Pack(tensors)
        seen = [pack.told(case, _function(text), values) for case, values in zip(meta["seen"], cases, strict=False)]
        seen += meta["seen"][len(seen) :]
        named = set(_named(seen))  # what is told of a result does not hold the result
        kept = {name: t for name, t in (tensors | pack.tensors).items() if name in named}
        return probe.packed(kept, json.dumps({"seen": seen}))


def _named(tree):
    """The names of the tensors in a tree of nodes."""
    if isinstance(tree, list):
        for item in tree:
            yield from _named(item)
    elif isinstance(tree, dict):
        if isinstance(tree.get("value"), str):
            yield tree["value"]
        for item in tree.values():
            yield from _named(item)


def fault(seen: Seen) -> str:
    """What the facts raised on a result, "" where they did not."""
    return seen.raised.message if seen.raised and seen.raised.types == (UNUSABLE,) else ""


@functools.cache
def _function(text):
    space = {}
    exec(compile(text, "<facts>", "exec"), space)
    return space["facts"]


class _Pack(probe.Pack):
    """Describes what the facts say; a tensor or record of the result that they hand on stays what was seen of it."""

    def __init__(self, tensors):
        super().__init__(prefix="_" * (1 + max(map(len, tensors), default=0)))  # of names that are not taken
        self.sent, self.kept = tensors, {}

    def told(self, case, function, values):
        """The node of a case with its result replaced."""
        if case["raised"] is not None:
            return case
        self.kept = {}
        self.name_inputs({})
        wire.read_node(case["result"], self.sent)  # what is malformed is no matter of the facts
        result = self.plain(case["result"])
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                return {**case, "result": self.describe(function(result, *values))}
        except Exception as error:
            said = f"what your function returned cannot be used ({type(error).__name__}: {str(error)[:200]})"
            return {**case, "result": None, "raised": {"types": [UNUSABLE], "message": said}}

    def plain(self, node):
        """The value of a node that can be read: tensors as plain ones on the CPU, of anything that is no data its record."""
        if isinstance(node, dict):
            ((kind, body),) = node.items()
            if kind in ("list", "tuple"):
                return (list if kind == "list" else tuple)(map(self.plain, body))
            if kind == "dict":
                return {wire.read_node(key, self.sent): self.plain(value) for key, value in body}
        seen = wire.read_node(node, self.sent)
        if isinstance(node, dict) and not isinstance(seen, (bytes, complex, tuple)):
            seen = _tensor(seen) if isinstance(seen, SeenTensor) else seen
            self.kept[id(seen)] = seen, node
        return seen

    def describe(self, value, depth=0):
        if id(value) in self.kept:
            return self.kept[id(value)][1]
        if isinstance(value, SeenObject):
            return {"object": {"type": value.type, "text": value.text}}
        return super().describe(value, depth)


def _tensor(seen: SeenTensor):
    """The plain tensor that was seen, without its history; the record itself of a MaskedTensor, an array, and where values lack."""
    if seen.kind in ("masked", "array", "scalar"):
        return seen
    if seen.layout == "strided":  # detached, an object of its own: by it the facts' result is known
        return seen if seen.value is None else seen.value.detach()
    made = wire.sparse(seen)
    return seen if made is None else made
