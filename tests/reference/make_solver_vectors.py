#!/usr/bin/env python3
"""Writes solvers.txt of this folder: twelve steps of every solver rule, in float64.

The rules are NumPy of their formulas: Caffe's of SGD, Nesterov, AdaGrad, RMSProp, AdaDelta and Adam, that of Loshchilov
and Hutter (Decoupled Weight Decay Regularization) for AdamW, and of You, Gitman and Ginsburg (Large Batch Training of
Convolutional Networks) for LARS. Where PyTorch's optimizer is the same definition, the script demands that both agree.
The format of the file is described in README.md.
"""

import pathlib
import sys
import zlib

import numpy
import torch

from make_vectors import Writer, as_float32, as_input

STEPS = 12
COUNT = 37  # no multiple of a vector's length


def regularized(case, weights, gradient):
    return (gradient + case["decay"] * weights + case["l1_decay"] * numpy.sign(weights))


class Caffe:
    """One weight array under Caffe's solvers; `step(gradient, rate)` changes the weights."""

    def __init__(self, case, weights):
        self.case, self.weights, self.t = case, weights.copy(), 0
        self.first, self.second = numpy.zeros_like(weights), numpy.zeros_like(weights)

    def step(self, gradient, rate):
        self.t += 1
        case = self.case
        if case["clip"] > 0:
            norm = numpy.linalg.norm(gradient)
            gradient = gradient * (case["clip"] / norm if norm > case["clip"] else 1)
        gradient = gradient / case["batches"]
        self.weights = self.weights - getattr(self, case["rule"])(gradient, rate)

    def SGD(self, gradient, rate):
        self.first = self.case["momentum"] * self.first + rate * regularized(self.case, self.weights, gradient)
        return self.first

    def Nesterov(self, gradient, rate):
        momentum, before = self.case["momentum"], self.first
        self.first = momentum * before + rate * regularized(self.case, self.weights, gradient)
        return (1 + momentum) * self.first - momentum * before

    def AdaGrad(self, gradient, rate):
        gradient = regularized(self.case, self.weights, gradient)
        self.first = self.first + gradient**2
        return rate * gradient / (numpy.sqrt(self.first) + self.case["delta"])

    def RMSProp(self, gradient, rate):
        gradient, keep = regularized(self.case, self.weights, gradient), self.case["momentum2"]
        self.first = keep * self.first + (1 - keep) * gradient**2
        return rate * gradient / (numpy.sqrt(self.first) + self.case["delta"])

    def AdaDelta(self, gradient, rate):
        gradient = regularized(self.case, self.weights, gradient)
        keep, delta = self.case["momentum"], self.case["delta"]
        self.first = keep * self.first + (1 - keep) * gradient**2
        step = gradient * numpy.sqrt((self.second + delta) / (self.first + delta))
        self.second = keep * self.second + (1 - keep) * step**2
        return rate * step

    def moments(self, gradient):
        beta1, beta2 = self.case["momentum"], self.case["momentum2"]
        self.first = beta1 * self.first + (1 - beta1) * gradient
        self.second = beta2 * self.second + (1 - beta2) * gradient**2
        return 1 - beta1**self.t, 1 - beta2**self.t

    def Adam(self, gradient, rate):
        correction1, correction2 = self.moments(regularized(self.case, self.weights, gradient))
        return (rate * numpy.sqrt(correction2) / correction1 * self.first /
                (numpy.sqrt(self.second) + self.case["delta"]))

    def AdamW(self, gradient, rate):
        correction1, correction2 = self.moments(gradient)
        corrected = numpy.sqrt(self.second / correction2)
        return (rate * self.case["decay"] * self.weights +
                rate * (self.first / correction1) / (corrected + self.case["delta"]))

    def LARS(self, gradient, rate):
        decay = self.case["decay"]
        weights, norm = numpy.linalg.norm(self.weights), numpy.linalg.norm(gradient)
        local = 1.0
        if weights > 0 and norm > 0:
            local = self.case["trust_coefficient"] * weights / (norm + decay * weights)
        return self.SGD(gradient, rate * local)


def torch_optimizer(case, parameter, rate):
    momentum, decay = case["momentum"], case["decay"]
    makers = {
        "SGD": lambda: torch.optim.SGD([parameter], rate, momentum=momentum, weight_decay=decay),
        "Nesterov": lambda: torch.optim.SGD([parameter], rate, momentum=momentum, weight_decay=decay, nesterov=True),
        "AdaGrad": lambda: torch.optim.Adagrad([parameter], rate, weight_decay=decay, eps=case["delta"]),
        "RMSProp": lambda: torch.optim.RMSprop([parameter], rate, alpha=case["momentum2"], eps=case["delta"],
                                               weight_decay=decay),
        "AdaDelta": lambda: torch.optim.Adadelta([parameter], rate, rho=momentum, eps=case["delta"],
                                                 weight_decay=decay),
        "AdamW": lambda: torch.optim.AdamW([parameter], rate, betas=(momentum, case["momentum2"]),
                                           eps=case["delta"], weight_decay=decay),
    }
    return makers[case["rule"]]() if case["rule"] in makers else None


def require_torch_agrees(name, case, initial, gradients, rates, weights):
    """With a changing rate Caffe's momentum holds rates, PyTorch's does not; clipping and L1 are not in the optimizers."""
    plain = case["clip"] == 0 and case["l1_decay"] == 0 and case["batches"] == 1
    if not plain or len(set(rates)) > 1:
        return False
    parameter = torch.nn.Parameter(torch.tensor(initial, dtype=torch.float64))
    optimizer = torch_optimizer(case, parameter, float(rates[0]))
    if optimizer is None:
        return False
    for gradient, expected in zip(gradients, weights):
        parameter.grad = torch.tensor(gradient)
        optimizer.step()
        error = numpy.abs(parameter.detach().numpy() - expected).max()
        assert error < 1e-13, (name, error)
    return True


def cases():
    usual = {"momentum": 0.9, "momentum2": 0.999, "delta": 1e-8, "decay": 0.0005, "l1_decay": 0.0, "clip": 0.0,
             "batches": 1, "trust_coefficient": 0.001}

    def case(name, rule, rate=0.01, shrink=1.0, **changes):
        return name, {**usual, "rule": rule, **changes}, rate, shrink

    yield case("sgd", "SGD")
    yield case("sgd without momentum, rate falling", "SGD", momentum=0.0, shrink=0.8)
    yield case("sgd with L1", "SGD", decay=0.0, l1_decay=0.01, shrink=0.8)
    yield case("sgd clipped", "SGD", clip=3.0, shrink=0.8)
    yield case("sgd over four batches, clipped", "SGD", clip=3.0, batches=4)
    yield case("nesterov", "Nesterov")
    yield case("nesterov, rate falling", "Nesterov", shrink=0.8)
    yield case("adagrad", "AdaGrad", momentum=0.0)
    yield case("adagrad, large delta, rate falling", "AdaGrad", momentum=0.0, delta=0.1, shrink=0.8)
    yield case("rmsprop", "RMSProp", momentum=0.0, momentum2=0.99)
    yield case("rmsprop with L1, rate falling", "RMSProp", momentum=0.0, momentum2=0.9, decay=0.0, l1_decay=0.01,
               shrink=0.8)
    yield case("adadelta", "AdaDelta", rate=1.0, momentum=0.95, delta=1e-6)
    yield case("adam", "Adam", rate=0.001)
    yield case("adam, large delta, clipped, rate falling", "Adam", delta=0.1, clip=3.0, shrink=0.8)
    yield case("adamw", "AdamW", rate=0.001, decay=0.01)
    yield case("adamw over two batches, rate falling", "AdamW", decay=0.1, batches=2, shrink=0.8)
    yield case("lars", "LARS", rate=1.0)
    yield case("lars over two batches, clipped, rate falling", "LARS", rate=2.0, clip=3.0, batches=2, shrink=0.8)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    writer = Writer(folder / "solvers.txt")
    confirmed = 0
    for name, case, rate, shrink in cases():
        rng = numpy.random.default_rng(zlib.crc32(name.encode()))
        initial = as_input(rng.standard_normal(COUNT))
        initial[5] = 0.0
        gradients = as_input(rng.standard_normal((STEPS, COUNT)))
        gradients[:, 7] = 0.0
        rates = as_float32(rate * shrink**numpy.arange(STEPS))
        solver, weights = Caffe(case, initial), []
        for gradient, step_rate in zip(gradients, rates):
            solver.step(gradient, step_rate)
            weights.append(solver.weights)
        confirmed += require_torch_agrees(name, case, initial, gradients, rates, weights)
        writer.begin(name.replace(",", "").replace(" ", "_"), case)
        writer.tensor("initial", initial.reshape(1, 1, 1, COUNT), exact=True)
        writer.tensor("rates", rates.reshape(1, 1, 1, STEPS), exact=True)
        writer.tensor("gradients", gradients.reshape(1, 1, STEPS, COUNT), exact=True)
        writer.tensor("weights", numpy.reshape(weights, (1, 1, STEPS, COUNT)), exact=False)
        writer.end()
    print(f"{confirmed} cases agree with PyTorch's optimizers")


if __name__ == "__main__":
    main()
