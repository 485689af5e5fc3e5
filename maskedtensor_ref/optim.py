"""An optimiser that moves only what a masked gradient specifies."""

import torch


class MaskedAdam(torch.optim.Optimizer):
    """Adam whose moments and parameters change only where the gradient is specified, as SparseAdam's do.

    torch.optim.Adam decays its moments everywhere, so a parameter keeps moving after its gradient has gone missing;
    here it rests. With plain gradients, or masks that are all True, it is Adam.

    Args:
        params: parameters, or dicts of them. lr, betas, eps: as in torch.optim.Adam.
    Raises:
        ValueError: lr or eps is negative, or a beta is outside [0, 1).
    Source: docs.pytorch.org/docs/stable/generated/torch.optim.SparseAdam.html
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        if lr < 0 or eps < 0:
            raise ValueError(f"lr is {lr} and eps {eps}: both must be 0 or more")
        if not all(0 <= b < 1 for b in betas):
            raise ValueError(f"betas are {betas}: each must be in [0, 1)")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        """One step; returns what closure returns."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._move(p, group["lr"], *group["betas"], group["eps"])
        return loss

    def _move(self, p, lr, beta1, beta2, eps):
        g, state = p.grad, self.state[p]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
        state["step"] += 1
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(g, 1 - beta1)  # a plain tensor changes where g is specified only
        square.lerp_(g * g, 1 - beta2)
        here = torch.zeros_like(g)
        root = ((here + square) / (1 - beta2 ** state["step"])).sqrt()
        p.addcdiv_(here + mean, root + eps, value=-lr / (1 - beta1 ** state["step"]))
