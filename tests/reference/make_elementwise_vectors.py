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


LAYERS = (sigmoid, tanh, elu, swish, silu, gelu, bnll, absval, exp, log, power, threshold)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent
    for layer in LAYERS:
        writer = Writer(folder / f"{layer.__name__}.txt")
        writer.layer = layer.__name__
        layer(writer)
        writer.file.close()


if __name__ == "__main__":
    main()
