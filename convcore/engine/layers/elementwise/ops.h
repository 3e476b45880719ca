/* Every elementwise op, one entry each: the C loops of all types and instruction sets, and what
 * Python knows of the ops (`_elementwise.OPS`), follow from this list.
 *
 *   UNARY(name, saved, params, cost, value, gradient)
 *     value      of an element x
 *     gradient   of g, the result's gradient, and x, which is what is saved: `input` or `result`
 *     params     how many numbers come with a call; value and gradient have them as a, b and c
 *     cost       how long an element takes, in multiply-adds: decides on the number of threads
 *   UNARY_FLOAT(...)
 *     The same, of float32 alone.
 *   BINARY(name, cost, value)
 *     Of g and x: elements of two arrays, or a number (one a channel) and an array's element.
 *   PAIR(name, params, cost, value)
 *     Of g and x, elements of two arrays.
 *
 * Expressions are of type T, without branches, so that compilers vectorise them; OF(f) are the
 * functions in elementwise.h and exponential.h.  Who includes this file defines the four macros.
 */

/* A NaN passes, and lets its gradient pass, for no comparison with it holds. */
UNARY(relu, result, 0, 8,
      x < 0 ? 0 : x,
      x == 0 ? 0 : g)

/* Between a and b. */
UNARY(clamp, input, 2, 8,
      OF(clamped)(x, a, b),
      (x <= a) | (x >= b) ? 0 : g)

UNARY(leaky_relu, input, 1, 8,
      x > 0 ? x : x * a,
      x > 0 ? g : g * a)

UNARY(hardsigmoid, input, 0, 32,
      OF(clamped)(x + 3, 0, 6) / 6,
      (x > -3) & (x < 3) ? g / 6 : 0)

UNARY(hardswish, input, 0, 32,
      x * (OF(clamped)(x + 3, 0, 6) / 6),
      x <= -3 ? 0 : x >= 3 ? g : g * (x / 3 + (T)0.5))

UNARY(hardshrink, input, 1, 8,
      (x >= -a) & (x <= a) ? 0 : x,
      (x >= -a) & (x <= a) ? 0 : g)

UNARY(softshrink, input, 1, 8,
      x - OF(clamped)(x, -a, a),
      (x >= -a) & (x <= a) ? 0 : g)

/* b where x is not above a. */
UNARY(threshold, input, 2, 8,
      x <= a ? b : x,
      x <= a ? 0 : g)

UNARY(sigmoid, result, 0, 32,
      OF(logistic)(x),
      g * (x * (1 - x)))

UNARY(tanh, result, 0, 32,
      OF(hyperbolic)(x),
      g * (1 - x * x))

UNARY(silu, input, 0, 32,
      x * OF(logistic)(x),
      g * OF(silu_slope)(x))

/* x b above 0, (exp(x c) - 1) a below. */
UNARY(elu, input, 3, 32,
      x > 0 ? x * b : OF(exponential_less_1)((x > 0 ? 0 : x) * c) * a,
      x > 0 ? g * b : g * OF(exponential)((x > 0 ? 0 : x) * c) * (a * c))

/* log(1 + exp(x a)) / a, and x where x a is above b. */
UNARY(softplus, input, 2, 32,
      x * a > b ? x : OF(soft)(x * a) / a,
      x * a > b ? g : g * OF(logistic)(x * a))

UNARY(logsigmoid, input, 0, 32,
      -OF(soft)(-x),
      g * OF(logistic)(-x))

UNARY(mish, input, 0, 32,
      x * OF(tanh_of_soft)(x),
      g * OF(mish_slope)(x, OF(tanh_of_soft)(x)))

UNARY_FLOAT(gelu, input, 0, 32,
      x * OF(normal)(x, OF(bell)(x)),
      g * OF(gelu_slope)(x, OF(bell)(x)))

UNARY(gelu_tanh, input, 0, 32,
      OF(tanh_gelu)(x, (T)SQRT_2_OVER_PI),
      g * OF(tanh_gelu_slope)(x, (T)SQRT_2_OVER_PI))

BINARY(sum, 8, g + x)
BINARY(product, 8, g * x)

/* x, times its slope g where it is negative; and what the gradient of x is multiplied by. */
BINARY(prelu, 8, x > 0 ? x : g * x)
BINARY(prelu_slope, 8, x > 0 ? 1 : g)

/* b d^2 / 2 of d = x - g, a straight line from |d| = a on; and its derivative. */
PAIR(huber, 2, 8, b * OF(huber_value)(OF(absolute)(x - g), a))
PAIR(huber_slope, 2, 8, b * OF(clamped)(x - g, -a, a))

#undef UNARY
#undef UNARY_FLOAT
#undef BINARY
#undef PAIR
