"""Complex numbers: what PyTorch refuses of them is refused, by every function, with its error."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import convcore

NUMBERS = np.array(
    [[1 + 2j, -3 + 1j, 2 - 1j], [0.5, 1j, -1 - 1j], [2 + 2j, 1 - 4j, 3j]], np.complex64
)
# Calls: z is complex, r real, i of integers; z3 to z5 have as many axes.
CALLS = {
    "z": lambda m: (z(m),),
    "z, z": lambda m: (z(m), z(m)),
    "z, r": lambda m: (z(m), r(m)),
    "r, z": lambda m: (r(m), z(m)),
    "z, 1": lambda m: (z(m), 1),
    "z, 0.5": lambda m: (z(m), 0.5),
    "z, 0.5, 1.0": lambda m: (z(m), 0.5, 1.0),
    "z, 2, 2": lambda m: (z(m), 2, 2),
    "z, i": lambda m: (z(m), i(m)),
    "z, row": lambda m: (z(m), z(m)[0]),
    "z, z, z": lambda m: (z(m), z(m), z(m)),
    "z3": lambda m: (z(m)[None],),
    "z3, 2": lambda m: (z(m)[None], 2),
    "z4": lambda m: (z(m)[None, None],),
    "z4, 2": lambda m: (z(m)[None, None], 2),
    "z5": lambda m: (z(m)[None, None, None],),
    "z, shape": lambda m: (z(m), (3,)),
    "row": lambda m: (z(m)[0],),
    "row, row": lambda m: (z(m)[0], z(m)[1]),
}
# Refused by PyTorch for the two dtypes, which convcore makes one; its own texts for complex numbers
# as tolerances.
OF_TWO_DTYPES = {"cross", "lstsq", "__rmatmul__", "new"}
TOLERANCES = {"pinv"}
PLACES = ("", "nn.functional", "special", "linalg", "Tensor")
_LEFT_OUT = {"seed", "manual_seed", "compile", "save", "load", "set_printoptions"}


def z(m):
    return m.tensor(NUMBERS.tolist(), dtype=m.complex64)


def r(m):
    return m.tensor(NUMBERS.real.tolist())


def i(m):
    return m.tensor([0, 1, 2])


def inside(library, place):
    for name in filter(None, place.split(".")):
        library = getattr(library, name)
    return library


def functions(torch, place):
    """Return the functions of both libraries by their names."""
    ours, theirs = inside(convcore, place), inside(torch, place)
    for name in sorted(set(dir(ours)) & set(dir(theirs))):
        is_special = name.startswith("_") or name.startswith("set_") or name in _LEFT_OUT
        pair = getattr(ours, name, None), getattr(theirs, name, None)
        if not is_special and all(callable(one) and not isinstance(one, type) for one in pair):
            yield name, pair


def told(call):
    """Return an error that a call raises, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except Exception as error:
            return error
    return None


def is_of_complex(error):
    return error is not None and "omplex" in str(error)


@pytest.mark.parametrize("place", PLACES)
def test_what_pytorch_refuses_is_refused(torch, place):
    taken = [
        f"{name}({call})"
        for name, (ours, theirs) in functions(torch, place)
        for call, given in CALLS.items()
        if name not in OF_TWO_DTYPES | TOLERANCES
        and is_of_complex(told(lambda theirs=theirs, given=given: theirs(*given(torch))))
        and told(lambda ours=ours, given=given: ours(*given(convcore))) is None
    ]
    assert taken == []


REFUSED = {
    "relu": lambda m: m.relu(z(m)),
    "relu_": lambda m: m.relu_(z(m)),
    "relu of nn": lambda m: m.nn.ReLU()(z(m)),
    "abs_": lambda m: z(m).abs_(),
    "threshold": lambda m: m.nn.functional.threshold(z(m), 0, 1),
    "prelu": lambda m: m.nn.functional.prelu(z(m), z(m)[0]),
    "prelu of real slopes": lambda m: m.nn.functional.prelu(z(m), r(m)[0]),
    "prelu of complex slopes": lambda m: m.nn.functional.prelu(r(m), z(m)[0]),
    "binary_cross_entropy_with_logits": lambda m: m.nn.functional.binary_cross_entropy_with_logits(
        z(m), z(m)
    ),
    "clamp": lambda m: m.clamp(r(m), z(m)),
    "clamp_max": lambda m: m.clamp_max(r(m), z(m)),
    "cosine_similarity": lambda m: m.nn.functional.cosine_similarity(z(m), z(m)),
    "cdist": lambda m: m.cdist(z(m), z(m)),
    "kl_div": lambda m: m.nn.functional.kl_div(z(m), z(m), reduction="sum"),
    "dropout": lambda m: m.nn.functional.dropout(z(m)),
    "bernoulli": lambda m: m.bernoulli(z(m), 0.5),
    "bernoulli of itself": lambda m: m.bernoulli(z(m)),
    "bernoulli_": lambda m: z(m).bernoulli_(),
    "unique": lambda m: m.unique(z(m)),
    "unique of rows": lambda m: m.unique(z(m), dim=0),
    "erf": lambda m: m.erf(z(m)),
    "erfc": lambda m: m.erfc(z(m)),
    "digamma": lambda m: m.digamma(z(m)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_error_is_pytorchs(torch, name):
    theirs, ours = (told(lambda m=m: REFUSED[name](m)) for m in (torch, convcore))
    assert ours is not None
    assert (type(ours), str(ours)) == (type(theirs), str(theirs))
