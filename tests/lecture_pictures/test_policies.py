"""What two masks make together is drawn as the policies say, and what cannot be drawn is refused."""

import pytest
import torch

from lecture_pictures import DrawingError, mask_conventions, policy_grid
from maskedtensor_ref import mask_policy, masked_tensor

NAN = float("nan")
A, MASK_A = torch.tensor([[1.0, 2.0, NAN], [4.0, NAN, 6.0]]), torch.tensor([[True, True, False], [True, False, True]])
B, MASK_B = torch.tensor([10.0, NAN, 30.0]), torch.tensor([True, False, True])


def lines(picture, caption):
    """The rows of one grid, as lists of what stands in them."""
    text = picture.text.splitlines()
    start = next(i for i, line in enumerate(text) if line.startswith(caption))
    found = [text[start].split(" = ", 1)[1]]
    for line in text[start + 1 :]:
        if not line.startswith(" "):
            break
        found.append(line)
    return [row.split() for row in found]


@pytest.mark.parametrize("operation", ["+", "-", "*", "/"])
@pytest.mark.parametrize("policy", ["intersection", "union"])
def test_a_result_is_that_of_the_package(policy, operation, legible):
    act = {"+": torch.add, "-": torch.sub, "*": torch.mul, "/": torch.div}[operation]
    a, b = A.nan_to_num(3.0) * 2, B.nan_to_num(5.0).clamp(max=8)
    with mask_policy(policy):
        expected = act(masked_tensor(a, MASK_A), masked_tensor(b, MASK_B))
    picture = policy_grid(a, MASK_A, b, MASK_B, operation)
    legible(picture)
    shown = lines(picture, policy)
    for row, wanted in zip(shown, expected.tolist(), strict=True):
        assert [v == "--" for v in row] == [v is None for v in wanted]
        assert [float(v) for v in row if v != "--"] == pytest.approx([v for v in wanted if v is not None], rel=0.01)


def test_where_masks_differ_the_strict_policy_shows_the_places(seen):
    picture = policy_grid(A, MASK_A, B, MASK_B)
    assert "strict: refused, first at [0,1] = " in picture.text
    assert lines(picture, "strict") == [["=", "≠", "≠"], ["=", "=", "="]]
    assert seen(picture).count("≠") == 2


def test_where_masks_agree_all_policies_do():
    picture = policy_grid(A, MASK_A, A, MASK_A)
    assert lines(picture, "strict") == lines(picture, "intersection") == lines(picture, "union")
    assert "refused" not in picture.text


def test_what_is_hidden_is_not_shown():
    assert "nan" not in policy_grid(A, MASK_A, B, MASK_B).text


def test_drawing_writes_into_nothing():
    given = [t.clone() for t in (A, MASK_A, B, MASK_B)]
    policy_grid(*given)
    assert not any(t._version for t in given)


def test_the_conventions_say_the_same_in_three_forms(legible, seen):
    picture = mask_conventions(torch.tensor([True, False]))
    legible(picture)
    assert picture.text.splitlines()[1:] == [
        "MaskedTensor, attn_mask: True counts =  T   F",
        "numpy.ma, key_padding_mask: True hides =  F   T",
        "additive: 0 counts, -inf hides =   0.0   -inf",
    ]
    assert seen(picture).count("T") == 2 and "-inf" in seen(picture)


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: policy_grid(A, MASK_A, B, MASK_B, "@"), "operation is '@', expected one of +, -, *, /"),
        (lambda: policy_grid(A, MASK_A.int(), B, MASK_B), "the mask is torch.int32, expected torch.bool"),
        (lambda: policy_grid(A, MASK_A, B, MASK_A), "the mask is (2, 3), b is (3,): they must agree"),
        (lambda: policy_grid(A, MASK_A, B[:2], MASK_B[:2]), "a (2, 3) and b (2,): the shapes do not fit"),
        (
            lambda: policy_grid(*[torch.ones(9, 1), torch.ones(9, 1) > 0, torch.ones(9), torch.ones(9) > 0]),
            "make 81 elements, at most 64 are drawn",
        ),
        (
            lambda: mask_conventions(torch.ones(2)),
            "counts is torch.float32 of 1 dimensions, expected torch.bool of one",
        ),
        (lambda: mask_conventions(torch.ones(2, 2) > 0), "of 2 dimensions"),
        (lambda: mask_conventions(torch.ones(13) > 0), "counts has 13 elements"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_way_out(draw, said):
    with pytest.raises(DrawingError) as refused:
        draw()
    assert said in str(refused.value)
