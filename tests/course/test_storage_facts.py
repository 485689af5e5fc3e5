"""What lectures 00 and 01 say holds for the torch that is installed, and their references agree with it."""

import io
import warnings
from itertools import product
from pathlib import Path

import numpy
import pytest
import torch

from autograder import judge, probe, wire
from autograder.exercises import VISIBLE_SEED, load_lecture

SOLUTIONS = Path(__file__).parents[2] / "solutions"
START, STORAGE = load_lecture("00_start", SOLUTIONS), load_lecture("01_storage", SOLUTIONS)
NINE = torch.arange(9).view(3, 3)
CORNER = NINE[1:3, 1:3]


def cases(lecture, id):
    return [case for seed in (VISIBLE_SEED, 1, 2, 3) for case in lecture[id].all_cases(seed)]


# ---- facts, by their number in the curriculum ------------------------------------------------------------------------


def test_an_old_storage_warns():  # F-01
    torch.storage._reset_warn_typed_storage_removal()
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        NINE.storage()


def test_a_plain_tensor_has_one_storage_and_the_old_name_is_a_legacy_class():  # F-02
    assert torch.Storage is torch.FloatStorage
    sparse = torch.eye(2).to_sparse()
    with pytest.raises(NotImplementedError):
        sparse.untyped_storage()
    assert sparse.indices().untyped_storage().data_ptr() != sparse.values().untyped_storage().data_ptr()


def test_an_untyped_storage_counts_bytes():  # F-03
    storage = torch.zeros(4, 3).untyped_storage()
    assert (storage.size(), storage.nbytes(), storage.element_size()) == (48, 48, 1)


def test_the_address_of_a_tensor_includes_its_offset():  # F-04
    assert CORNER.data_ptr() - CORNER.untyped_storage().data_ptr() == 32 == CORNER.storage_offset() * 8


def test_all_empty_storages_have_one_address():  # F-05
    assert torch.empty(0).untyped_storage().data_ptr() == torch.empty(0, 3).untyped_storage().data_ptr() == 0
    assert NINE[0].untyped_storage().data_ptr() == NINE[1].untyped_storage().data_ptr()


def test_a_tensor_of_a_part_of_an_array_has_a_storage_that_begins_there():
    array = numpy.arange(6.0)
    whole, part = torch.from_numpy(array), torch.from_numpy(array[2:])
    assert part.untyped_storage().data_ptr() - whole.untyped_storage().data_ptr() == 16


@pytest.mark.skipif(torch.cuda.is_available(), reason="the error of a machine without a GPU")
def test_cuda_without_a_gpu_is_an_error_that_the_notebook_catches():  # F-08
    with pytest.raises((AssertionError, RuntimeError)):
        NINE.cuda()


def test_what_has_nothing_to_do_gives_the_tensor_itself():  # F-09
    assert NINE.cpu() is NINE and NINE.contiguous() is NINE and NINE.to(NINE.dtype) is NINE


def test_an_elementwise_result_keeps_the_strides_of_its_input():  # F-10
    t = torch.ones(4, 3).t()
    assert (t + 1).stride() == t.stride() == t.clone().stride() == (1, 3)
    assert t.contiguous().stride() == t.clone(memory_format=torch.contiguous_format).stride() == (4, 1)


def test_why_a_corner_is_not_contiguous():  # F-12
    views = {"corner": CORNER, "rows": NINE[1:3], "transposed": NINE.t(), "row": NINE[:1].t()}
    assert {name: view.is_contiguous() for name, view in views.items()} == {
        "corner": False,
        "rows": True,
        "transposed": False,
        "row": True,
    }
    assert CORNER.stride() == (3, 1) and torch.empty(CORNER.shape).stride() == (2, 1)


def test_view_refuses_where_reshape_copies():  # F-13
    with pytest.raises(RuntimeError, match=r"Use \.reshape"):
        CORNER.view(4)
    assert CORNER.reshape(4).data_ptr() != CORNER.data_ptr()
    assert NINE.reshape(9).data_ptr() == NINE.data_ptr()


def test_a_small_view_is_saved_with_all_of_its_storage():
    x = torch.arange(1_000_000.0)
    sizes = []
    for t in (x[:2], x[:2].clone()):
        torch.save(t, file := io.BytesIO())
        sizes.append(file.tell())
    assert x[:2].untyped_storage().nbytes() == 4_000_000 and sizes[0] > 4_000_000 and sizes[1] < 10_000


def test_writing_through_a_repeating_view_is_refused():
    with pytest.raises(RuntimeError, match="more than one element"):
        torch.zeros(3).expand(2, 3).add_(1)


def test_a_tensor_takes_its_dtype_from_the_values():
    dtypes = [torch.tensor(values).dtype for values in ([1, 2], [1.0, 2], [True])]
    assert dtypes == [torch.int64, torch.float32, torch.bool]


@pytest.mark.parametrize(("optimizer", "kept"), [("SGD", 0), ("Adagrad", 1), ("Adam", 2)])
def test_an_optimiser_keeps_as_many_tensors_as_the_budget_says(optimizer, kept):
    p = torch.zeros(100, requires_grad=True)
    step = getattr(torch.optim, optimizer)([p], lr=0.1)
    p.sum().backward()
    step.step()
    state = [t for entry in step.state.values() for t in entry.values() if torch.is_tensor(t) and t.numel() == 100]
    assert len(state) == kept
    budget = STORAGE["memory_budget"](100, 0, torch.float32, optimizer.lower(), 1, 1)
    assert budget["state"] == kept * 400


# ---- references against torch ----------------------------------------------------------------------------------------


def test_the_cell_of_an_index_holds_what_the_index_finds():
    rng_cases = [case for case in cases(STORAGE, "describe") if case[0].numel()]
    for (t,) in rng_cases:
        for index in product(*map(range, t.shape)):
            cell = STORAGE["flat_index"](index, t.stride(), t.storage_offset())
            assert torch.equal(t.as_strided((1,), (1,), cell)[0], t[index])


def test_contiguity_from_numbers_is_that_of_torch():
    found = set()
    for size, stride in cases(STORAGE, "is_contiguous_from"):
        right = torch.empty_strided(size, stride, device="meta").is_contiguous()
        assert STORAGE["is_contiguous_from"](size, stride) is right, (size, stride)
        found.add(right)
    assert found == {True, False}


def test_can_view_says_what_view_does():
    answers = []
    for size, stride, new_shape in cases(STORAGE, "can_view"):
        try:
            torch.empty_strided(size, stride, device="meta").view(new_shape)
            right = True
        except RuntimeError:
            right = False
        assert STORAGE["can_view"](size, stride, new_shape) is right, (size, stride, new_shape)
        answers.append(right)
    assert 0.2 < sum(answers) / len(answers) < 0.95


def test_overlaps_finds_the_cells_that_a_write_reaches():
    answers = []
    for x, y in cases(STORAGE, "overlaps"):
        before = y.clone()
        answer = STORAGE["overlaps"](x, y)
        x.copy_(x + 100) if 0 not in x.stride() or x.dim() == 0 else x.select(x.stride().index(0), 0).add_(100)
        assert answer is not torch.equal(before, y)
        answers.append(answer)
    assert 0.2 < sum(answers) / len(answers) < 0.8


def test_a_budget_grows_with_every_count_and_wider_type():
    def budget(*counts, dtype=torch.float32):
        return STORAGE["memory_budget"](*counts, dtype, "adam", 1, 1)["total"]

    assert budget(10, 10) < budget(11, 10) and budget(10, 10) < budget(10, 11)
    assert budget(10, 10, dtype=torch.float16) < budget(10, 10) < budget(10, 10, dtype=torch.float64)


@pytest.mark.parametrize("id", ["describe", "is_contiguous_from", "can_view", "overlaps", "same_memory"])
def test_there_are_thirty_cases_and_more(id):
    assert len(STORAGE[id].all_cases(7)) >= 30


def test_the_clock_of_the_timing_exercise_tells_the_same_twice_and_is_taken_away_again():
    from torch.utils.benchmark import Timer

    usual = Timer._timer_cls
    exercise = STORAGE["fair_timings"]
    message = judge.visible_question(exercise).message
    first, second = (wire.read_seen(probe.answer(exercise.function, message)) for _ in range(2))
    assert [seen.result for seen in first] == [seen.result for seen in second]
    assert Timer._timer_cls is usual


def test_the_warning_of_an_old_storage_counts_in_every_call():
    message = wire.pack_question([(torch.zeros(2),), (torch.zeros(3),)], ["t"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = wire.read_seen(probe.answer(lambda t: t.storage().nbytes(), message))
    assert [len(each.warnings) for each in seen] == [1, 1]


def test_digits_lost_on_the_way_through_float32_are_noticed():
    exercise = START["two_by_three"]
    asked = judge.question(exercise, 5)
    seen = judge.seen_by(lambda value: (torch.ones(2, 3) * value).double(), asked.message)
    verdict = judge.verdict(asked, judge.Answers(exercise.id, seen), [])
    assert verdict.score == 0 and verdict.codes == ("X-two_by_three-4",)


def test_nothing_fits_everywhere():
    assert STORAGE["memory_budget"](0, 0, torch.float32, "sgd", 0, 0)["place"] == "gpu"
