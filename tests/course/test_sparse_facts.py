"""What lecture 06 says holds for the torch that is installed, and its references agree with torch's own layouts."""

from pathlib import Path

import pytest
import torch
import torch.masked

import maskedtensor_ref
from autograder import probe, wire
from autograder.check import Checker, CheckFailed
from autograder.exercises import VISIBLE_SEED, load_lecture

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors is in prototype stage"),
]
LECTURE = load_lecture("06_sparsity", Path(__file__).parents[2] / "solutions")
PEER, OURS = torch.masked.masked_tensor, maskedtensor_ref.masked_tensor
both_packages = pytest.mark.parametrize("make", [PEER, OURS], ids=["torch.masked", "maskedtensor_ref"])

X = torch.tensor([[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]])
K = torch.tensor([[False, False, True], [False, False, True]])


@pytest.fixture(autouse=True)
def tensors_are_checked():
    with torch.sparse.check_sparse_tensor_invariants():
        yield


@pytest.fixture
def every_notice():
    """torch gives a notice that it gives once a process at every occasion."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


def cases(id):
    return [case for seed in (VISIBLE_SEED, 1, 2, 3) for case in LECTURE[id].all_cases(seed)]


def elements(m):
    m = m.to_dense() if m.layout != torch.strided else m
    return m.get_data()[m.get_mask()].tolist()


def built(make):
    """A COO MaskedTensor that stores three entries, of which one is False."""
    places = torch.tensor([[0, 1, 1], [2, 0, 2]])
    mask = torch.sparse_coo_tensor(places, torch.tensor([True, False, True]), (2, 3))
    return make(torch.sparse_coo_tensor(places, torch.tensor([3.0, 4.0, 5.0]), (2, 3)), mask)


# ---- the notices that the setup cell answers ------------------------------------------------------------------------


def test_a_constructor_reminds_of_its_checks_until_somebody_decides(every_notice):
    with torch.sparse.check_sparse_tensor_invariants(enable=True):
        torch.sparse_coo_tensor([[0]], [1.0], (2,))
        with pytest.raises(RuntimeError, match="inconsistent"):
            torch.sparse_coo_tensor([[5]], [1.0], (2,))


def test_csr_says_that_it_is_in_beta_state(every_notice):
    with pytest.warns(UserWarning, match="Sparse CSR tensor support is in beta state"):
        X.to_sparse_csr()


def test_an_input_in_csr_is_built_for_a_student_without_that_notice(every_notice, recwarn):
    with pytest.warns(UserWarning, match="beta"):
        message = wire.pack_question([(X.to_sparse_csr(),)], ["c"])
    recwarn.clear()
    meta, tensors = probe.unpack(message)
    probe.build({"tuple": meta["cases"][0]}, tensors, {})
    assert not recwarn.list


# ---- facts, by their number in the curriculum ------------------------------------------------------------------------


@both_packages
@pytest.mark.parametrize("to", ["to_sparse_coo", "to_sparse_csr"])
def test_a_sparse_masked_tensor_has_a_sum_but_upstream_none_along_a_dimension(make, to):  # F-49
    m = getattr(make(X, K), to)()
    assert elements(m.sum()) == [8.0] and elements(m.amin()) == [3.0]
    if make is OURS:
        assert elements(m.sum(dim=1)) == [3.0, 5.0]
        return
    with pytest.warns(UserWarning, match="sum"), pytest.raises(TypeError):
        m.sum(dim=1)


@both_packages
@pytest.mark.parametrize("to", ["to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc"])
def test_three_layouts_are_refused_by_masked_tensors(make, to):  # F-50
    size = () if to == "to_sparse_csc" else ((1, 1),)
    with pytest.raises(TypeError, match="not supported"):
        make(getattr(X, to)(*size), getattr(K, to)(*size))


@both_packages
def test_is_sparse_means_coo_for_a_tensor_and_either_layout_for_a_masked_one(make):  # F-51
    c, m = X.to_sparse_csr(), make(X, K).to_sparse_csr()
    assert not c.is_sparse and c.is_sparse_csr is True
    assert m.is_sparse and m.is_sparse_csr() and not m.is_sparse_coo() and callable(m.is_sparse_csr)


def test_a_mask_from_comparing_with_zero_loses_a_stored_zero():  # F-54
    grad = torch.sparse_coo_tensor([[0, 1]], [0.0, 2.0], (3,))
    assert grad._nnz() == 2 and int((grad.to_dense() != 0).sum()) == 1
    assert torch.tensor([0.0, 2.0]).to_sparse()._nnz() == 1


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_what_keeps_zero_stays_sparse_and_the_rest_is_refused(layout):  # F-56
    s = X.to_sparse(layout=layout)
    for kept in (torch.sin, torch.sqrt, torch.relu, lambda s: s * 2):
        assert kept(s).layout == layout
    for refused in (torch.cos, torch.exp, lambda s: s + 1, lambda s: s / s):
        with pytest.raises((RuntimeError, NotImplementedError)):
            refused(s)


def test_torch_has_a_square_for_coo_and_none_for_csr():  # F-56
    assert X.to_sparse_coo().square().layout == torch.sparse_coo and (X.to_sparse_coo() / 2).layout == torch.sparse_coo
    with pytest.raises(RuntimeError, match="unsupported tensor layout"):
        X.to_sparse_csr().square()


def test_writing_in_place_works_on_dense_and_upstream_not_on_coo():  # F-57
    for make in (PEER, OURS):
        assert elements(make(X, K).add_(make(X, K))) == [6.0, 10.0]
    assert elements(OURS(X, K).to_sparse_coo().add_(OURS(X, K).to_sparse_coo())) == [6.0, 10.0]
    with pytest.raises(RuntimeError, match="uncoalesced"):
        PEER(X, K).to_sparse_coo().add_(PEER(X, K).to_sparse_coo())


def test_public_parts_need_a_coalesced_tensor_and_private_ones_do_not():  # F-58
    d = torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 3))
    for part in (d.indices, d.values):
        with pytest.raises(RuntimeError, match="uncoalesced"):
            part()
    assert d._values().tolist() == [1.0, 2.0] and d.coalesce().values().tolist() == [3.0]
    assert ((d._values() ** 2).sum(), d.square().sum()) == (5.0, 9.0)


# ---- the stories that the sources tell -------------------------------------------------------------------------------


@both_packages
def test_one_masked_matrix_in_coo_and_csr(make):
    coo, csr = make(X, K).to_sparse_coo(), make(X, K).to_sparse_csr()
    for part, values in ((coo.get_data(), [3.0, 5.0]), (coo.get_mask(), [True, True])):
        assert part.indices().tolist() == [[0, 1], [2, 2]] and part.values().tolist() == values
    assert csr.get_data().crow_indices().tolist() == [0, 1, 2] and csr.get_data().col_indices().tolist() == [2, 2]
    for m in (coo, csr):
        assert [round(v, 4) for v in elements(m.sin())] == [0.1411, -0.9589]
        assert [round(v, 2) for v in elements(m.cos())] == [-0.99, 0.28]


@both_packages
def test_quotient_and_product_of_two_sparse_masked_tensors(make):
    mask = torch.tensor([[False, True, False], [False, False, True]])
    numbers = torch.tensor([[0.0, 20.0, 0.0], [0.0, 0.0, 40.0]]), torch.tensor([[0.0, 3.0, 0.0], [0.0, 0.0, 5.0]])
    p, q = (make(t, mask).to_sparse_coo() for t in numbers)
    assert [round(v, 4) for v in elements(p / q)] == [6.6667, 8.0] and elements(p * q) == [60.0, 200.0]


@both_packages
def test_data_and_mask_must_agree_in_layout_and_size(make):
    with pytest.raises(TypeError, match="same layout"):
        make(X.to_sparse_coo(), K)
    with pytest.raises(ValueError, match="size"):
        make(X, K[:1])


@both_packages
def test_equal_prints_may_store_different_entries(make):
    converted, other = make(X, K).to_sparse_coo(), built(make)
    assert (converted.get_data()._nnz(), other.get_data()._nnz()) == (2, 3)
    assert repr(converted.to_dense()) == repr(other.to_dense())
    if make is OURS:
        assert elements(converted + other) == [6.0, 10.0]
        return
    with pytest.raises(RuntimeError, match=r"size of tensor a \(2\) must match the size of tensor b \(3\)"):
        converted + other


def test_a_place_that_only_the_mask_stores_is_refused_here_and_filled_upstream():
    with pytest.raises(ValueError, match="where data stores none"):
        OURS(X.to_sparse_coo(), (~K).to_sparse_coo())
    assert elements(PEER(X.to_sparse_coo(), (~K).to_sparse_coo())) == [0.0, 0.0, 4.0, 0.0]


def test_sparse_mask_keeps_zeros_that_the_mask_stores():
    picked = torch.tensor([[0.0, 0.0, 0.0], [4.0, 0.0, 5.0]]).sparse_mask(K.to_sparse_coo())
    assert picked.values().tolist() == [0.0, 5.0]


def test_a_conversion_and_a_mean_that_go_wrong_upstream_only():
    with pytest.raises(RuntimeError):
        PEER(X, K).to_sparse_csr().to_sparse_coo()
    assert elements(OURS(X, K).to_sparse_csr().to_sparse_coo()) == [3.0, 5.0]
    assert round(built(PEER).mean().get_data().item(), 4) == 2.6667 and built(OURS).mean().item() == 4.0


@pytest.mark.parametrize(
    ("to", "works"),
    [("coo", "add mul mv"), ("csr", "add mul mv"), ("csc", "add mv"), ("bsr", "mv"), ("bsc", "")],
)
def test_each_layout_has_operations_of_its_own(to, works):
    size = ((1, 1),) if to.startswith("b") else ()
    s = getattr(X, f"to_sparse_{to}")(*size)
    calls = {"add": lambda: torch.zeros(2, 3).add_(s), "mul": lambda: s * s, "mv": lambda: s @ torch.ones(3)}

    def succeeds(call):
        try:
            call()
        except RuntimeError:
            return False
        return True

    assert [name for name, call in calls.items() if succeeds(call)] == works.split()


def test_coo_has_int64_indices_and_csr_the_ones_it_was_given():
    short = torch.tensor([[0, 1], [2, 0]], dtype=torch.int32)
    assert torch.sparse_coo_tensor(short, torch.ones(2), (2, 3)).coalesce().indices().dtype == torch.int64
    borders = torch.tensor([0, 1, 2], dtype=torch.int32)
    assert torch.sparse_csr_tensor(borders, short[1], torch.ones(2), (2, 3)).crow_indices().dtype == torch.int32


def test_a_constructor_does_not_look_for_duplicates():
    assert not torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,)).is_coalesced()
    assert X.to_sparse_coo().is_coalesced()


def test_a_product_stores_what_both_store_and_a_sum_what_either_stores():
    one, other = X.to_sparse_coo(), torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]]).to_sparse_coo()
    assert (one._nnz(), other._nnz(), (one * other)._nnz(), (one + other)._nnz()) == (3, 2, 1, 4)
    assert (torch.ones(2, 3) + one).layout == torch.strided
    with pytest.raises(RuntimeError, match="not supported"):
        one + torch.ones(2, 3)


def test_a_csr_matrix_has_a_row_sum_with_keepdim_only():
    with pytest.raises(RuntimeError, match="keepdim=False"):
        X.to_sparse_csr().sum(1)
    assert X.to_sparse_csr().sum(1, keepdim=True).layout == torch.sparse_csr


# ---- the references --------------------------------------------------------------------------------------------------


def test_parts_are_those_of_torchs_conversions():
    for (x,) in cases("coo_parts"):
        indices, values = LECTURE["coo_parts"](x)
        s = x.to_sparse_coo()
        assert torch.equal(indices, s.indices())
        torch.testing.assert_close(values, s.values(), equal_nan=True)
    for (x,) in cases("csr_parts"):
        crow, col, values = LECTURE["csr_parts"](x)
        c = x.to_sparse_csr()
        assert torch.equal(crow, c.crow_indices()) and torch.equal(col, c.col_indices())
        torch.testing.assert_close(values, c.values(), equal_nan=True)


def test_row_sums_are_those_of_the_dense_matrix():
    for (c,) in cases("row_sums"):
        expected = c.to_dense().sum(1)
        torch.testing.assert_close(LECTURE["row_sums"](c), expected, equal_nan=True, rtol=1e-4, atol=1e-5)


def test_a_coalesced_square_is_the_square_of_what_torch_coalesces():
    for indices, values, shape in cases("coalesced_square"):
        places, squares = LECTURE["coalesced_square"](indices, values, shape)
        s = torch.sparse_coo_tensor(indices, values, shape).coalesce()
        assert torch.equal(places, s.indices())
        torch.testing.assert_close(squares, s.values() ** 2, equal_nan=True)


def bytes_of(s):
    if s.layout == torch.sparse_coo:
        parts = s._indices(), s._values()
    else:
        parts = s.crow_indices(), s.col_indices(), s.values()
    return sum(part.numel() * part.element_size() for part in parts)


def test_bytes_are_those_of_real_tensors():
    checked = 0
    for shape, nnz, dtype, index_dtype in cases("layout_bytes"):
        if nnz > 2000:
            continue
        flat = torch.zeros(shape[0] * shape[1], dtype=dtype)
        flat[torch.randperm(flat.numel())[:nnz]] = 1
        x, found = flat.view(shape), LECTURE["layout_bytes"](shape, nnz, dtype, index_dtype)
        c = x.to_sparse_csr()
        c = torch.sparse_csr_tensor(
            c.crow_indices().to(index_dtype), c.col_indices().to(index_dtype), c.values(), shape
        )
        assert found["dense"] == x.untyped_storage().nbytes()
        assert (found["coo"], found["csr"]) == (bytes_of(x.to_sparse_coo()), bytes_of(c))
        checked += 1
    assert checked > 20


def test_at_its_break_even_a_layout_takes_as_much_as_dense():
    for shape, _, dtype, index_dtype in cases("layout_bytes"):
        found = LECTURE["layout_bytes"](shape, 0, dtype, index_dtype)
        for name in ("coo", "csr"):
            density = found[f"{name}_break_even"]
            full = LECTURE["layout_bytes"](shape, density * shape[0] * shape[1], dtype, index_dtype)
            if density:
                assert full[name] == pytest.approx(full["dense"])
            else:
                assert full[name] >= full["dense"]


def test_the_break_evens_of_float32_are_one_fifth_and_about_one_third():
    found = LECTURE["layout_bytes"]((100, 100), 10_000, torch.float32, torch.int64)
    assert found["coo_break_even"] == 0.2 and 0.32 < found["csr_break_even"] < 0.334
    assert (found["dense"], found["coo"], found["csr"]) == (40_000, 200_000, 120_808)


FUNCTIONS = {"x * 2": lambda x: x * 2, "x + 1": lambda x: x + 1, "1 - cos(x)": lambda x: 1 - torch.cos(x)}


def test_a_function_on_the_entries_is_the_function_on_all_elements():
    kept = refused = 0
    for name, s in cases("on_entries"):
        f = FUNCTIONS.get(name) or getattr(torch, name)
        expected = f(s.to_dense())
        if not (f(torch.zeros(1, dtype=s.dtype)) == 0).all():
            with pytest.raises(ValueError):
                LECTURE["on_entries"](f, s)
            refused += 1
            continue
        torch.testing.assert_close(LECTURE["on_entries"](f, s).to_dense(), expected, equal_nan=True)
        kept += 1
    assert kept > 20 and refused > 20


def test_the_product_is_that_of_the_dense_matrix_where_everything_is_finite():
    for crow, col, values, x in cases("csr_times"):
        if not x.isfinite().all():
            continue
        dense = torch.sparse_csr_tensor(crow, col, values, (len(crow) - 1, len(x))).to_dense()
        torch.testing.assert_close(LECTURE["csr_times"](crow, col, values, x), dense @ x, rtol=1e-4, atol=1e-5)


def test_the_product_passes_gradcheck():
    crow, col = torch.tensor([0, 1, 1, 3]), torch.tensor([2, 0, 2])
    values, x = torch.randn(3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    inputs = values.requires_grad_(), x.requires_grad_()
    assert torch.autograd.gradcheck(lambda v, x: LECTURE["csr_times"].function(crow, col, v, x), inputs)


def test_the_way_back_through_a_csr_tensor_makes_a_dense_matrix():
    rows, columns = 20, 500
    crow, col = torch.arange(rows + 1), torch.arange(rows)

    def own(crow, col, values, x):
        return torch.sparse_csr_tensor(crow, col, values, (rows, columns)) @ x

    def put_in(crow, col, values, x):
        return torch.sparse_csr_tensor(crow, col, values * x[col], (rows, columns)).values()

    def bytes_with(product):
        def call(values, x):
            y = product(crow, col, values.requires_grad_(), x.requires_grad_())
            y.sum().backward()

        pack = probe.Pack()
        return probe.observe(call, {"values": torch.ones(rows), "x": torch.ones(columns)}, pack=pack)["new_bytes"]

    assert min(bytes_with(own), bytes_with(put_in)) > rows * columns * 4 > 3 * bytes_with(LECTURE["csr_times"].function)


@pytest.mark.parametrize(
    ("came", "said"),
    [(lambda m: None, "expected a MaskedTensor .*, got None"), (lambda m: m.to_dense().get_data(), "got a tensor")],
)
def test_another_kind_of_result_is_measured_against_a_masked_tensor(came, said):
    def in_layout(m, layout):
        return came(m)

    with pytest.raises(CheckFailed, match=said):
        Checker("06_sparsity", LECTURE.folder)(in_layout)


def test_a_mask_by_structure_has_every_stored_place_and_no_other():
    for (s,) in cases("by_structure"):
        m = LECTURE["by_structure"](s)
        stored = s.coalesce() if s.layout == torch.sparse_coo else s
        assert m.layout == s.layout and m.get_mask()._nnz() == stored._nnz() == int(m.get_mask().values().sum())


def test_tiles_are_those_that_torch_stores():
    for x, block in cases("block_report"):
        if x.shape[0] % block or x.shape[1] % block:
            continue
        b, c, found = x.to_sparse_bsr((block, block)), x.to_sparse_csr(), LECTURE["block_report"](x, block)
        assert found["blocks"] == b.col_indices().numel()
        assert (found["bsr"], found["csr"]) == (bytes_of(b), bytes_of(c))


@pytest.mark.parametrize("id", ["layout_bytes", "block_report"])
def test_there_are_thirty_random_cases_and_more(id):
    assert len(LECTURE[id].all_cases(7)) >= 30


@pytest.mark.parametrize("id", ["coo_masked", "in_layout"])
def test_every_poison_lies_under_some_mask(id):
    seen = set()
    for case in cases(id):
        values = (
            case[1][~case[2]] if id == "coo_masked" else case[0].to_dense().get_data()[~case[0].to_dense().get_mask()]
        )
        seen |= {name for name, there in POISONS.items() if there(values.double()).any()}
    assert seen == set(POISONS)


POISONS = {"nan": torch.isnan, "inf": torch.isinf, "1e30": lambda v: (v / 1e30 - 1).abs() < 1e-6}
