"""A call on the pretended GPU goes as it would on a real one."""

import subprocess
import sys
import warnings

import numpy
import pytest
import torch
from torch.nn import functional as F

from autograder import fake_gpu, probe
from maskedtensor_ref import as_masked_tensor, masked_tensor

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")


def told(function, *values):
    """What happened, in a word: the devices of the result, or "refused"; what else is raised is a fault of the test."""
    seen = probe.on_fake_cuda(function, {f"a{i}": value for i, value in enumerate(values)})
    if not seen["raised"]:
        return " ".join(seen["devices"])
    assert "cpu" in seen["message"].lower() and "cuda" in seen["message"], seen
    return "refused"


def assigned(x, index, value):
    x[index] = value
    return x


def with_gradient(x, gradient):
    x = x.clone().requires_grad_()
    x.grad = gradient
    return x.grad


def beside(device):
    with torch.device(device):
        return torch.zeros(3)


# x has shape (3,) and lies on the GPU, c and the 0-d s are made by the call on the CPU. What a real GPU says stands beside:
# ATen/TensorIterator.cpp (compute_types: a 0-d tensor may lie on the CPU), TensorAdvancedIndexing.cpp and
# python_variable_indexing.cpp (indices may lie on the CPU; what is written through a list or a tensor may not, save a
# number), tensor_new.cpp (where a new tensor lies).
CALLS = [
    ("refused", lambda x, c, s: x + c),
    ("refused", lambda x, c, s: c + x),
    ("refused", lambda x, c, s: c + x.sum()),
    ("refused", lambda x, c, s: x.add_(c)),
    ("refused", lambda x, c, s: c.add_(x)),
    ("refused", lambda x, c, s: s.add_(x[0])),
    ("refused", lambda x, c, s: torch.where(x > 0, x, c)),
    ("refused", lambda x, c, s: x.masked_fill(c > 0, 0)),
    ("refused", lambda x, c, s: x.masked_select(c > 0)),
    ("refused", lambda x, c, s: torch.cat([x, c])),
    ("refused", lambda x, c, s: torch.stack([x[0], s])),
    ("refused", lambda x, c, s: x @ c),
    ("refused", lambda x, c, s: torch.add(x, x, out=c)),
    ("refused", lambda x, c, s: torch.equal(x, c)),
    ("refused", lambda x, c, s: x.gather(0, c.long())),
    ("refused", lambda x, c, s: x.scatter(0, c.long(), 1.0)),
    ("refused", lambda x, c, s: torch.searchsorted(x, c)),
    ("refused", lambda x, c, s: F.mse_loss(x, c)),
    ("refused", lambda x, c, s: torch.nn.Linear(3, 1)(x)),
    ("refused", lambda x, c, s: torch.nn.Embedding(3, 1)(x.long())),
    ("refused", lambda x, c, s: torch.func.vmap(torch.add)(x, c)),
    ("refused", lambda x, c, s: with_gradient(x, c)),
    ("refused", lambda x, c, s: c[x > 0]),
    ("refused", lambda x, c, s: assigned(x, [0, 1], c[:2])),
    ("refused", lambda x, c, s: assigned(x, c > 0, c)),
    ("refused", lambda x, c, s: x.index_put((c.long(),), c)),
    ("refused", lambda x, c, s: x.numpy()),
    ("refused", lambda x, c, s: numpy.asarray(x)),
    ("refused", lambda x, c, s: torch.from_numpy(numpy.sin(x))),
    ("cuda", lambda x, c, s: x + 1),
    ("cuda", lambda x, c, s: x * s),
    ("cuda", lambda x, c, s: torch.where(x > 0, x, s)),
    ("cuda", lambda x, c, s: x[c.long()]),
    ("cuda", lambda x, c, s: x[c > 0]),
    ("cuda", lambda x, c, s: x[x > 0]),
    ("cuda", lambda x, c, s: assigned(x, 0, s)),
    ("cuda", lambda x, c, s: assigned(x, [0, 1], s)),
    ("cuda", lambda x, c, s: assigned(x, slice(2), c[:2])),
    ("cpu", lambda x, c, s: assigned(c, slice(2), x[:2])),
    ("cuda", lambda x, c, s: x.index_put((c.long(),), x)),
    ("cpu", lambda x, c, s: c.copy_(x)),
    ("cpu", lambda x, c, s: c.view_as(x)),
    ("cuda", lambda x, c, s: c.type_as(x)),
    ("cuda", lambda x, c, s: c.to(x)),
    ("cuda", lambda x, c, s: c.to(x.device) + x),
    ("cuda", lambda x, c, s: c.to("cuda") + x),
    ("cuda", lambda x, c, s: c.to(0) + x),
    ("cuda", lambda x, c, s: c.cuda() + x),
    ("cuda", lambda x, c, s: c.to(dtype=torch.float64, device=x.device) + x),
    ("cuda", lambda x, c, s: x.to(torch.float64)),
    ("cpu", lambda x, c, s: x.to("cpu") + c),
    ("cpu", lambda x, c, s: x.cpu() + c),
    ("cpu", lambda x, c, s: torch.from_numpy(x.cpu().numpy()) + c),
    ("cpu cuda", lambda x, c, s: [c, c.cuda(), x.cpu(), x]),
    ("cuda", lambda x, c, s: x.new_zeros(3) + x),
    ("cuda", lambda x, c, s: torch.zeros_like(x) + x),
    ("cuda", lambda x, c, s: torch.zeros(3, device=x.device) + x),
    ("cuda", lambda x, c, s: torch.zeros(3, device="cuda:0") + x),
    ("cuda", lambda x, c, s: beside(x.device) + x),
    ("cuda", lambda x, c, s: beside("cuda") + x),
    ("cpu", lambda x, c, s: torch.zeros(3)),
    ("cpu", lambda x, c, s: torch.full((3,), x[0])),
    ("cpu", lambda x, c, s: torch.arange(x.sum())),
    ("cpu", lambda x, c, s: torch.tensor([x[0], x[1]])),
    ("cpu", lambda x, c, s: torch.tensor(x.tolist())),
    ("cuda", lambda x, c, s: torch.as_tensor(x)),
    ("cuda", lambda x, c, s: torch.as_tensor(x, dtype=torch.float64)),
    ("cuda", lambda x, c, s: torch.tensor(x.tolist(), device=x.device)),
    ("cuda", lambda x, c, s: torch.nn.Linear(3, 1, device=x.device)(x)),
    ("cuda", lambda x, c, s: torch.nn.Linear(3, 1).to(x.device)(x)),
    ("cuda", lambda x, c, s: torch.nn.Linear(3, 1).cuda()(x)),
    ("cuda", lambda x, c, s: torch.func.vmap(torch.add)(x, x)),
    ("cuda", lambda x, c, s: with_gradient(x, x)),
    ("cuda", lambda x, c, s: torch.empty(0, device=x.device).set_(x.untyped_storage(), 0, (3,), (1,)) + x),
    ("cuda", lambda x, c, s: x.view(3, 1).T.unbind(0)),
    ("cuda", lambda x, c, s: x.nonzero()),
    ("cuda", lambda x, c, s: x * int(x.sum())),
    ("cuda", lambda x, c, s: torch.empty(x.shape, device=x.device).requires_grad_()),
    ("meta", lambda x, c, s: torch.empty(3, device="meta")),
    ("", lambda x, c, s: x.tolist()),
    ("", lambda x, c, s: (str(x.device), x.is_cuda, x.is_cpu, x.get_device()) == ("cuda:0", True, False, 0) or 1 / 0),
]


def called(function, x):
    return function(x, torch.tensor([0.0, 1.0, 2.0]), torch.tensor(2.0))


@pytest.mark.parametrize("outcome, function", CALLS)
def test_tensors_of_two_devices_meet_where_a_real_gpu_lets_them(outcome, function):
    assert told(lambda x: called(function, x), torch.tensor([0.0, 1.0, 2.0])) == outcome


def told_by_torch(function):
    """The same from torch's own fake GPU; None where it cannot tell, as of what needs values or a build with CUDA."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = torch.empty(3, device="cuda")
        try:
            result = called(function, x)
        except Exception as error:
            apart = "same device" in str(error) or "at least two devices" in str(error)
            return "refused" if apart else None
        return " ".join(sorted({t.device.type for t in fake_gpu.leaves(result)}))


def test_torch_itself_says_the_same_where_it_can_tell():
    heard = [(outcome, told_by_torch(function)) for outcome, function in CALLS]
    assert [said for outcome, said in heard if said not in (outcome, None)] == []
    assert sum(said == outcome for outcome, said in heard) > len(CALLS) / 2


# torch's own fake GPU lets these pass; a real one says "indices should be either on cpu or on the same device as the indexed
# tensor" and, as not every operation takes a number from the CPU, "Expected all tensors to be on the same device".
LENIENT = [
    lambda x, c, s: c[x.long()],
    lambda x, c, s: assigned(c, x > 0, 1.0),
    lambda x, c, s: x.index_select(0, s.long()),
]


@pytest.mark.parametrize("function", LENIENT)
def test_what_torch_lets_pass_and_a_real_gpu_does_not_is_refused(function):
    assert told_by_torch(function) != "refused"
    assert told(lambda x: called(function, x), torch.tensor([0.0, 1.0, 2.0])) == "refused"


# ---- what is not strided ---------------------------------------------------------------------------------------------

MATRIX = torch.tensor([[1.0, 0.0], [2.0, 3.0]])
COMPRESSED = [torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc]


def in_layout(layout):
    return MATRIX.to_sparse(layout=layout, blocksize=(1, 1) if layout in COMPRESSED[2:] else None)


MADE = {
    "masked": lambda: masked_tensor(MATRIX, MATRIX > 0),
    "masked COO": lambda: masked_tensor(in_layout(torch.sparse_coo), in_layout(torch.sparse_coo).bool()),
    "masked CSR": lambda: masked_tensor(in_layout(torch.sparse_csr), in_layout(torch.sparse_csr).bool()),
    "in a list": lambda: {"a": [MATRIX.clone()]},
} | {str(layout): lambda layout=layout: in_layout(layout) for layout in [torch.sparse_coo, *COMPRESSED]}


def dense(value):
    if isinstance(value, dict):
        return value["a"][0]
    return value.to_tensor(0) if hasattr(value, "to_tensor") else value.to_dense()


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_inputs_of_every_kind_lie_on_the_gpu_and_a_tensor_made_on_the_cpu_does_not_join_them(made):
    assert told(lambda value: value, made()) == "cuda"
    assert told(lambda value: dense(value) + torch.ones(2, 2, device="cuda"), made()) == "cuda"
    assert told(lambda value: dense(value) + torch.ones(2, 2), made()) == "refused"


PARTS = [
    (torch.sparse_coo, lambda s: (s._indices(), s._values())),
    (torch.sparse_csr, lambda s: (s.crow_indices(), s.col_indices(), s.values())),
]


@pytest.mark.parametrize("layout, parts", PARTS)
def test_a_sparse_tensor_lies_where_its_parts_lie(layout, parts):
    make = torch.sparse_coo_tensor if layout == torch.sparse_coo else torch.sparse_csr_tensor
    rebuilt = lambda s: make(*parts(s), size=s.shape)
    mixed = lambda s: make(*(part.cpu() for part in parts(s)[:-1]), parts(s)[-1], size=s.shape)  # indices go along
    assert told(lambda s: [*parts(s), rebuilt(s), mixed(s), *parts(mixed(s))], in_layout(layout)) == "cuda"
    assert told(lambda s: make(*(part.cpu() for part in parts(s)), size=s.shape), in_layout(layout)) == "cpu"
    ones = lambda s: torch.ones(3, device=s.device)
    assert told(lambda s: make(*parts(s)[:-1], ones(s), size=s.shape) + s, in_layout(layout)) == "cuda"
    assert told(lambda s: parts(s)[-1] * torch.ones(3), in_layout(layout)) == "refused"


BROKEN = [
    lambda m: m + torch.ones(2, 2),
    lambda m: as_masked_tensor(m.get_data(), torch.ones(2, 2, dtype=torch.bool)),
    lambda m: masked_tensor(torch.ones(2, 2), m.get_mask()),
    lambda m: m.get_mask() & torch.ones(2, 2, dtype=torch.bool),
]


@pytest.mark.parametrize("answer", BROKEN)
def test_a_masked_tensor_is_not_joined_with_a_tensor_of_the_cpu(answer):
    assert told(answer, MADE["masked"]()) == "refused"


def test_a_masked_tensor_of_torch_itself_lies_on_the_gpu():
    def total(x):
        return torch.masked.masked_tensor(x, x > 1).sum().get_data() + torch.ones((), device=x.device)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert told(total, torch.tensor([1.0, 2.0, 3.0])) == "cuda"


# ---- gradients -------------------------------------------------------------------------------------------------------


class Square(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return gradient * 2 * x * torch.ones(x.shape, device=gradient.device)


class SquareOnTheCpu(Square):
    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return gradient * 2 * x * torch.ones(x.shape)


def by_backward(x, square=torch.square):
    x = x.detach().clone().requires_grad_()
    square(x).sum().backward()
    return x.grad


def by_grad(x, square=torch.square):
    x = x.detach().clone().requires_grad_()
    (first,) = torch.autograd.grad(square(x).sum(), x, create_graph=True)
    return first, *torch.autograd.grad(first.sum(), x)


def by_function(x, square=torch.square):
    return torch.func.grad(lambda t: square(t).sum())(x)


def by_jacobian(x, square=torch.square):
    return torch.autograd.functional.jacobian(square, x)


def on_masked(x, square=torch.square):
    m = masked_tensor(x, x > 1, requires_grad=True)
    square(m.to_tensor(0)).sum().backward()
    return m.grad


@pytest.mark.parametrize("slope", [by_backward, by_grad, by_function, by_jacobian, on_masked])
def test_a_gradient_lies_where_its_tensor_lies(slope):
    x = torch.tensor([1.0, 2.0, 3.0])
    assert told(slope, x) == "cuda"
    assert told(lambda x: slope(x.cpu()), x) == "cpu"
    assert told(lambda x: slope(x)[0] + torch.zeros(3), x) == "refused"


@pytest.mark.parametrize("slope", [by_backward, by_grad, by_jacobian])
def test_the_way_back_of_a_function_of_ones_own_runs_on_the_gpu_too(slope):
    x = torch.tensor([1.0, 2.0, 3.0])
    assert told(lambda x: slope(x, Square.apply), x) == "cuda"
    assert told(lambda x: slope(x, SquareOnTheCpu.apply), x) == "refused"


def test_a_leaf_of_the_cpu_that_is_moved_has_its_gradient_on_the_cpu():
    def moved(x):
        w = torch.ones(3, requires_grad=True)
        (w.to(x.device) * x).sum().backward()
        return w.grad + torch.zeros(3)

    assert told(moved, torch.ones(3)) == "cpu"


@pytest.mark.parametrize("optimiser", [torch.optim.SGD, torch.optim.Adagrad, torch.optim.Adam])
def test_a_model_is_trained_where_its_data_lie(optimiser):
    def trained(x, device):
        layer = torch.nn.Linear(3, 1, device=device)
        steps = optimiser(layer.parameters(), lr=0.1)
        for _ in range(2):
            steps.zero_grad()
            layer(x).square().sum().backward()
            steps.step()
        return layer.weight, layer.weight.grad

    assert told(lambda x: trained(x, x.device), torch.ones(3)) == "cuda"
    assert told(lambda x: trained(x, None), torch.ones(3)) == "refused"


# ---- around it -------------------------------------------------------------------------------------------------------


def test_values_are_those_of_the_input():
    seen = []
    assert (
        told(lambda x: seen.append((x.tolist(), int(x.sum()), x[x > 1].shape)) or x, torch.tensor([1.0, 2.0])) == "cuda"
    )
    assert seen == [([1.0, 2.0], 3, (1,))]


def test_what_fails_on_the_gpu_alone_is_told_and_writes_nothing(capfd):
    def fails_there(x):
        print("here")
        return x + torch.zeros(3 + x.is_cuda, device=x.device)

    assert "must match the size" in probe.on_fake_cuda(fails_there, {"x": torch.ones(3)})["message"]
    assert capfd.readouterr() == ("", "")


def test_it_is_told_which_tensor_lies_on_the_cpu():
    seen = probe.on_fake_cuda(lambda x: x + torch.zeros(3), {"x": torch.ones(3)})
    assert seen == {"raised": "RuntimeError", "message": seen["message"], "devices": []}
    assert "same device" in seen["message"] and "add got a tensor of shape (3,) that lies on the CPU" in seen["message"]


@pytest.mark.parametrize("function", [lambda x: x, lambda x: x + torch.zeros(3), by_backward, SystemExit])
def test_nothing_of_the_pretence_is_left_behind(function):
    x, before = torch.ones(3), (dict(vars(torch.Tensor)), torch.autograd._engine_run_backward)
    probe.on_fake_cuda(function, {"x": x})
    assert (dict(vars(torch.Tensor)), torch.autograd._engine_run_backward) == before
    assert not torch.overrides._get_current_function_mode_stack() and not torch.is_inference_mode_enabled()
    assert x.device.type == "cpu" and (x + torch.zeros(3)).device.type == "cpu"


def test_tensors_that_lie_elsewhere_already_have_told():
    assert probe.on_fake_cuda(lambda x: x, {"x": torch.ones(3, device="meta")}) is None


def test_a_first_call_imports_nothing():
    """Below a student's cell it would take seconds: torch's own fake GPU needs a thousand modules."""
    code = (
        "import sys, torch; from autograder import probe; before = set(sys.modules)\n"
        "probe.on_fake_cuda(lambda x: x + torch.zeros(3, device=x.device), {'x': torch.ones(3)})\n"
        "print(*set(sys.modules) - before)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "\n"
