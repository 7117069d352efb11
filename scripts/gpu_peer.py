#!/usr/bin/env python3
"""Trains Tandem's nets on a GPU with PyTorch and prints images per second, one line of JSON for each net and precision.

    python3 gpu_peer.py NET.prototxt... --batch N [--precision float32,tf32,bfloat16,float16] [--compile]

A net is built from the prototxt as users of PyTorch would write it, with PyTorch's best settings: channels_last,
cudnn.benchmark, automatic mixed precision, a fused SGD, and with --compile torch.compile with CUDA graphs
(mode="reduce-overhead"). The batch stays on the GPU, so that no copy is timed.
A BatchNorm, alone or with a Scale after it, and a BatchNormScale have factors and biases, as in torchvision. Needs
only torch. For scripts/gpu-check.
"""

import argparse
import json
import pathlib
import re
import time

import torch
from torch import nn
import torch.nn.functional as F


PRECISIONS = ("float32", "tf32", "bfloat16", "float16")


def parse_prototxt(text):
    """A list of (key, value) pairs; the value of a message is such a list, too."""
    tokens = iter(re.findall(r'"[^"]*"|\'[^\']*\'|[{}:]|[^\s{}:]+', re.sub(r"#[^\n]*", "", text)))

    def message():
        pairs = []
        for key in tokens:
            if key == "}":
                break
            value = next(tokens)
            if value == ":":
                value = next(tokens)
            pairs.append((key, message() if value == "{" else value.strip("\"'")))
        return pairs

    return message()


def get(pairs, key, default=None):
    return next((value for k, value in pairs if k == key), default)


def get_all(pairs, key):
    return [value for k, value in pairs if k == key]


def number(pairs, key, default):
    return int(get(pairs, key, default))


class Average(nn.Module):
    def forward(self, x):
        return x.mean((2, 3), keepdim=True)


class Maximum(nn.Module):
    def forward(self, x):
        return x.amax((2, 3), keepdim=True)


class Add(nn.Module):
    def forward(self, *x):
        return sum(x[1:], x[0])


class Concatenate(nn.Module):
    def forward(self, *x):
        return torch.cat(x, 1)


class Dense(nn.Module):
    def __init__(self, outputs, bias):
        super().__init__()
        self.linear = nn.LazyLinear(outputs, bias=bias)

    def forward(self, x):
        return self.linear(x.flatten(1))


class Loss(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x, labels):
        return self.weight * F.cross_entropy(x.flatten(1).float(), labels)


def convolution(layer):
    p = get(layer, "convolution_param")
    return nn.LazyConv2d(number(p, "num_output", 0), number(p, "kernel_size", 1), number(p, "stride", 1),
                         number(p, "pad", 0), number(p, "dilation", 1), number(p, "group", 1),
                         get(p, "bias_term") != "false")


def pooling(layer):
    p = get(layer, "pooling_param")
    average = get(p, "pool", "MAX") == "AVE"
    if get(p, "global_pooling") == "true":
        return Average() if average else Maximum()
    window = number(p, "kernel_size", 1), number(p, "stride", 1), number(p, "pad", 0)
    return nn.AvgPool2d(*window, ceil_mode=True) if average else nn.MaxPool2d(*window, ceil_mode=True)


def lrn(layer):
    p = get(layer, "lrn_param", [])
    return nn.LocalResponseNorm(number(p, "local_size", 5), float(get(p, "alpha", 1)), float(get(p, "beta", 0.75)),
                                float(get(p, "k", 1)))


MAKERS = {
    "Convolution": convolution, "Pooling": pooling, "LRN": lrn,
    "InnerProduct": lambda layer: Dense(number(get(layer, "inner_product_param"), "num_output", 0),
                                        get(get(layer, "inner_product_param"), "bias_term") != "false"),
    "ReLU": lambda layer: nn.ReLU(inplace=True), "Eltwise": lambda layer: Add(), "Concat": lambda layer: Concatenate(),
    "Dropout": lambda layer: nn.Dropout(float(get(get(layer, "dropout_param", []), "dropout_ratio", 0.5))),
    "BatchNorm": lambda layer: nn.LazyBatchNorm2d(eps=float(get(get(layer, "batch_norm_param", []), "eps", 1e-5))),
    "SoftmaxWithLoss": lambda layer: Loss(float(get(layer, "loss_weight", 1))),
}
MAKERS["BatchNormScale"] = MAKERS["BatchNorm"]


class Net(nn.Module):
    """The training layers of a prototxt, in their order; forward(images, labels) is the loss."""

    def __init__(self, layers):
        super().__init__()
        self.steps = []
        self.parts = nn.ModuleList()
        for layer in layers:
            kind = get(layer, "type")
            if kind in ("Data", "Input", "Accuracy") or any(get(r, "phase") == "TEST" for r in get_all(layer, "include")):
                continue
            bottoms, tops = get_all(layer, "bottom"), get_all(layer, "top")
            if kind == "Scale" and isinstance(self.parts[-1], nn.LazyBatchNorm2d):
                self.steps[-1] = (self.steps[-1][0], tops[0])
                continue
            if kind not in MAKERS:
                raise ValueError(f"layer type {kind} is not known to gpu_peer.py")
            self.parts.append(MAKERS[kind](layer))
            self.steps.append((bottoms, tops[0]))

    def forward(self, images, labels):
        blobs, total = {"data": images, "label": labels}, 0
        for part, (bottoms, top) in zip(self.parts, self.steps):
            output = part(*[blobs[bottom] for bottom in bottoms])
            if isinstance(part, Loss):
                total = total + output
            blobs[top] = output
        return total


def input_shape(layers):
    for layer in layers:
        if get(layer, "type") == "Data":
            size = number(get(layer, "transform_param"), "crop_size", 0)
            return 3, size, size
        if get(layer, "type") == "Input":
            return tuple(int(d) for d in get_all(get(get(layer, "input_param"), "shape"), "dim"))[1:]
    raise ValueError("the net has no Data or Input layer")


def measure(arguments, net_file, precision):
    """Images per second, and the most memory that PyTorch had reserved, in bytes."""
    device = torch.device(arguments.device)
    on_gpu = device.type == "cuda"
    exact = precision == "float32"
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = not exact
    torch.backends.cuda.matmul.allow_tf32 = not exact
    layers = get_all(parse_prototxt(net_file.read_text()), "layer")
    torch.manual_seed(1)
    images = torch.randn(arguments.batch, *input_shape(layers), device=device).contiguous(
        memory_format=torch.channels_last)
    labels = torch.arange(arguments.batch, device=device) % 1000
    net = Net(layers).to(device)
    with torch.no_grad():
        net(images[:2], labels[:2])  # the lazy layers learn their sizes
    net = net.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-4, fused=on_gpu)
    dtype = {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(precision)
    scaler = torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)
    run = torch.compile(net, mode="reduce-overhead") if arguments.compile else net
    torch._dynamo.reset()
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = run(images, labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    def seconds(steps):
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        if on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    seconds(arguments.warm_up)
    times = sorted(seconds(arguments.steps) / arguments.steps for _ in range(arguments.rounds))
    rate = arguments.batch / times[len(times) // 2]
    return {"images_per_second": rate, "memory_bytes": torch.cuda.max_memory_reserved() if on_gpu else 0}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("net", type=pathlib.Path, nargs="+")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--precision", default="float32", help="float32, tf32, bfloat16, float16, or several")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=10)
    arguments = parser.parse_args()
    for net in arguments.net:
        for precision in arguments.precision.split(","):
            if precision not in PRECISIONS:
                raise SystemExit(f"--precision {precision}: must be one of {', '.join(PRECISIONS)}")
            row = {"net": net.stem, "batch": arguments.batch, "precision": precision, "compile": arguments.compile,
                   "torch": torch.__version__}
            try:
                row.update(measure(arguments, net, precision))
            except Exception as problem:  # the next net can still be measured
                row["problem"] = f"{type(problem).__name__}: {(str(problem).splitlines() or [''])[0]}"
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
