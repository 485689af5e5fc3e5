"""A notebook of common kinds of work for the engine's benchmark: six small exercises, a training loop and a plot among them."""

import torch

from autograder.exercises import exercise
from autograder.properties import gradient, no_warnings, same_plot

HINTS = ("This lecture is for measuring the engine.", "It is not taught.", "Its answers stand in the solved notebook.")
NEAR = (1e-4, 1e-5)  # 200 steps of float32


@exercise("90.1", points=1, minutes=1, stars=1, hints=HINTS, properties=[no_warnings])
def linear(x, weight, bias):
    return x @ weight.T + bias


@linear.cases
def _(rng):
    for rows in (1, 4, 7):
        yield rng.normal(rows, 5), rng.normal(3, 5), rng.normal(3)


@linear.wrong("X-linear-1", "The bias is not added.", sample="wrong_rank")
def _(x, weight, bias):
    return x @ weight.T


@exercise("90.2", points=1, minutes=1, stars=1, hints=HINTS)
def cross_entropy(logits, targets):
    return -torch.log_softmax(logits, dim=1)[torch.arange(len(targets)), targets].mean()


@cross_entropy.cases
def _(rng):
    for rows in (1, 4, 7):
        yield rng.normal(rows, 5), rng.integers(rows, low=0, high=4)


@cross_entropy.wrong("X-cross_entropy-1", "That is the sum, not the mean.", sample="wrong_duplicates")
def _(logits, targets):
    return -torch.log_softmax(logits, dim=1)[torch.arange(len(targets)), targets].sum()


@exercise("90.3", points=1, minutes=1, stars=1, hints=HINTS, gradient=True, properties=[gradient])
def mean_squared_error(weight, x, y):
    return (x @ weight - y).square().mean()


@mean_squared_error.cases
def _(rng):
    for rows in (1, 4, 7):
        yield rng.normal(5).requires_grad_(), rng.normal(rows, 5), rng.normal(rows)


@mean_squared_error.wrong(
    "X-mean_squared_error-1", "The weight is detached: nothing flows back to it.", sample="wrong_copy"
)
def _(weight, x, y):
    return (x @ weight.detach() - y).square().mean()


@exercise("90.4", points=1, minutes=1, stars=2, hints=HINTS)
def perceptron(x, width):
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(x.shape[1], width), torch.nn.ReLU(), torch.nn.Linear(width, 1))
    return layers(x).detach()


@perceptron.cases
def _(rng):
    for rows in (1, 4, 7):
        yield rng.normal(rows, 5), rng.integer(2, 32)


@perceptron.wrong("X-perceptron-1", "There is no ReLU between the two layers.")
def _(x, width):
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(x.shape[1], width), torch.nn.Linear(width, 1))
    return layers(x).detach()


@exercise("90.5", points=1, minutes=1, stars=2, hints=HINTS, visible=1, tolerance=NEAR)
def trained(x, y, steps):
    weight = torch.zeros(x.shape[1], requires_grad=True)
    optimiser = torch.optim.SGD([weight], lr=0.05)
    losses = []
    for _ in range(steps):
        loss = (x @ weight - y).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return torch.tensor(losses)


@trained.cases
def _(rng):
    yield rng.normal(16, 4), rng.normal(16), 200


@trained.wrong("X-trained-1", "Gradients add up where they are not set to zero.")
def _(x, y, steps):
    weight = torch.zeros(x.shape[1], requires_grad=True)
    optimiser = torch.optim.SGD([weight], lr=0.05)
    losses = []
    for _ in range(steps):
        loss = (x @ weight - y).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return torch.tensor(losses)


@exercise("90.6", points=1, minutes=1, stars=1, hints=HINTS, visible=2, properties=[same_plot("data", "titles")])
def plotted(losses):
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    axes.plot(losses)
    axes.set_title("loss")
    return figure


@plotted.cases
def _(rng):
    for steps in (1, 20):
        yield (rng.normal(steps),)


@plotted.wrong("X-plotted-1", "The title is missing.")
def _(losses):
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().plot(losses)
    return figure
