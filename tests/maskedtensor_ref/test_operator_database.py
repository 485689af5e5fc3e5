"""The properties of every rule, driven by torch's own operator database."""

import warnings

import pytest
import torch
from no_rule import NO_RULE, NOTHING_TO_MASK, UNINITIALISED
from operators import agrees, ignores_poison, leaves, name_of, samples_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

ENTRIES = {name_of(op): op for op in op_db}
WORKING = [n for n in ENTRIES if n not in NO_RULE and n not in NOTHING_TO_MASK]


def tensors(op):
    """The samples of an entry whose first argument is a strided tensor, or holds some."""
    return [s for s in samples_of(op) if any(t.layout == torch.strided for t in leaves(s.input))]


def test_the_count_only_grows():
    assert len(WORKING) >= 590
    assert not (NO_RULE.keys() | set(NOTHING_TO_MASK)) - ENTRIES.keys(), (
        "an entry left the database: take it off the list"
    )


@pytest.mark.parametrize("name", WORKING)
def test_an_entry_agrees_with_torch_and_ignores_poison(name):
    op, worked = ENTRIES[name], 0
    for sample in tensors(op):
        try:
            if name not in UNINITIALISED:
                agrees(op, sample)
                ignores_poison(op, sample)
                ignores_poison(op, sample, every_operand=True)
            else:
                op.op(sample.input, *sample.args, **sample.kwargs)
        except NotImplementedError as refusal:  # an option without a rule, which must say so
            assert "MaskedTensor" in str(refusal) or ":" in str(refusal)
        else:
            worked += 1
    assert worked, "every sample was refused: list the entry in no_rule.py"


@pytest.mark.parametrize("name", NO_RULE)
def test_an_entry_without_a_rule_is_refused(name):
    op = ENTRIES[name]
    with pytest.raises((NotImplementedError, TypeError, ValueError, RuntimeError, AssertionError)):
        for sample in tensors(op):
            agrees(op, sample)
            ignores_poison(op, sample)


@pytest.mark.parametrize("name", NOTHING_TO_MASK)
def test_an_entry_without_tensors_has_nothing_to_mask(name):
    op = ENTRIES[name]
    try:
        assert not tensors(op)
    except AttributeError:
        pass  # it has no dtype on the CPU
