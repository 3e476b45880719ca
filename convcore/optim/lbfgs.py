"""L-BFGS: a quasi-Newton method with limited memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from convcore._tensor import Tensor
from convcore._tensor.creation import zeros_like
from convcore.autograd.grad_mode import enable_grad, no_grad
from convcore.functions.products.matmul import dot
from convcore.functions.shapes.joining import cat
from convcore.optim._checks import options_of
from convcore.optim._composed import as_real
from convcore.optim._line_search import strong_wolfe
from convcore.optim.optimizer import Optimizer

__all__ = ["LBFGS"]

# A pair of changes is kept if their product is above this: the Hessian must stay positive.
_LEAST_CURVATURE = 1e-10


class LBFGS(Optimizer):
    """L-BFGS: Newton's method with a Hessian estimated from the last steps.

    A step evaluates the closure, which it needs, several times.

    Parameters
    ----------
    max_iter : int
        Iterations a step.
    max_eval : int, optional
        Evaluations of the closure a step; 5/4 of ``max_iter`` by default.
    tolerance_grad : float
        Stop once no element of the gradient is larger.
    tolerance_change : float
        Stop once loss and parameters change less.
    history_size : int
        The number of last steps that the estimate uses.
    line_search_fn : None or 'strong_wolfe'
        None takes steps of length ``lr``.
    params, lr
        As for every optimizer; see the notes of `Optimizer`. There can be only one group.

    Raises
    ------
    ValueError
        An option is out of its range, or there are several groups.
    RuntimeError
        In a step: another ``line_search_fn``.

    References
    ----------
    J. Nocedal, S. Wright, "Numerical optimization", 2nd edition 2006, algorithm 7.4, and 3.5 for
    the line search.
    """

    _options = "lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn"

    def __init__(
        self,
        params: Iterable,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, options_of(locals(), self._options))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """Take up to ``max_iter`` iterations.

        Parameters
        ----------
        closure : callable
            Clears the gradients, computes the loss and its gradients, and returns the loss.

        Returns
        -------
        The loss before the step.
        """
        group, state = self.param_groups[0], self.state[self._params[0]]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        run = _Run(self, enable_grad()(closure), group, state)
        first = run.evaluate()
        if not run.is_flat():
            while run.iterate():
                pass
        run.save()
        return first

    def _flat_grad(self) -> Tensor:
        """Return the gradients as one vector, complex ones as twice as many real numbers."""
        parts = [zeros_like(p) if p.grad is None else p.grad for p in self._params]
        return cat([_flat(part) for part in parts]).clone()

    def _move(self, length: float, direction: Tensor) -> None:
        """Move the parameters along a direction."""
        start = 0
        for parameter in self._params:
            real = as_real(parameter)
            part = direction[start : start + real.numel()].reshape(real.shape)
            real.add_(part, alpha=length)
            start += real.numel()

    def _set(self, values: list[Tensor]) -> None:
        for parameter, value in zip(self._params, values, strict=True):
            parameter.copy_(value)


class _Run:
    """One call of `LBFGS.step`: the state at the present point."""

    def __init__(self, optimizer: LBFGS, closure: Callable, group: dict, state: dict) -> None:
        self.optimizer, self.closure, self.group, self.state = optimizer, closure, group, state
        self.evaluations = self.iterations = 0
        lr = group["lr"]
        self.lr = lr.item() if isinstance(lr, Tensor) else lr
        for name in ("func_evals", "n_iter"):
            state.setdefault(name, 0)
        self.direction: Any = state.get("d")
        self.length: Any = state.get("t")

    def evaluate(self) -> Any:
        """Evaluate loss and gradient at the present point; return what the closure returns."""
        given = self.closure()
        self.loss, self.grad = float(given), self.optimizer._flat_grad()
        self.evaluations += 1
        self.state["func_evals"] += 1
        return given

    def is_flat(self) -> bool:
        return float(self.grad.abs().max()) <= self.group["tolerance_grad"]

    def iterate(self) -> bool:
        """Take one iteration; return whether another one shall follow."""
        group, state = self.group, self.state
        self.iterations += 1
        state["n_iter"] += 1
        direction = self._next_direction()
        state["prev_flat_grad"], state["prev_loss"] = self.grad.clone(), self.loss
        self.direction, before = direction, self.loss
        first = state["n_iter"] == 1
        scale = 1.0 / max(1.0, float(self.grad.abs().sum())) if first else 1.0
        self.length = scale * self.lr
        slope = float(dot(self.grad, direction))
        if slope > -group["tolerance_change"]:
            return False
        self._go(slope)
        change = float((direction * self.length).abs().max())
        return not (
            self.iterations == group["max_iter"]
            or self.evaluations >= group["max_eval"]
            or self.is_flat()
            or change <= group["tolerance_change"]
            or abs(self.loss - before) < group["tolerance_change"]
        )

    def _next_direction(self) -> Tensor:
        """Return the direction of the next iteration, after learning from the last one."""
        state, grad = self.state, self.grad
        if state["n_iter"] == 1:
            state.update(
                old_dirs=[], old_stps=[], ro=[], H_diag=1, al=[None] * self.group["history_size"]
            )
            return -grad
        change, moved = grad - state["prev_flat_grad"], self.direction * self.length
        curvature = float(dot(change, moved))
        changes, moves, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        if curvature > _LEAST_CURVATURE:
            if len(changes) == self.group["history_size"]:
                for history in (changes, moves, inverses):
                    history.pop(0)
            changes.append(change)
            moves.append(moved)
            inverses.append(1.0 / curvature)
            state["H_diag"] = curvature / float(dot(change, change))
        return _two_loops(grad, changes, moves, inverses, state["H_diag"])

    def _go(self, slope: float) -> None:
        """Move along the direction: as far as a line search says, or by the given length."""
        if self.group["line_search_fn"] is None:
            self.optimizer._move(self.length, self.direction)
            if self.iterations != self.group["max_iter"]:  # the last point's loss is not needed
                self.evaluate()
            return
        start = [parameter.clone() for parameter in self.optimizer._params]

        def probe(length: float) -> tuple[float, Tensor]:
            self.optimizer._move(length, self.direction)
            self.evaluate()
            self.optimizer._set(start)
            return self.loss, self.grad

        now = (self.loss, self.grad)
        left = self.group["max_eval"] - self.evaluations
        found = strong_wolfe(probe, self.length, self.direction, now, slope, left)
        self.loss, self.grad, self.length = found
        self.optimizer._move(self.length, self.direction)

    def save(self) -> None:
        """Save what the next step goes on from."""
        if "old_dirs" in self.state:
            self.state.update(d=self.direction, t=self.length)


def _two_loops(grad: Tensor, changes: list, moves: list, inverses: list, scale: float) -> Tensor:
    """Return minus the estimated inverse Hessian times the gradient: the two-loop recursion."""
    direction = -grad
    factors = []
    for change, moved, inverse in [*zip(changes, moves, inverses, strict=True)][::-1]:
        factors.append(float(dot(moved, direction)) * inverse)
        direction = direction - factors[-1] * change
    direction = direction * scale
    for change, moved, inverse in zip(changes, moves, inverses, strict=True):
        wanted = factors.pop() - float(dot(change, direction)) * inverse
        direction = direction + wanted * moved
    return direction


def _flat(tensor: Tensor) -> Tensor:
    return as_real(tensor).reshape(-1)
