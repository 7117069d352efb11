#!/usr/bin/env python3
"""A third half of training.py: trains a prototxt's net with ONNX Runtime's training build on one standing batch and
prints JSON, as bench_training does.

    training_onnxruntime.py NET.prototxt FOLDER [--threads 2] [--steps 5] [--warm-up 3]

Needs onnxruntime-training, onnx and torch, which onnxruntime.training imports
(`python3 -m venv ort && ort/bin/pip install onnxruntime-training 'onnx<1.18' torch`). FOLDER is as for training_torch.py.
The net, its weights, the batch and the rate are the same. The update is not: ONNX Runtime's SGD has no momentum, no
decay and one rate for all weights, so it does less work. It has no gradient of LRN and, on the CPU, of
BatchNormalization: SqueezeNet and cifar10_quick can be expressed, AlexNet, GoogLeNet, ResNet and MobileNet cannot.
"""
import argparse
import json
import math
import pathlib
import resource
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "reference"))

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
import onnxruntime
from onnxruntime.training import artifacts
from onnxruntime.training.api import CheckpointState, Module, Optimizer

from torch_nets import get, get_all, in_training, is_trained, numbers, parse_prototxt, read_safetensors

RATE = 1e-2


def twice(values, standard):
    values = values or [standard]
    return values if len(values) == 2 else [values[0], values[0]]


class Graph:
    """The net up to the loss's input, as ONNX nodes; `shapes` are of the blobs."""

    def __init__(self, layers, weights, data):
        self.nodes, self.weights, self.scores = [], weights, None
        self.names, self.shapes, self.used = {"data": "data"}, {"data": data.shape}, 0
        for layer in layers:
            if get(layer, "type") in ("Data", "Input", "Accuracy"):
                continue
            if get(layer, "type") == "SoftmaxWithLoss":
                self.flatten(get(layer, "bottom"))
                continue
            getattr(self, "add_" + get(layer, "type"))(get(layer, "name"), layer)

    def add(self, layer, kind, inputs, shape, top=None, **attributes):
        """A node over blobs and weights; its output becomes the blob `top`. Blobs may be written in place in the
        file, names in ONNX may not."""
        self.used += 1
        output, top = f"blob{self.used}", top or get(layer, "top")
        outputs = [output, output + " mask"] if kind == "Dropout" else [output]  # whose gradient reads the mask
        self.nodes.append(helper.make_node(kind, [self.names.get(one, one) for one in inputs], outputs, **attributes))
        self.names[top], self.shapes[top] = output, tuple(shape)

    def weights_of(self, name):
        return [key for key in (f"{name}.weight", f"{name}.bias") if key in self.weights]

    def add_Convolution(self, name, layer):
        p, bottom = get(layer, "convolution_param"), get(layer, "bottom")
        weight = self.weights[f"{name}.weight"]
        weight = weight.reshape(*weight.shape, *[1] * (4 - weight.ndim))  # files leave out trailing ones
        self.weights[f"{name}.weight"] = weight
        kernel, pad = weight.shape[2:], twice(numbers(p, "pad"), 0)
        stride, dilation = twice(numbers(p, "stride"), 1), twice(numbers(p, "dilation"), 1)
        size = [(x + 2 * q - d * (k - 1) - 1) // s + 1
                for x, q, d, k, s in zip(self.shapes[bottom][2:], pad, dilation, kernel, stride)]
        shape = (self.shapes[bottom][0], weight.shape[0], *size)
        self.add(layer, "Conv", [bottom, *self.weights_of(name)], shape, pads=pad + pad, strides=stride, dilations=dilation,
                 group=int(get(p, "group", 1)), kernel_shape=kernel)

    def add_Pooling(self, name, layer):
        p, bottom = get(layer, "pooling_param"), get(layer, "bottom")
        rows, channels, *size = self.shapes[bottom]
        is_max = get(p, "pool", "MAX") == "MAX"
        if get(p, "global_pooling") == "true":
            kind = "GlobalMaxPool" if is_max else "GlobalAveragePool"
            return self.add(layer, kind, [bottom], (rows, channels, 1, 1))
        kernel, stride, pad = int(get(p, "kernel_size")), int(get(p, "stride", 1)), int(get(p, "pad", 0))
        # The last window may reach over the edge: as more padding, which neither counts nor is a maximum.
        out = [math.ceil((x + 2 * pad - kernel) / stride) + 1 for x in size]
        after = [(o - 1) * stride + kernel - x - pad for o, x in zip(out, size)]
        self.add(layer, "MaxPool" if is_max else "AveragePool", [bottom], (rows, channels, *out), kernel_shape=[kernel] * 2,
                 strides=[stride] * 2, pads=[pad, pad, *[max(0, a) for a in after]])

    def add_ReLU(self, name, layer):
        self.add(layer, "Relu", [get(layer, "bottom")], self.shapes[get(layer, "bottom")])

    def add_Dropout(self, name, layer):
        ratio = numpy.float32(get(get(layer, "dropout_param", []), "dropout_ratio", 0.5))
        self.weights[f"{name}.ratio"], self.weights[f"{name}.training"] = ratio, numpy.bool_(True)
        self.add(layer, "Dropout", [get(layer, "bottom"), f"{name}.ratio", f"{name}.training"],
                 self.shapes[get(layer, "bottom")])

    def add_Concat(self, name, layer):
        shapes = [self.shapes[bottom] for bottom in get_all(layer, "bottom")]
        self.add(layer, "Concat", get_all(layer, "bottom"), (shapes[0][0], sum(s[1] for s in shapes), *shapes[0][2:]), axis=1)

    def flatten(self, bottom, top=None):
        rows, *rest = self.shapes[bottom]
        if len(rest) > 1:
            self.add([], "Flatten", [bottom], (rows, math.prod(rest)), top or bottom, axis=1)
        self.scores = self.names[top or bottom]

    def add_InnerProduct(self, name, layer):
        bottom, weight = get(layer, "bottom"), self.weights[f"{name}.weight"]
        self.weights[f"{name}.weight"] = weight = weight.reshape(weight.shape[0], -1)
        flat = bottom
        if len(self.shapes[bottom]) > 2:
            flat = bottom + " flat"
            self.flatten(bottom, flat)
        self.add(layer, "Gemm", [flat, *self.weights_of(name)], (self.shapes[bottom][0], weight.shape[0]), transB=1)

    def model(self, data):
        classes = next(self.shapes[blob] for blob, name in self.names.items() if name == self.scores)
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info("data", TensorProto.FLOAT, data.shape)],
            [helper.make_tensor_value_info(self.scores, TensorProto.FLOAT, classes)],
            [numpy_helper.from_array(numpy.asarray(value), name) for name, value in self.weights.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def make_ready(layers, weights, data, threads):
    """A module and its optimizer, made from the files that ONNX Runtime wants."""
    trained = [name for name in weights if is_trained(name)]
    graph = Graph(layers, weights, data)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    onnxruntime.set_default_logger_severity(3)
    with tempfile.TemporaryDirectory() as folder:
        artifacts.generate_artifacts(graph.model(data), requires_grad=trained,
                                     frozen_params=[name for name in graph.weights if name not in trained],
                                     loss=artifacts.LossType.CrossEntropyLoss, optimizer=artifacts.OptimType.SGD,
                                     artifact_directory=folder)
        at = pathlib.Path(folder)
        state = CheckpointState.load_checkpoint(str(at / "checkpoint"))
        module = Module(str(at / "training_model.onnx"), state, None, "cpu", options)
        optimizer = Optimizer(str(at / "optimizer_model.onnx"), module)
    optimizer.set_learning_rate(RATE)
    module.train()
    return module, optimizer, state


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("net", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=3)
    a = parser.parse_args()
    layers = [layer for layer in get_all(parse_prototxt(a.net.read_text()), "layer") if in_training(layer)]
    weights = read_safetensors(a.folder / "weights.safetensors")
    count = sum(value.size for name, value in weights.items() if is_trained(name))
    batch = read_safetensors(a.folder / "batch.safetensors")
    data, labels = batch["data"], batch["label"].astype(numpy.int64)
    onnxruntime.set_seed(1)
    module, optimizer, _state = make_ready(layers, weights, data, a.threads)
    seconds, losses = [], []
    for step in range(a.warm_up + a.steps):
        begin = time.perf_counter()
        loss = module(data, labels)
        optimizer.step()
        module.lazy_reset_grad()
        losses.append(float(loss))
        if step >= a.warm_up:
            seconds.append(time.perf_counter() - begin)
    print(json.dumps({"program": f"onnxruntime {onnxruntime.__version__}", "batch": len(labels), "precision": "float32",
                      "weights": count, "seconds": seconds, "losses": losses,
                      "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
