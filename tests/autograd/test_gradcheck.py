"""gradcheck and gradgradcheck: what they accept, what they find, and what they say of it."""

import numpy as np
import pytest

import convcore
from convcore.autograd import Function, GradcheckError, gradcheck, gradgradcheck


def point(*shape, dtype="float64", rng=None):
    """Return a leaf of random numbers between 1 and 2."""
    rng = rng or np.random.default_rng(5)
    values = 1 + rng.random(shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.random(shape)
    return convcore.tensor(values.astype(dtype), requires_grad=True)


def with_backward(formula, outputs=1):
    """Return a Function's apply that doubles its input and whose backward is the formula."""

    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            doubled = tuple([x * 2 for _ in range(outputs)])
            return doubled if outputs > 1 else doubled[0]

        @staticmethod
        def backward(ctx, *grads):
            return formula(*grads)

    return Double.apply


fast_modes = pytest.mark.parametrize("fast_mode", [False, True])


@fast_modes
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradcheck_accepts_right_gradients(rng, dtype, fast_mode):
    x, y = point(2, 3, dtype=dtype, rng=rng), point(3, dtype=dtype, rng=rng)
    assert gradcheck(lambda x, y: (x * y, x / y, x - 2), (x, y), fast_mode=fast_mode)
    assert gradgradcheck(lambda x, y: (x * y, x / y), (x, y), fast_mode=fast_mode)


@fast_modes
def test_gradcheck_mixes_real_and_complex(rng, fast_mode):
    x, z = point(3, rng=rng), point(3, dtype="complex128", rng=rng)
    assert gradcheck(lambda x, z: (x * z, z * z.conj()), (x, z), fast_mode=fast_mode)
    assert gradgradcheck(lambda x, z: x * z * z.conj(), (x, z), fast_mode=fast_mode)


@fast_modes
def test_gradcheck_leaves_other_inputs_and_outputs_out(fast_mode):
    x, constant = point(3), point(3).detach()

    def function(x, constant, factor, nothing):
        assert nothing is None
        return x * constant * factor, constant + 1, "a string"

    assert gradcheck(function, (x, constant, 3, None), fast_mode=fast_mode)


@fast_modes
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradcheck_finds_a_wrong_gradient(dtype, fast_mode):
    wrong = with_backward(lambda grad: grad * 3)
    x = point(2, dtype=dtype)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to in"):
        gradcheck(wrong, x, fast_mode=fast_mode)
    assert gradcheck(wrong, x, fast_mode=fast_mode, raise_exception=False) is False


def test_gradcheck_message_shows_both_jacobians():
    with pytest.raises(GradcheckError) as error:
        gradcheck(with_backward(lambda grad: grad * 3), point(2))
    assert str(error.value) == (
        "Jacobian mismatch for output 0 with respect to input 0,\n"
        "numerical:[[2. 0.]\n [0. 2.]]\nanalytical:[[3. 0.]\n [0. 3.]]\n"
    )


def test_gradcheck_names_output_and_input():
    def function(number, x):
        return x + 1, with_backward(lambda grad: grad * 3)(x)

    with pytest.raises(GradcheckError, match="for output 1 with respect to input 1,"):
        gradcheck(function, (7, point(2)))


@fast_modes
def test_gradcheck_finds_a_missing_conjugate(fast_mode):
    class Square(Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0]

    assert gradcheck(Square.apply, point(2), fast_mode=fast_mode)
    assert not gradcheck(
        Square.apply, point(2, dtype="complex128"), fast_mode=fast_mode, raise_exception=False
    )


@fast_modes
def test_gradgradcheck_finds_a_wrong_second_gradient(fast_mode):
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0].detach()

    assert gradcheck(Square.apply, point(2), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(Square.apply, point(2), fast_mode=fast_mode)


def test_gradgradcheck_takes_the_gradients_of_the_outputs():
    x, given = point(2), convcore.tensor([3.0, 4.0], dtype=convcore.float64, requires_grad=True)
    assert gradgradcheck(lambda x: x * x * x, x, given)
    assert gradgradcheck(lambda x: (x * x, x / 3), (x,), [given, given])


def test_gradcheck_finds_a_backward_that_is_not_multiplied():
    x = point(2)
    constant = with_backward(lambda grad: grad * 0 + 2)
    with pytest.raises(GradcheckError):
        gradcheck(constant, x)


def test_gradcheck_compares_the_dtypes_of_gradients():
    assert gradcheck(lambda x: x * 2, point(2), check_grad_dtypes=True)
    assert gradgradcheck(lambda x: x * x, point(2), check_grad_dtypes=True)


def test_gradcheck_finds_a_backward_that_differs_from_run_to_run():
    runs = iter(range(1000))
    noisy = with_backward(lambda grad: grad * (2 + 1e-8 * next(runs)))
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(noisy, point(2))
    assert gradcheck(noisy, point(2), nondet_tol=1e-5)


def test_gradcheck_finds_a_backward_that_cannot_take_none():
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b * 3

    def function(x):
        first, second = Both.apply(x)
        return first * 1, second * 1

    def used(x):
        first, second = function(x)
        return first + second

    with pytest.raises(GradcheckError, match="backward must take None"):
        gradcheck(used, point(2))
    assert gradcheck(used, point(2), check_undefined_grad=False)
    zeros = with_backward(lambda a, b: a * 2 + b * 2, outputs=2)
    assert gradcheck(zeros, point(2))


def test_gradcheck_finds_a_constant_that_is_none():
    assert gradcheck(lambda x: x.detach() * 0, point(2))
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, point(2))


def test_gradcheck_wants_an_input_that_requires_grad():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x * 2, point(2).detach())
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradgradcheck(lambda x: x * 2, point(2).detach())


def test_gradcheck_warns_of_single_precision():
    x = point(2, dtype="float32")
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double prec"):
        assert gradcheck(lambda x: x * 2, x, eps=1e-2, atol=1e-3)


@fast_modes
def test_gradcheck_gives_inputs_their_values_back(fast_mode):
    x = point(2, 3)
    before, version = x.tolist(), x._version
    assert gradcheck(lambda x: x * x, x, fast_mode=fast_mode)
    assert (x.tolist(), x._version, x.grad) == (before, version, None)

    def fails(x):
        if x.tolist() != before:
            raise KeyError("moved")
        return x * x

    with pytest.raises(KeyError):
        gradcheck(fails, x, fast_mode=fast_mode)
    assert x.tolist() == before


@fast_modes
def test_gradcheck_moves_what_a_function_reads_by_another_way(fast_mode):
    net = convcore.nn.Linear(3, 2).double()
    x = point(4, 3)
    assert gradcheck(lambda x, *parameters: net(x), (x, *net.parameters()), fast_mode=fast_mode)
    assert gradgradcheck(lambda x, *parameters: net(x), (x, *net.parameters()), fast_mode=fast_mode)


def test_gradcheck_refuses_elements_that_share_memory():
    with pytest.raises(RuntimeError, match="The 1th input has a dimension with stride 0"):
        gradcheck(lambda x, y: x * y, (point(3), point(1).expand(3)))


@pytest.mark.parametrize("option", ["check_batched_grad", "check_forward_ad"])
def test_gradcheck_refuses_what_there_is_not(option):
    with pytest.raises(NotImplementedError, match=option):
        gradcheck(lambda x: x * x, point(2), **{option: True})
    assert gradcheck(lambda x: x * x, point(2), **{option: False})


def test_gradgradcheck_draws_gradients_with_gaps():
    steps = []

    def function(x):
        y = x * x
        y.register_hook(lambda grad: steps.append(grad.stride()))
        return y

    assert gradgradcheck(function, point(3), gen_non_contig_grad_outputs=True)
    assert (2,) in steps


@fast_modes
def test_gradcheck_takes_any_layout(rng, fast_mode):
    x = convcore.from_numpy(np.asfortranarray(rng.random((2, 3)))[:, ::-1])
    x.requires_grad = True
    y = point(rng=rng)
    assert gradcheck(lambda x, y: x * y, (x, y), fast_mode=fast_mode)
    assert gradcheck(lambda x, y: x * y, (point(0, 3), y), fast_mode=fast_mode)


@fast_modes
def test_gradcheck_takes_one_tensor_twice(fast_mode):
    x = point(2)
    assert gradcheck(lambda x, y: x * x * y, (x, x), fast_mode=fast_mode)
    assert gradgradcheck(lambda x, y: x * x * y, (x, x), fast_mode=fast_mode)


def test_gradcheck_takes_inputs_that_are_no_leaves():
    x = point(2)
    assert gradcheck(lambda y: y * y, x * 2)


@fast_modes
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradcheck_agrees_with_pytorch(torch, dtype, fast_mode):
    """Both accept and refuse the same backwards of z * z."""

    def square(lib, formula):
        class Square(lib.autograd.Function):
            @staticmethod
            def forward(ctx, z):
                ctx.save_for_backward(z)
                return z * z

            @staticmethod
            def backward(ctx, grad):
                return formula(ctx.saved_tensors[0], grad)

        return Square.apply

    formulas = [
        lambda z, g: 2 * g * z.conj(),
        lambda z, g: 2 * g * z,
        lambda z, g: 2 * g.conj() * z,
        lambda z, g: g,
    ]
    values = point(3, dtype=dtype).tolist()
    verdicts = []
    for lib in (convcore, torch):
        z = lib.tensor(values, dtype=getattr(lib, dtype), requires_grad=True)
        verdicts.append(
            [
                lib.autograd.gradcheck(
                    square(lib, formula), z, fast_mode=fast_mode, raise_exception=False
                )
                for formula in formulas
            ]
        )
    assert verdicts[0] == verdicts[1]
    assert verdicts[0] == ([True, False, False, False] if "c" in dtype else [True] * 3 + [False])


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    ("what", "change"),
    [("shape", lambda lib, x: lib.cat([x, x])), ("dtype", lambda lib, x: x.to(lib.float32))],
)
def test_functions_whose_results_change_their_kind_are_refused(lib, what, change, fast_mode):
    x = lib.ones(1, dtype=lib.float64, requires_grad=True)
    with pytest.raises(AssertionError, match=f"outputs with the same {what} when inputs are"):
        lib.autograd.gradcheck(
            lambda x: change(lib, x) if x.detach() >= 1 else x, x, fast_mode=fast_mode
        )
