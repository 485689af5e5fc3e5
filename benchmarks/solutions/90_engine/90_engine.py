# %% [markdown]
# # The notebook that the engine is measured with
#
# An import cell, six exercises and their checks.

# %% setup=true
import matplotlib.pyplot as plt
import torch

from autograder.check import Checker

check = Checker("90_engine")
predict, hint = check.predict, check.hint


# %% exercise="linear"
def linear(x, weight, bias):
    """A linear layer: (n, p), (q, p), (q,) -> (n, q)."""
    ### BEGIN SOLUTION
    return torch.nn.functional.linear(x, weight, bias)
    ### END SOLUTION


# %% check="linear"
check(linear)


# %% exercise="cross_entropy"
def cross_entropy(logits, targets):
    """Mean cross-entropy: (n, classes), (n,) -> ()."""
    ### BEGIN SOLUTION
    return torch.nn.functional.cross_entropy(logits, targets)
    ### END SOLUTION


# %% check="cross_entropy"
check(cross_entropy)


# %% exercise="mean_squared_error"
def mean_squared_error(weight, x, y):
    """Mean squared error of a linear model: (p,), (n, p), (n,) -> ()."""
    ### BEGIN SOLUTION
    return torch.nn.functional.mse_loss(x @ weight, y)
    ### END SOLUTION


# %% check="mean_squared_error"
check(mean_squared_error)


# %% exercise="perceptron"
def perceptron(x, width):
    """Two linear layers of seed 0 with a ReLU between them: (n, p) -> (n, 1)."""

    ### BEGIN SOLUTION
    class Perceptron(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden = torch.nn.Linear(x.shape[1], width)
            self.out = torch.nn.Linear(width, 1)

        def forward(self, x):
            return self.out(torch.relu(self.hidden(x)))

    torch.manual_seed(0)
    return Perceptron()(x).detach()
    ### END SOLUTION


# %% check="perceptron"
check(perceptron)


# %% exercise="trained"
def trained(x, y, steps):
    """Losses of `steps` steps of SGD at rate 0.05 from zero weights: (n, p), (n,) -> (steps,)."""
    ### BEGIN SOLUTION
    weight = torch.zeros(x.shape[1], requires_grad=True)
    optimiser = torch.optim.SGD([weight], lr=0.05)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = torch.nn.functional.mse_loss(x @ weight, y)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return torch.tensor(losses)
    ### END SOLUTION


# %% check="trained"
check(trained)


# %% exercise="plotted"
def plotted(losses):
    """The losses, (steps,), as a line under the title "loss"."""
    ### BEGIN SOLUTION
    figure, axes = plt.subplots()
    axes.plot(losses)
    axes.set_title("loss")
    return figure
    ### END SOLUTION


# %% check="plotted"
check(plotted)
