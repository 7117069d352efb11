#!/usr/bin/env python3
"""Writes small nets as ONNX files, by both of PyTorch's exporters, and the scores that ONNX Runtime computes.

onnx/<name>.onnx, and onnx/scores.txt: on each line a name and the scores of the input whose element i is
((37 i) mod 101) / 50 - 1, in float32 also where the file has float16. Weights are random, batch statistics too.
Needs torch, onnx, onnxscript and onnxruntime.
"""

import pathlib
import sys
import warnings

import numpy
import onnx
import onnxruntime
import torch
from onnx import helper, numpy_helper
from onnxruntime.transformers import float16
from torch import nn

SIDE = 12
CLASSES = 4


class Plain(nn.Module):
    """What AlexNet, VGG and ResNet are made of."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(6)
        self.pool = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv2 = nn.Conv2d(6, 6, (1, 3), padding=(0, 1), groups=2)
        self.average = nn.AvgPool2d(3, 1, 1)
        self.inside = nn.AvgPool2d(3, 2, 1, count_include_pad=False)
        self.drop = nn.Dropout(0.25)
        self.fc = nn.Linear(54, CLASSES)

    def forward(self, x):
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        x = torch.relu(x + self.conv2(x))
        return self.fc(self.drop(torch.flatten(self.inside(self.average(x)), 1)))


class Mobile(nn.Module):
    """Depthwise convolutions, squeeze and excitation, SiLU and HardSwish, as in MobileNet v3 and EfficientNet."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1)
        self.depthwise = nn.Conv2d(8, 8, 3, 1, 1, groups=8)
        self.squeeze, self.excite = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)
        self.project = nn.Conv2d(8, 8, 1)
        self.classifier = nn.Linear(8, CLASSES)

    def forward(self, x):
        x = nn.functional.hardswish(self.stem(x))
        y = nn.functional.silu(self.depthwise(x))
        s = nn.functional.adaptive_avg_pool2d(y, 1)
        s = nn.functional.hardsigmoid(self.excite(torch.relu(self.squeeze(s))))
        x = x + self.project(y * s)
        return self.classifier(nn.functional.relu6(x).mean([2, 3]))


class Shuffle(nn.Module):
    """Halves of channels and their shuffle, as in ShuffleNet."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2)
        self.branch = nn.Conv2d(4, 4, 3, 1, 1)
        self.fc = nn.Linear(8, CLASSES)

    def forward(self, x):
        a, b = self.stem(x).chunk(2, dim=1)
        x = torch.cat((a, torch.relu(self.branch(b))), dim=1)
        n, c, h, w = x.shape
        x = x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        return self.fc(x[:, :, 1:5:2].amax([2, 3]))


class Tokens(nn.Module):
    """A vision transformer of one block."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.position = nn.Parameter(torch.randn(1, 10, 8))
        self.norm1, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(8, 12), nn.GELU(), nn.Linear(12, 8))
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.position
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.mlp(self.norm2(x))
        return self.head(x[:, 0])


class Windows(nn.Module):
    """Channels last, layer scale, shifted windows and attention with a position bias, as in ConvNeXt and Swin."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 3)
        self.norm = nn.LayerNorm(8, eps=1e-6)
        self.scale = nn.Parameter(torch.rand(8, 1, 1) + 0.5)
        self.qkv = nn.Linear(8, 24)
        self.bias = nn.Parameter(torch.randn(1, 2, 4, 4))
        self.fc = nn.Linear(8, CLASSES)

    def forward(self, x):
        x = self.stem(x)
        x = x + self.scale * self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        x = torch.roll(x.permute(0, 2, 3, 1), (-1, -1), (1, 2))
        x = x.view(-1, 2, 2, 2, 2, 8).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, 8)
        q, k, v = self.qkv(x).reshape(-1, 4, 3, 2, 4).permute(2, 0, 3, 1, 4)
        x = ((q @ k.transpose(-2, -1) * 0.5 + self.bias).softmax(-1) @ v).transpose(1, 2).reshape(-1, 4, 8)
        x = x.view(-1, 2, 2, 2, 2, 8).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, 4, 8)
        return self.fc(x.mean([1, 2]))


def channels_last():
    """A graph as tf2onnx writes it: images N, H, W, C, padding SAME, a matrix at the end, a Softmax."""
    rng = numpy.random.default_rng(7)

    def constant(name, *shape):
        return numpy_helper.from_array((rng.standard_normal(shape) / 2).astype(numpy.float32), name)

    def integers(name, *values):
        return numpy_helper.from_array(numpy.array(values, numpy.int64), name)

    nodes = [
        helper.make_node("Transpose", ["image"], ["x0"], "to_channels_first", perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["x0", "stem/kernel", "stem/bias"], ["x1"], "stem", strides=[2, 2],
                         auto_pad="SAME_UPPER"),
        helper.make_node("Transpose", ["x1"], ["x2"], "to_channels_last", perm=[0, 2, 3, 1]),
        helper.make_node("Clip", ["x2", "zero", "six"], ["x3"], "relu6"),
        helper.make_node("Mul", ["x3", "channel_factors"], ["x4"], "mul"),
        helper.make_node("Pad", ["x4", "pads"], ["x5"], "pad"),
        helper.make_node("Transpose", ["x5"], ["x6"], "to_channels_first_again", perm=[0, 3, 1, 2]),
        helper.make_node("MaxPool", ["x6"], ["x7"], "pool", kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1]),
        helper.make_node("Transpose", ["x7"], ["x8"], "to_channels_last_again", perm=[0, 2, 3, 1]),
        helper.make_node("Shape", ["x8"], ["shape"], "shape"),
        helper.make_node("Gather", ["shape", "first"], ["rows"], "rows", axis=0),
        helper.make_node("Concat", ["rows", "rest"], ["new_shape"], "new_shape", axis=0),
        helper.make_node("Reshape", ["x8", "new_shape"], ["x9"], "flatten"),
        helper.make_node("MatMul", ["x9", "dense/kernel"], ["x10"], "dense"),
        helper.make_node("Add", ["x10", "dense/bias"], ["x11"], "dense/BiasAdd"),
        helper.make_node("Softmax", ["x11"], ["scores"], "softmax", axis=-1),
    ]
    constants = [
        constant("stem/kernel", 5, 3, 3, 3), constant("stem/bias", 5), constant("channel_factors", 5),
        constant("dense/kernel", 80, CLASSES), constant("dense/bias", CLASSES),
        numpy_helper.from_array(numpy.float32(0), "zero"), numpy_helper.from_array(numpy.float32(6), "six"),
        integers("pads", 0, 0, 1, 0, 0, 1, 0, 0), integers("first", 0), integers("rest", -1),
    ]
    graph = helper.make_graph(
        nodes, "channels_last",
        [helper.make_tensor_value_info("image", 1, ["n", SIDE, SIDE, 3])],
        [helper.make_tensor_value_info("scores", 1, ["n", CLASSES])], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)


class Forms:
    """Branches of one image of 3x6x5 that are flattened and joined, and a matrix: forms that exporters seldom write."""

    def __init__(self, opset):
        self.opset, self.nodes, self.constants, self.branches = opset, [], [], []
        self.rng = numpy.random.default_rng(11)

    def constant(self, value):
        name = f"c{len(self.constants)}"
        value = numpy.array(value)
        if value.dtype == numpy.float64:
            value = value.astype(numpy.float32)
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def some(self, *shape):
        return self.constant(self.rng.uniform(0.5, 1.5, shape))

    def add(self, operation, *inputs, **attributes):
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, list(inputs), [output], **attributes))
        return output

    def branch(self, operation, *inputs, **attributes):
        self.branches.append(self.add(operation, *inputs, **attributes))

    def model(self):
        rows = [self.add("Reshape", branch, self.constant([1, -1])) for branch in self.branches]
        joined = self.add("Concat", *rows, axis=1)
        shape = [helper.make_tensor_value_info("image", 1, [1, 3, 6, 5])]
        graph = helper.make_graph(self.nodes, "forms", shape, [helper.make_tensor_value_info(joined, 1, None)],
                                  self.constants)
        session = onnxruntime.InferenceSession(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8).SerializeToString())
        count = session.run(None, {"image": numpy.ones((1, 3, 6, 5), numpy.float32)})[0].size
        matrix = self.constant(self.rng.standard_normal((count, CLASSES)) / count ** 0.5)
        self.add("MatMul", joined, matrix)
        graph = helper.make_graph(
            self.nodes, "forms", shape,
            [helper.make_tensor_value_info(self.nodes[-1].output[0], 1, [1, CLASSES])], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


def forms_old():
    """What operators of opset 11 and older mean otherwise."""
    forms = Forms(10)
    positive = forms.add("Abs", "image")
    for axis in ({}, {"axis": 2}, {"axis": 3}):
        forms.branch("Mul", forms.add("Softmax", "image", **axis), forms.constant(20.0))
    forms.branch("LogSoftmax", "image", axis=1)
    forms.branch("Resize", "image", forms.constant([1, 1, 1.5, 2.0]), mode="nearest")
    forms.branch("Clip", "image", max=0.25)
    forms.branch("Pad", "image", pads=[0, 0, 2, 1, 0, 0, 0, 1], mode="reflect")
    forms.branch("Slice", "image", forms.constant([-2]), forms.constant([-9]), forms.constant([3]), forms.constant([-2]))
    for operation in ("ReduceL1", "ReduceSumSquare", "ReduceLogSumExp"):
        forms.branch(operation, "image", axes=[1], keepdims=0)
    forms.branch("PRelu", "image", forms.some(3, 1, 1))
    forms.branch("Pow", positive, forms.add("Sigmoid", "image"))
    return forms.model()


def forms_new():
    """Operators of opset 18 and newer: axes as inputs, broadcasting of two values, windows that are not even."""
    forms = Forms(18)
    positive = forms.add("Add", forms.add("Abs", "image"), forms.constant(0.5))
    columns = forms.add("ReduceMean", positive, forms.constant([2]))
    rows = forms.add("ReduceMax", positive, forms.constant([3]))
    for operation in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"):
        forms.branch(operation, rows, columns)
    for operation in ("Max", "Min"):
        forms.branch(operation, "image", forms.add("Tanh", "image"), forms.add("Neg", "image"))
    forms.branch("Mean", "image", columns)
    forms.branch("Pow", forms.constant(1.7), "image")
    forms.branch("Mul", "image", forms.some(1, 1, 3, 1, 1))
    nothing = forms.constant(numpy.zeros(0, numpy.int64))
    forms.branch("ReduceSum", "image", nothing)
    forms.branch("ReduceMean", "image", nothing, noop_with_empty_axes=1)
    for operation in ("ReduceMin", "ReduceSumSquare", "ReduceLogSumExp", "ReduceL2"):
        forms.branch(operation, "image", forms.constant([-3, 3]), keepdims=0)
    for indices in ([2, 1, 0], [3, 0, 5, 1], [0, 2, 4]):
        forms.branch("Gather", "image", forms.constant(indices), axis=1 if len(indices) == 3 and indices[0] == 2 else 2)
    forms.branch("Slice", "image", forms.constant([4]), forms.constant([-100]), forms.constant([2]), forms.constant([-3]))
    forms.branch("Slice", "image", forms.constant([0, 1]), forms.constant([99, 99]), forms.constant([3, 2]),
                 forms.constant([2, 4]))
    for mode in ("constant", "reflect", "edge"):
        forms.branch("Pad", "image", forms.constant([0, 1, -1, 2, 0, 0, 2, -1]), mode=mode)
    forms.branch("Pad", "image", forms.constant([1, 2]), forms.constant(1.5), forms.constant([-2]))
    forms.branch("AveragePool", "image", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    forms.branch("AveragePool", "image", kernel_shape=[2, 3], pads=[1, 0, 0, 2], strides=[2, 1], ceil_mode=1)
    forms.branch("AveragePool", "image", kernel_shape=[3, 3], pads=[0, 1, 1, 0], count_include_pad=1)
    forms.branch("MaxPool", "image", kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_LOWER")
    forms.branch("MaxPool", "image", kernel_shape=[6, 5])
    forms.branch("LRN", "image", size=3, alpha=0.5, beta=0.6, bias=1.5)
    forms.branch("Conv", "image", forms.some(2, 3, 2, 4), auto_pad="SAME_LOWER", strides=[1, 2])
    linear = {"mode": "linear"}
    forms.branch("Resize", "image", "", forms.constant([1, 1, 1.5, 2.3]), **linear)
    forms.branch("Resize", "image", "", "", forms.constant([9, 4]), axes=[2, 3], **linear)
    forms.branch("Resize", "image", "", forms.constant([1, 1, 3.0, 2.0]), coordinate_transformation_mode="align_corners",
                 **linear)
    forms.branch("Resize", "image", "", forms.constant([1, 1, 3.0, 2.0]), mode="nearest")
    joined = forms.add("Reshape", "image", forms.constant([1, 3, 10, 3]))
    mean = forms.add("ReduceMean", joined, forms.constant([1]))
    away = forms.add("Sub", joined, mean)
    variance = forms.add("ReduceMean", forms.add("Pow", away, forms.constant(2.0)), forms.constant([1]))
    deviation = forms.add("Sqrt", forms.add("Add", variance, forms.constant(0.01)))
    scaled = forms.add("Mul", forms.add("Div", away, deviation), forms.some(3))  # along the last axis, not the first
    forms.branch("Add", scaled, forms.some(3, 1, 1))
    forms.branch("PRelu", joined, forms.some(3, 1, 1))
    whole = forms.constant(numpy.array([300, 7, -2], numpy.int64))
    wrapped = forms.add("Cast", forms.add("Cast", whole, to=2), to=1)
    even = forms.add("Cast", forms.add("Mod", whole, forms.constant(numpy.array([4, 4, 3], numpy.int64)), fmod=1), to=1)
    products = forms.add("ReduceProd", forms.some(3, 2), forms.constant([1]), keepdims=1)
    factor = forms.add("Mul", forms.add("Reshape", forms.add("Add", wrapped, even), forms.constant([3, 1, 1])),
                       forms.add("Unsqueeze", products, forms.constant([2])))
    forms.branch("Mul", "image", forms.add("Mul", factor, forms.constant(0.01)))
    return forms.model()


def forms_layers():
    """Layers of constants, and of values with more axes than an image: windows, volumes, repeated values."""
    forms = Forms(17)
    floats = lambda *shape: forms.constant(forms.rng.standard_normal(shape))
    # Weights that the file standardizes, and an encoding that it convolves.
    weights, ones = floats(1, 4, 12), forms.constant(numpy.ones(4))
    node = helper.make_node("BatchNormalization", [weights, forms.some(4), floats(4), ones, ones], ["bn", "m", "v"],
                            training_mode=1)
    forms.nodes.append(node)
    forms.branch("Conv", "image", forms.add("Reshape", "bn", forms.constant([4, 3, 2, 2])))
    encoded = forms.add("Conv", floats(1, 4, 7, 6), floats(6, 2, 3, 3), floats(6), group=2, pads=[1, 0, 0, 1],
                        dilations=[1, 2], strides=[1, 1])
    encoded = forms.add("BatchNormalization", encoded, forms.some(6), floats(6), floats(6), forms.some(6))
    encoded = forms.add("LayerNormalization", encoded, forms.some(6, 3), floats(6, 3), axis=2)
    encoded = forms.add("Erf", forms.add("Softmax", encoded, axis=1))
    encoded = forms.add("MatMul", encoded, floats(6, 3, 5))
    encoded = forms.add("Reshape", forms.add("Flatten", encoded), forms.constant([2, 3, 6, 5]))
    forms.branch("Add", "image", forms.add("ReduceSum", encoded, forms.constant([0]), keepdims=1))
    # Two windows of 3x3x5, one by one, and planes of a volume.
    windows = forms.add("Reshape", "image", forms.constant([1, 3, 2, 3, 5]))
    windows = forms.add("Transpose", windows, perm=[0, 2, 1, 3, 4])
    windows = forms.add("Reshape", windows, forms.constant([2, 3, 3, 5]))
    forms.branch("Conv", windows, floats(6, 1, 3, 3), floats(6), group=3, pads=[1, 2, 1, 1], strides=[2, 1])
    volume = forms.add("Reshape", "image", forms.constant([1, 1, 3, 6, 5]))
    forms.branch("Conv", volume, floats(2, 1, 1, 3, 3), floats(2), pads=[0, 1, 1, 0, 0, 1], dilations=[1, 2, 1])
    forms.branch("Conv", volume, floats(2, 1, 3, 2, 1), pads=[1, 0, 0, 1, 1, 0], strides=[1, 2, 1])
    # Values that Expand repeats: summed, transposed, reshaped.
    rows = forms.add("Expand", forms.add("ReduceMean", "image", axes=[2]), forms.constant([1, 3, 6, 5]))
    columns = forms.add("Expand", forms.add("ReduceMax", "image", axes=[3]), forms.constant([1, 3, 6, 5]))
    forms.branch("Sub", rows, columns)
    forms.branch("Mul", forms.add("Transpose", rows, perm=[0, 3, 1, 2]), forms.add("Transpose", "image", perm=[0, 3, 1, 2]))
    forms.branch("Relu", columns)
    # Products with matrices of fewer axes, and constants on the left.
    forms.branch("MatMul", "image", forms.add("Transpose", forms.add("ReduceMean", "image", axes=[1]), perm=[0, 1, 3, 2]))
    forms.branch("MatMul", floats(4, 6), "image")
    forms.branch("MatMul", floats(1, 3, 2, 6), "image")
    forms.branch("MatMul", "image", floats(1, 3, 5, 4))
    forms.branch("Einsum", "image", floats(3, 5, 2), equation="nchw,cwk->nhck")
    forms.branch("Einsum", floats(2, 6), "image", equation="kh,nchw->nckw")
    forms.branch("Tile", forms.add("ReduceMean", "image", axes=[2]), forms.constant([1, 2, 4, 1]))
    # Constants that the file computes by products.
    product = forms.add("Gemm", floats(4, 3), floats(4, 5), floats(3, 1), transA=1, alpha=0.5, beta=2.0)
    product = forms.add("Einsum", product, floats(2, 3, 6), forms.some(6), equation="ik,aij,j->ajk")
    hot = forms.add("OneHot", forms.constant([1, -3]), forms.constant(3), forms.constant([0.25, 1.5]))
    hot = forms.add("Reshape", hot, forms.constant([2, 3, 1, 1]))
    product = forms.add("ReduceSum", forms.add("Mul", hot, forms.add("Unsqueeze", product, forms.constant([1]))),
                        forms.constant([0]), keepdims=1)
    forms.branch("Mul", "image", product)
    eye = forms.add("EyeLike", forms.constant(numpy.zeros((4, 5))), k=1)
    forms.branch("Mul", forms.add("ReduceMean", "image", axes=[2, 3]), eye)
    rows = numpy.array([[2, 1], [0, -1], [1, 3]]).reshape(3, 1, 2)
    forms.branch("GatherND", forms.add("Reshape", "image", forms.constant([3, 6, 5])), forms.constant(rows))
    pixels = forms.add("Reshape", "image", forms.constant([1, 90]))
    forms.branch("Gather", pixels, forms.constant((numpy.arange(90) * 37) % 90 - 90), axis=1)
    # Sizes without a layer of their own; a padding that no maximum takes.
    sizes = {"coordinate_transformation_mode": "half_pixel", "mode": "cubic"}
    forms.branch("Resize", "image", "", forms.constant([1, 1, 1.5, 0.8]), **sizes)
    forms.branch("Resize", "image", "", "", forms.constant([1, 3, 9, 4]), cubic_coeff_a=-0.5, exclude_outside=1, **sizes)
    forms.branch("Resize", "image", "", forms.constant([1, 1, 1.5, 2.0]), coordinate_transformation_mode="asymmetric",
                 mode="linear")
    forms.branch("Resize", "image", "", forms.constant([1, 1, 1.5, 2.0]), coordinate_transformation_mode="asymmetric",
                 mode="nearest", nearest_mode="ceil")
    padded = forms.add("Pad", "image", forms.constant([0, 0, 1, 0, 0, 0, 0, 1]), forms.constant(-numpy.inf))
    forms.branch("MaxPool", padded, kernel_shape=[2, 2])
    # A constant for each channel.
    bound = floats(3, 1, 1)
    forms.branch("Max", "image", bound)
    forms.branch("Min", bound, "image")
    forms.branch("Pow", forms.some(3, 1, 1), "image")
    forms.branch("Mul", "image", forms.add("Sigmoid", forms.add("Mul", "image", bound)))
    return forms.model()


def randomize(module):
    for name, value in [*module.named_parameters(), *module.named_buffers()]:
        if name.endswith("running_var"):
            value.data = torch.rand(value.shape) + 0.5
        elif value.is_floating_point():
            value.data = torch.randn(value.shape) * (0.5 if value.ndim < 2 else 1.5 / value[0].numel() ** 0.5)


def export(module, path, kind):
    x = torch.zeros(1, 3, SIDE, SIDE)
    if kind == "new":
        torch.onnx.export(module, (x,), path, dynamo=True, opset_version=18, external_data=False, verbose=False)
    elif kind == "training":
        torch.onnx.export(module, (x,), path, dynamo=False, opset_version=17, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.PRESERVE)
    else:
        opset = 7 if kind == "opset7" else 11 if isinstance(module, Plain) else 17
        torch.onnx.export(module, (x,), path, dynamo=False, opset_version=opset, input_names=["image"],
                          dynamic_axes={"image": {0: "n"}})
    if kind == "fused":  # operators of com.microsoft
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = path
        onnxruntime.InferenceSession(onnx.load(path).SerializeToString(), options)
    model = onnx.load(path)
    if kind == "casts":  # float16; the nodes Cast come last
        model = float16.convert_float_to_float16(model, keep_io_types=True)
    model.metadata_props.clear()
    for entry in [model.graph, *model.graph.node, *model.graph.input, *model.graph.output, *model.graph.initializer]:
        entry.doc_string = ""
        if hasattr(entry, "metadata_props"):
            entry.ClearField("metadata_props")
    model.graph.ClearField("value_info")
    onnx.save(model, path)


def in_float32(model):
    """The same values and nodes, all of float32. GELU's root of 2 is not rounded: a reader takes GELU for what it is."""
    root = numpy.float16(2 ** 0.5)
    half, single = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT

    def change(tensor):
        if tensor.data_type == half:
            values = numpy_helper.to_array(tensor).astype(numpy.float32)
            if values.size == 1 and values == root:
                values[...] = 2 ** 0.5
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))

    for tensor in model.graph.initializer:
        change(tensor)
    for node in model.graph.node:
        for attribute in node.attribute:
            change(attribute.t)
            if node.op_type == "Cast" and attribute.i == half:
                attribute.i = single
    for value in [*model.graph.input, *model.graph.output]:
        if value.type.tensor_type.elem_type == half:
            value.type.tensor_type.elem_type = single
    model.graph.ClearField("value_info")
    return model


def main():
    warnings.filterwarnings("ignore")
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "onnx"
    folder.mkdir(exist_ok=True)
    for net, kinds in [(Plain, ["old", "new", "training", "opset7"]), (Mobile, ["old", "new", "fused"]),
                       (Shuffle, ["old", "new"]), (Tokens, ["old", "new", "casts", "fused"]), (Windows, ["old", "new"])]:
        torch.manual_seed(3)
        module = net().eval()
        randomize(module)
        for kind in kinds:
            export(module, str(folder / f"{net.__name__.lower()}_{kind}.onnx"), kind)
    for net in (channels_last, forms_layers, forms_old, forms_new):
        onnx.save(net(), str(folder / f"{net.__name__}.onnx"))
    with open(folder / "scores.txt", "w", encoding="utf-8") as file:
        for path in sorted(folder.glob("*.onnx")):
            session = onnxruntime.InferenceSession(in_float32(onnx.load(path)).SerializeToString())
            height, width = (6, 5) if path.stem.startswith("forms") else (SIDE, SIDE)
            image = ((37 * numpy.arange(3 * height * width)) % 101 / 50 - 1).astype(numpy.float32)
            image = image.reshape(1, 3, height, width)
            if path.stem == "channels_last":
                image = image.transpose(0, 2, 3, 1)
            scores = session.run(None, {session.get_inputs()[0].name: image})[0].astype(numpy.float64)
            if path.stem == "channels_last":  # a reader leaves the Softmax out
                scores = numpy.log(scores)
            file.write(f"{path.stem} {' '.join(f'{score:.9g}' for score in scores.ravel())}\n")


if __name__ == "__main__":
    main()
