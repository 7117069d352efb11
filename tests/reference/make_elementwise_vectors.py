#!/usr/bin/env python3
"""Writes the reference vectors of the element-wise layers, as make_vectors.py does those of the others."""

import math
import pathlib
import sys

import torch

from make_vectors import Writer, away_from_zero, distinct, normal, random_generator, write_case

SHAPES = (("1x3x5x7", (1, 3, 5, 7)), ("3x8x3x5", (3, 8, 3, 5)), ("3x13x1x1", (3, 13, 1, 1)),
          ("1x16x3x4", (1, 16, 3, 4)))


def write_function(writer, label, parameters, function, data_of):
    """The function in every shape; data_of(random generator, shape) gives its input."""
    for shape_label, shape in SHAPES:
        name = f"{label}_{shape_label}"
        write_case(writer, name, parameters, function, data_of(random_generator(writer.layer + "/" + name), shape))


def wide(rng, shape):
    """Far into both tails of a sigmoid."""
    return normal(rng, shape, 4.0)


def away(rng, shape):
    return away_from_zero(rng, shape)


def positive(rng, shape):
    return abs(away_from_zero(rng, shape, 0.1))


def sigmoid(writer):
    write_function(writer, "usual", {}, torch.sigmoid, wide)


def tanh(writer):
    write_function(writer, "usual", {}, torch.tanh, wide)
    write_function(writer, "small", {}, torch.tanh, lambda rng, shape: normal(rng, shape, 0.1))


def elu(writer):
    for alpha in (1.0, 0.3):
        write_function(writer, f"alpha_{alpha:g}", {"elu_param.alpha": alpha},
                       lambda x: torch.where(x > 0, x, alpha * torch.expm1(x)),
                       lambda rng, shape: away_from_zero(rng, shape) * 2)


def clip(writer):
    for low, high in ((0.0, 6.0), (-1.5, 0.5)):
        write_function(writer, f"{low:g}_to_{high:g}", {"clip_param.min": low, "clip_param.max": high},
                       lambda x: torch.nn.functional.hardtanh(x, low, high),
                       lambda rng, shape: normal(rng, shape, 4.0))


def swish(writer):
    for beta in (1.0, 1.7):
        write_function(writer, f"beta_{beta:g}", {"swish_param.beta": beta},
                       lambda x: x * torch.sigmoid(beta * x), wide)


def silu(writer):
    write_function(writer, "usual", {}, torch.nn.functional.silu, wide)


def gelu(writer):
    for approximate in ("none", "tanh"):
        write_function(writer, approximate, {"gelu_param.approximate": approximate},
                       lambda x: torch.nn.functional.gelu(x, approximate=approximate),
                       lambda rng, shape: normal(rng, shape, 2.0))


def hard_sigmoid(writer):
    write_function(writer, "usual", {}, torch.nn.functional.hardsigmoid, wide)


def hard_swish(writer):
    write_function(writer, "usual", {}, torch.nn.functional.hardswish, wide)


def bnll(writer):
    write_function(writer, "usual", {}, torch.nn.functional.softplus, lambda rng, shape: normal(rng, shape, 3.0))


def absval(writer):
    write_function(writer, "usual", {}, torch.abs, away)


def exp(writer):
    for label, base, scale, shift in (("e", -1.0, 1.0, 0.0), ("base_2", 2.0, 0.7, -0.4), ("base_0.5", 0.5, -1.3, 2.0)):
        write_function(writer, label,
                       {"exp_param.base": base, "exp_param.scale": scale, "exp_param.shift": shift},
                       lambda x: torch.exp((1 if base < 0 else math.log(base)) * (shift + scale * x)), away)


def log(writer):
    for label, base, scale, shift in (("e", -1.0, 1.0, 0.0), ("base_10", 10.0, 3.0, 0.4), ("base_0.5", 0.5, 0.6, 1.5)):
        write_function(writer, label,
                       {"log_param.base": base, "log_param.scale": scale, "log_param.shift": shift},
                       lambda x: torch.log(shift + scale * x) / (1 if base < 0 else math.log(base)), positive)


def power(writer):
    for exponent, scale, shift in ((1.0, -2.0, 0.5), (2.0, 0.7, -0.4), (0.0, 3.0, 1.0), (3.0, 1.0, 0.0),
                                   (-1.0, 1.0, 0.3), (0.5, 2.0, 1.0), (-0.75, 0.1, 1.0)):
        # Away from where the base is zero; fractional exponents need it above.
        data = positive if exponent not in (1.0, 2.0, 3.0) else away
        write_function(writer, f"power_{exponent:g}",
                       {"power_param.power": exponent, "power_param.scale": scale, "power_param.shift": shift},
                       lambda x: (shift + scale * x) ** exponent + 0 * x, data)


def threshold(writer):
    for value in (0.0, 0.7):
        for label, shape in SHAPES:
            data = distinct(random_generator(f"threshold/{value:g}_{label}"), shape, -2.0, 2.0)
            writer.begin(f"threshold_{value:g}_{label}", {"threshold_param.threshold": value})
            writer.tensor("input0", data, exact=True)
            writer.tensor("output0", (torch.tensor(data) > value).double(), exact=True)
            writer.end()


CHANNEL_SHAPES = SHAPES + (("2x3x1x9", (2, 3, 1, 9)), ("17x5x2x2", (17, 5, 2, 2)), ("2x16x9x9", (2, 16, 9, 9)))


def prelu(writer):
    for label, shape in CHANNEL_SHAPES:
        for shared in (False, True):
            name = f"{'shared' if shared else 'channels'}_{label}"
            rng = random_generator("prelu/" + name)
            data = away_from_zero(rng, shape)
            slopes = normal(rng, (1 if shared else shape[1], 1, 1, 1), 0.5)
            write_case(writer, name, {"prelu_param.channel_shared": shared},
                       lambda x, a: torch.where(x > 0, x, a.reshape(1, -1, 1, 1) * x), data, [slopes])


def covering(shape, axis, num_axes):
    """Shape of a weight as it is stored, and as it broadcasts."""
    covered = shape[axis:axis + num_axes] if num_axes else ()
    stored = covered + (1,) * (4 - len(covered))
    broadcast = (1,) * axis + covered + (1,) * (4 - axis - len(covered)) if num_axes else (1, 1, 1, 1)
    return stored, broadcast


COVERED = [("channels", shape_label, shape, 1, 1) for shape_label, shape in CHANNEL_SHAPES] + [
    ("channels_rows", "3x4x3x5", (3, 4, 3, 5), 1, 2), ("image", "3x4x3x5", (3, 4, 3, 5), 1, 3),
    ("rows", "2x3x5x4", (2, 3, 5, 4), 2, 1), ("plane", "2x3x5x4", (2, 3, 5, 4), 2, 2),
    ("columns", "2x3x5x17", (2, 3, 5, 17), 3, 1), ("one", "3x5x3x7", (3, 5, 3, 7), 1, 0),
    ("channels_rows", "3x8x3x1", (3, 8, 3, 1), 1, 2)]


def scale(writer):
    for label, shape_label, shape, axis, num_axes in COVERED:
        for bias in (False, True):
            name = f"{label}_{'bias_' if bias else ''}{shape_label}"
            rng = random_generator("scale/" + name)
            stored, broadcast = covering(shape, axis, num_axes)
            weights = [normal(rng, stored) for _ in range(2 if bias else 1)]

            def function(x, a, b=None):
                y = x * a.reshape(broadcast)
                return y if b is None else y + b.reshape(broadcast)

            write_case(writer, name, {"scale_param.axis": axis, "scale_param.num_axes": num_axes,
                                      "scale_param.bias_term": bias}, function, normal(rng, shape), weights)


def bias(writer):
    for label, shape_label, shape, axis, num_axes in COVERED:
        name = f"{label}_{shape_label}"
        rng = random_generator("bias/" + name)
        stored, broadcast = covering(shape, axis, num_axes)
        write_case(writer, name, {"bias_param.axis": axis, "bias_param.num_axes": num_axes},
                   lambda x, b: x + b.reshape(broadcast), normal(rng, shape), [normal(rng, stored)])


def write_inputs_case(writer, name, parameters, function, inputs):
    """A layer of several inputs and no weights; parameters are pairs, since a name may repeat."""
    leaves = [torch.tensor(array, requires_grad=True) for array in inputs]
    output = function(*leaves)
    gradient = normal(random_generator(f"{writer.layer}/{name}/output_gradient"), tuple(output.shape))
    output.backward(torch.tensor(gradient))
    writer.begin(name, {})
    for key, value in parameters:
        writer.file.write(f"param {key} {value}\n")
    for index, array in enumerate(inputs):
        writer.tensor(f"input{index}", array, exact=True)
    writer.tensor("output0", output, exact=False)
    writer.tensor("output_gradient0", gradient, exact=True)
    for index, leaf in enumerate(leaves):
        writer.tensor(f"input_gradient{index}", leaf.grad, exact=False)
    writer.end()


# Input, and second input whose axes are the first ones of the input.
PAIRS = [((3, 8, 5, 7), (3, 8, 1, 1)), ((2, 16, 3, 4), (2, 16, 1, 1)), ((3, 13, 1, 1), (3, 13, 1, 1)),
         ((3, 5, 3, 2), (3, 1, 1, 1)), ((2, 8, 3, 5), (2, 8, 3, 5)), ((2, 3, 4, 5), (2, 3, 4, 1))]


def pairs(writer, function):
    for shape, values in PAIRS:
        name = "x".join(map(str, shape)) + "_by_" + "x".join(map(str, values))
        rng = random_generator(f"{writer.layer}/{name}")
        write_inputs_case(writer, name, [(f"{writer.layer.split('_')[0]}_param.axis", 0)], function,
                          [normal(rng, shape), normal(rng, values)])


def scale_by_input(writer):
    pairs(writer, lambda x, a: x * a)


def bias_by_input(writer):
    pairs(writer, lambda x, b: x + b)


def eltwise(writer):
    def total(factors):
        return lambda *x: sum(factor * one for factor, one in zip(factors, x))

    def product(*x):
        return math.prod(x)

    def maximum(*x):
        return torch.stack(x).amax(0)

    def minimum(*x):
        return torch.stack(x).amin(0)

    operation, coeff = "eltwise_param.operation", "eltwise_param.coeff"
    for label, shape in (SHAPES[0], SHAPES[3]):
        for count in (2, 3, 5):
            factors = (1.0, -0.5, 2.0, 1.0, 0.25)[:count]
            for name, parameters, function in (
                    ("sum", [(operation, "SUM")], total((1,) * count)),
                    ("coeff", [(coeff, factor) for factor in factors], total(factors)),
                    ("prod", [(operation, "PROD")], product),
                    ("prod_by_output", [(operation, "PROD"), ("eltwise_param.stable_prod_grad", "false")], product),
                    ("max", [(operation, "MAX")], maximum), ("min", [(operation, "MIN")], minimum),
                    ("div", [(operation, "DIV")], lambda a, b: a / b),
                    ("pow", [(operation, "POW")], lambda a, b: a ** b)):
                if count > 2 and name in ("div", "pow"):
                    continue
                case = f"{name}_{count}_{label}"
                rng = random_generator("eltwise/" + case)
                # No two equal, and none near zero.
                values = distinct(rng, (count, *shape), 0.3, 1.7) * rng.choice((-1.0, 1.0), (count, *shape))
                if name == "pow":
                    values[0] = abs(values[0])
                write_inputs_case(writer, case, parameters, function, list(values))


LAYERS = (prelu, scale, bias, scale_by_input, bias_by_input, eltwise, sigmoid, tanh, elu, clip, swish, silu, gelu,
          hard_sigmoid, hard_swish, bnll, absval, exp, log, power, threshold)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent
    for layer in LAYERS:
        writer = Writer(folder / f"{layer.__name__}.txt")
        writer.layer = layer.__name__
        layer(writer)
        writer.file.close()


if __name__ == "__main__":
    main()
