"""New tensors of another one's shape in exported models."""

import pytest

import convcore

CASES = {
    "likes": lambda x: (
        convcore.zeros_like(x) + convcore.ones_like(x) * x + convcore.full_like(x, 3.0)
    ),
    "other_dtype": lambda x: convcore.ones_like(x, dtype=convcore.int64),
    "copy": lambda x: convcore.empty_like(x).copy_(x[:, :1]) * 2,
    "fill": lambda x: (x * 1).fill_(3.0) + (x * 2).zero_(),
    "new": lambda x: x.new_zeros(6) + x.new_full((6,), 2.0) + x,
    "casts": lambda x: x.bool().int() + x.long(),
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_computes_what_the_function_does(name, agree, x):
    agree(CASES[name], x)


RANDOM = {
    "randn_like": (lambda x: convcore.randn_like(x), 0, 1),
    "rand_like": (lambda x: convcore.rand_like(x), 0.5, 12**-0.5),
    "normal": (lambda x: convcore.normal(x * 0 + 2, 3.0), 2, 3),
    "bernoulli": (lambda x: convcore.bernoulli(x * 0 + 0.5), 0.5, 0.5),
    "randn": (lambda x: convcore.randn(4, 50, 60) + x[:, :1, :1] * 0, 0, 1),
    "rand": (lambda x: convcore.rand(4, 50, 60) + x[:, :1, :1] * 0, 0.5, 12**-0.5),
    "normal_": (lambda x: convcore.empty_like(x).normal_(1, 2), 1, 2),
    "uniform_": (lambda x: (x * 1).uniform_(-1, 1), 0, 3**-0.5),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_drawn_at_each_call(name):
    class Net(convcore.nn.Module):
        def forward(self, x):
            return function(x)

    function, mean, std = RANDOM[name]
    x = convcore.zeros(4, 50, 60)
    program = convcore.onnx.export(Net(), x)
    first, second = program(x)[0], program(x)[0]
    assert not first.equal(second)
    assert abs(first.mean().item() - mean) < 0.1 * max(std, 0.5)
    assert abs(first.std().item() - std) < 0.1 * std


def test_a_variational_autoencoder(agree):
    class Net(convcore.nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.decode = convcore.nn.Linear(6, 4), convcore.nn.Linear(2, 6)

        def forward(self, x):
            mean, spread = self.encode(x).chunk(2, 1)
            noise = convcore.randn_like(spread) * 0
            return self.decode(mean + noise * (spread / 2).exp()), mean

    agree(Net(), convcore.ones(2, 6))
