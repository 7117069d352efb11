"""Nets of prototxt files in PyTorch, with weights from safetensors files: what compare_nets.py holds
Tandem against, and what bench/training_torch.py measures. Needs numpy and torch.
"""

import json
import pathlib
import re
import struct

import numpy
import torch
import torch.nn.functional as F


# ---- prototxt ----------------------------------------------------------------------------------------

def parse_prototxt(text):
    """A list of (key, value) pairs; a message's value is such a list again."""
    text = re.sub(r"#[^\n]*", "", text)
    tokens = re.findall(r'"[^"]*"|\'[^\']*\'|[{}:]|[^\s{}:]+', text)
    position = 0

    def message():
        nonlocal position
        pairs = []
        while position < len(tokens) and tokens[position] != "}":
            key = tokens[position]
            position += 1
            if tokens[position] == ":":
                position += 1
            if tokens[position] == "{":
                position += 1
                pairs.append((key, message()))
                position += 1
            else:
                pairs.append((key, tokens[position].strip("\"'")))
                position += 1
        return pairs

    return message()


def get(pairs, key, default=None):
    return next((value for k, value in pairs if k == key), default)


def get_all(pairs, key):
    return [value for k, value in pairs if k == key]


def numbers(pairs, key):
    return [int(value) for value in get_all(pairs, key)]


# ---- the same net in PyTorch ---------------------------------------------------------------------------

class Reference:
    """Runs a net's training layers over a dictionary of tensors; weights by "layer.name". A Dropout layer
    draws as PyTorch does."""

    def __init__(self, layers, weights, dtype):
        self.layers = layers
        self.weights = {}
        for name, value in weights.items():
            tensor = torch.tensor(value, dtype=dtype)
            self.weights[name] = tensor.requires_grad_(is_trained(name))

    def loss(self, data, labels):
        blobs = {"data": data, "label": labels}
        total = 0
        for layer in self.layers:
            kind, name = get(layer, "type"), get(layer, "name")
            if kind in ("Data", "Input", "Accuracy"):
                continue
            inputs = [blobs[bottom] for bottom in get_all(layer, "bottom")]
            output = getattr(self, "run_" + kind)(name, layer, inputs)
            if kind == "SoftmaxWithLoss":
                total = total + float(get(layer, "loss_weight", 1)) * output
            for top in get_all(layer, "top"):
                blobs[top] = output
        return total

    def weight(self, name, part):
        return self.weights.get(f"{name}.{part}")

    def run_Convolution(self, name, layer, inputs):
        p = get(layer, "convolution_param")
        pad, stride = numbers(p, "pad") or [0], numbers(p, "stride") or [1]
        dilation, group = numbers(p, "dilation") or [1], int(get(p, "group", 1))
        weight = self.weight(name, "weight")
        weight = weight.reshape(*weight.shape, *[1] * (4 - weight.dim()))  # files leave out trailing ones
        return F.conv2d(inputs[0], weight, self.weight(name, "bias"), stride, pad, dilation, group)

    def run_InnerProduct(self, name, layer, inputs):
        weight = self.weight(name, "weight")
        return F.linear(inputs[0].flatten(1), weight.reshape(weight.shape[0], -1), self.weight(name, "bias"))

    def run_ReLU(self, name, layer, inputs):
        return F.relu(inputs[0])

    def run_BNLL(self, name, layer, inputs):
        return F.softplus(inputs[0], threshold=1000)

    def run_Dropout(self, name, layer, inputs):
        return F.dropout(inputs[0], float(get(get(layer, "dropout_param", []), "dropout_ratio", 0.5)))

    def run_Sigmoid(self, name, layer, inputs):
        return torch.sigmoid(inputs[0])

    def run_LRN(self, name, layer, inputs):
        p = get(layer, "lrn_param", [])
        size, alpha = int(get(p, "local_size", 5)), float(get(p, "alpha", 1))
        beta, k = float(get(p, "beta", 0.75)), float(get(p, "k", 1))
        x = inputs[0]
        if get(p, "norm_region") == "WITHIN_CHANNEL":
            mean = F.avg_pool2d(x * x, size, 1, size // 2, ceil_mode=False)
            return x * (1 + alpha * mean) ** -beta
        # PyTorch's own function averages over a padded window in the same way.
        return F.local_response_norm(x, size, alpha, beta, k)

    def run_Pooling(self, name, layer, inputs):
        p = get(layer, "pooling_param")
        x = inputs[0]
        if get(p, "global_pooling") == "true":
            return x.mean((2, 3), keepdim=True) if get(p, "pool") == "AVE" else x.amax((2, 3), keepdim=True)
        kernel, stride, pad = int(get(p, "kernel_size")), int(get(p, "stride", 1)), int(get(p, "pad", 0))
        if get(p, "pool", "MAX") == "MAX":
            return F.max_pool2d(x, kernel, stride, pad, ceil_mode=True)
        return F.avg_pool2d(x, kernel, stride, pad, ceil_mode=True)

    def run_BatchNormScale(self, name, layer, inputs):
        return self.run_BatchNorm(name, layer, inputs)

    def run_BatchNorm(self, name, layer, inputs):
        p = get(layer, "batch_norm_param", [])
        scaled = get(layer, "type") == "BatchNormScale" or get(p, "scale_bias") == "true"
        weight, bias = (self.weight(name, "weight"), self.weight(name, "bias")) if scaled else (None, None)
        return F.batch_norm(inputs[0], None, None, weight, bias, training=True, eps=float(get(p, "eps", 1e-5)))

    def run_Scale(self, name, layer, inputs):
        shape = (1, -1, 1, 1)
        return inputs[0] * self.weight(name, "weight").reshape(shape) + self.weight(name, "bias").reshape(shape)

    def run_Eltwise(self, name, layer, inputs):
        return sum(inputs[1:], inputs[0])

    def run_Concat(self, name, layer, inputs):
        return torch.cat(inputs, 1)

    def run_SoftmaxWithLoss(self, name, layer, inputs):
        return F.cross_entropy(inputs[0].flatten(1), inputs[1])


# ---- files ---------------------------------------------------------------------------------------------

def read_safetensors(path):
    raw = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values = numpy.frombuffer(raw[8 + length + begin:8 + length + end], numpy.float32)
            arrays[name] = values.reshape(entry["shape"]).copy()
    return arrays


def is_trained(name):
    """Running statistics of a BatchNorm are named so; they are no weights."""
    return name.rsplit(".", 1)[1] in ("weight", "bias")


def in_training(layer):
    return all(get(rule, "phase") != "TEST" for rule in get_all(layer, "include"))
