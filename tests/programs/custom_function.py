"""Own gradients: autograd.Function in both styles, checked by finite differences."""

import math

import torch
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable


class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


class Scale(Function):
    """Multiply by a number that is no tensor; arguments are kept by setup_context."""

    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return Scale.apply(grad, ctx.factor) if ctx.needs_input_grad[0] else None, None


class StraightThrough(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_non_differentiable(signs := x.sign())
        return x.round(), signs

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, _):
        return grad.clamp(-1, 1)


dtype, device = torch.float, torch.device("cpu")
x = torch.linspace(-math.pi, math.pi, 2000, device=device, dtype=dtype)
y = torch.sin(x)
a, b, c, d = (torch.full((), v, dtype=dtype, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3))
losses = []
for t in range(300):
    y_pred = a + b * LegendrePolynomial3.apply(c + d * x)
    loss = (y_pred - y).pow(2).sum()
    losses.append(loss.item())
    if t % 100 == 99:
        print(t, f"{loss.item():.4f}")
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= 5e-6 * p.grad
            p.grad = None
print(f"y = {a.item():.4f} + {b.item():.4f} * P3({c.item():.4f} + {d.item():.4f} x)")
z = torch.randn(3, 2, dtype=torch.double, generator=torch.Generator().manual_seed(1))
z.requires_grad_()
print(gradcheck(LegendrePolynomial3.apply, (z,)), gradgradcheck(Scale.apply, (z, 2.5)))
rounded, signs = StraightThrough.apply(z)
(3 * rounded).sum().backward()
print(rounded.grad_fn.name(), signs.requires_grad, z.grad)
assert losses[-1] < losses[0] and torch.equal(z.grad, torch.ones_like(z))
