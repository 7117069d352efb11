#!/usr/bin/env python3
"""Writes the reference vectors of this folder: one <layer>.txt per layer type.

Everything is computed in float64 with PyTorch and its automatic differentiation, from inputs that float32 holds
exactly. The random numbers of a case depend on its name alone, so adding a case leaves the others as they are.
The format of the files is described in README.md.
"""

import math
import pathlib
import sys
import zlib

import numpy
import torch

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

VALUES_PER_LINE = 8


def random_generator(name):
    return numpy.random.default_rng(zlib.crc32(name.encode()))


def as_float32(array):
    """The nearest float32 values, as float64."""
    return numpy.asarray(array).astype(numpy.float32).astype(numpy.float64)


def as_input(array):
    """float32 values next to few-digit decimals, so that the files stay small."""
    return as_float32(numpy.round(array, 4))


def normal(rng, shape, scale=1.0, offset=0.0):
    return as_input(rng.standard_normal(shape) * scale + offset)


def distinct(rng, shape, low, high):
    """Values no two of which are equal: a shuffled, evenly spaced range."""
    count = math.prod(shape)
    values = as_input(rng.permutation(numpy.linspace(low, high, count)).reshape(shape))
    assert len(numpy.unique(values)) == count
    return values


def away_from_zero(rng, shape, margin=0.02):
    values = rng.standard_normal(shape)
    return as_input(values + numpy.copysign(margin, values))


def shortest_float32(value):
    return next(text for text in (f"{value + 0.0:.{digits}g}" for digits in range(1, 10))
                if numpy.float32(text) == value)


class Writer:
    def __init__(self, path):
        self.file = open(path, "w", encoding="ascii", newline="\n")

    def begin(self, name, parameters):
        self.file.write(f"case {name}\n")
        for key, value in parameters.items():
            if isinstance(value, bool):
                value = "true" if value else "false"
            elif isinstance(value, float):
                value = f"{value:.9g}"
            self.file.write(f"param {key} {value}\n")

    def tensor(self, name, values, exact):
        """exact: the values are float32, written with as few digits as give them back; others have twelve digits."""
        if isinstance(values, torch.Tensor):
            values = values.detach().numpy()
        assert values.ndim == 4 and values.dtype == numpy.float64 and numpy.isfinite(values).all()
        if exact:
            assert (as_float32(values) == values).all()
        self.file.write(f"tensor {name} {' '.join(str(extent) for extent in values.shape)}\n")
        flat = [shortest_float32(value) if exact else f"{value + 0.0:.12g}" for value in values.ravel()]
        for start in range(0, len(flat), VALUES_PER_LINE):
            self.file.write(" ".join(flat[start:start + VALUES_PER_LINE]) + "\n")

    def end(self):
        self.file.write("end\n")


def write_case(writer, name, parameters, function, data, weights=(), output_gradient=None):
    """function(input, *weights) gives the output. The gradient of the output is random unless given."""
    leaves = [torch.tensor(array, requires_grad=True) for array in (data, *weights)]
    output = function(*leaves)
    if output_gradient is None:
        output_gradient = normal(random_generator(name + "/output_gradient"), tuple(output.shape))
    output.backward(torch.tensor(output_gradient))
    writer.begin(name, parameters)
    writer.tensor("input0", data, exact=True)
    for index, weight in enumerate(weights):
        writer.tensor(f"weight{index}", weight, exact=True)
    writer.tensor("output0", output, exact=False)
    writer.tensor("output_gradient0", output_gradient, exact=True)
    writer.tensor("input_gradient0", leaves[0].grad, exact=False)
    for index, leaf in enumerate(leaves[1:]):
        writer.tensor(f"weight_gradient{index}", leaf.grad, exact=False)
    writer.end()


def convolution(writer):
    # name, input shape, number of outputs, (kernel_h, kernel_w), pad, stride, group, bias_term
    cases = [
        ("plain_3x3", (1, 3, 5, 7), 5, (3, 3), 0, 1, 1, True),
        ("pad_3x3_channels_8", (3, 8, 5, 7), 8, (3, 3), 1, 1, 1, True),
        ("pad_3x3_channels_16", (1, 16, 5, 6), 8, (3, 3), 1, 1, 1, True),
        ("odd_channels_5x5", (1, 7, 9, 6), 5, (5, 5), 2, 1, 1, True),
        ("one_by_one", (3, 16, 3, 5), 8, (1, 1), 0, 1, 1, True),
        ("one_by_one_odd", (1, 13, 5, 7), 6, (1, 1), 0, 1, 1, True),
        ("stride_2", (3, 6, 7, 5), 8, (3, 3), 1, 2, 1, True),
        ("stride_2_remainder", (1, 8, 8, 10), 8, (3, 3), 0, 2, 1, True),
        ("stride_3_larger_than_kernel", (1, 5, 8, 11), 4, (2, 2), 0, 3, 1, True),
        ("group_2_channels_16", (1, 16, 5, 7), 16, (3, 3), 1, 1, 2, True),
        ("group_2_channels_6", (3, 6, 5, 4), 10, (3, 3), 1, 1, 2, True),
        ("group_2_5x5", (1, 8, 9, 7), 8, (5, 5), 2, 1, 2, True),
        ("group_2_stride_2_no_bias", (1, 8, 7, 7), 6, (3, 3), 1, 2, 2, False),
        ("kernel_1x3", (3, 5, 5, 7), 8, (1, 3), 0, 1, 1, True),
        ("kernel_5x2_pad", (1, 8, 7, 5), 7, (5, 2), 1, 1, 1, True),
        ("kernel_3x1_stride_2_no_bias", (3, 8, 7, 5), 16, (3, 1), 0, 2, 1, False),
        ("no_bias", (1, 3, 5, 7), 8, (3, 3), 1, 1, 1, False),
        ("first_layer_11x11_stride_4", (1, 3, 23, 27), 8, (11, 11), 0, 4, 1, True),
        ("first_layer_11x11_stride_4_remainder", (3, 3, 17, 14), 2, (11, 11), 0, 4, 1, True),
        ("first_layer_11x11_stride_4_pad_2", (1, 3, 20, 15), 3, (11, 11), 2, 4, 1, True),
        ("output_of_one", (3, 9, 4, 3), 8, (4, 3), 0, 1, 1, True),
    ]
    for name, shape, outputs, (kernel_h, kernel_w), pad, stride, group, bias in cases:
        rng = random_generator("convolution/" + name)
        data = normal(rng, shape)
        fan_in = shape[1] // group * kernel_h * kernel_w
        weights = [normal(rng, (outputs, shape[1] // group, kernel_h, kernel_w), 1 / math.sqrt(fan_in))]
        if bias:
            weights.append(normal(rng, (outputs, 1, 1, 1)))
        parameters = {"convolution_param.num_output": outputs}
        if kernel_h == kernel_w:
            parameters["convolution_param.kernel_size"] = kernel_h
        else:
            parameters["convolution_param.kernel_h"] = kernel_h
            parameters["convolution_param.kernel_w"] = kernel_w
        parameters["convolution_param.pad"] = pad
        parameters["convolution_param.stride"] = stride
        parameters["convolution_param.group"] = group
        parameters["convolution_param.bias_term"] = bias

        def function(x, weight, bias_values=None):
            return torch.nn.functional.conv2d(
                x, weight, None if bias_values is None else bias_values.reshape(-1), stride, pad, 1, group)

        write_case(writer, name, parameters, function, data, weights)


def inner_product(writer):
    # name, input shape, number of outputs, bias_term
    cases = [
        ("flat_channels_16", (3, 16, 1, 1), 8, True),
        ("flat_odd", (3, 13, 1, 1), 5, True),
        ("single_output", (3, 10, 1, 1), 1, True),
        ("spatial_5x7", (1, 3, 5, 7), 10, True),
        ("spatial_channels_8", (3, 8, 3, 5), 6, True),
        ("spatial_channels_16", (1, 16, 3, 3), 8, True),
        ("spatial_odd_no_bias", (3, 5, 2, 3), 7, False),
        ("flat_no_bias", (1, 32, 1, 1), 16, False),
    ]
    for name, shape, outputs, bias in cases:
        rng = random_generator("inner_product/" + name)
        data = normal(rng, shape)
        weights = [normal(rng, (outputs, *shape[1:]), 1 / math.sqrt(math.prod(shape[1:])))]
        if bias:
            weights.append(normal(rng, (outputs, 1, 1, 1)))

        def function(x, weight, bias_values=None):
            result = x.flatten(1) @ weight.flatten(1).T
            if bias_values is not None:
                result = result + bias_values.reshape(1, -1)
            return result[:, :, None, None]

        parameters = {"inner_product_param.num_output": outputs, "inner_product_param.bias_term": bias}
        write_case(writer, name, parameters, function, data, weights)


def relu(writer):
    for label, shape in (("1x3x5x7", (1, 3, 5, 7)), ("3x8x3x5", (3, 8, 3, 5)), ("3x13x1x1", (3, 13, 1, 1)),
                         ("1x16x3x4", (1, 16, 3, 4))):
        for slope in (0.0, 0.1):
            name = f"slope_{slope:g}_{label}"
            data = away_from_zero(random_generator("relu/" + name), shape)
            write_case(writer, name, {"relu_param.negative_slope": slope},
                       lambda x: torch.where(x > 0, x, slope * x), data)


def lrn(writer):
    # name, input shape, local_size, alpha, beta, k, scale of the input
    cases = [
        ("alexnet_channels_16", (1, 16, 5, 7), 5, 1e-4, 0.75, 1.0, 1.0),
        ("alexnet_large_inputs", (3, 8, 5, 7), 5, 1e-4, 0.75, 1.0, 100.0),
        ("alexnet_odd_channels", (3, 13, 3, 4), 5, 1e-4, 0.75, 1.0, 30.0),
        ("size_3_alpha_1", (1, 7, 5, 7), 3, 1.0, 0.75, 1.0, 1.0),
        ("size_3_small_alpha_k_2", (1, 8, 5, 7), 3, 1e-4, 0.75, 2.0, 50.0),
        ("size_5_alpha_1_k_2", (1, 16, 5, 7), 5, 1.0, 0.75, 2.0, 1.0),
        ("size_5_alpha_1_batch_3", (3, 16, 3, 3), 5, 1.0, 0.75, 1.0, 2.0),
        ("fewer_channels_than_size", (3, 3, 5, 7), 5, 1.0, 0.75, 1.0, 1.0),
        ("one_channel", (1, 1, 5, 7), 3, 1.0, 0.75, 2.0, 1.0),
        ("flat_channels_24", (3, 24, 1, 1), 5, 1.0, 0.75, 2.0, 1.0),
    ]
    for name, shape, size, alpha, beta, k, scale in cases:
        data = normal(random_generator("lrn/" + name), shape, scale)

        def function(x):
            half = (size - 1) // 2
            squares = torch.nn.functional.pad(x * x, (0, 0, 0, 0, half, half))
            sums = sum(squares[:, offset:offset + x.shape[1]] for offset in range(size))
            return x * (k + alpha / size * sums) ** -beta

        write_case(writer, name, {
            "lrn_param.local_size": size, "lrn_param.alpha": alpha, "lrn_param.beta": beta, "lrn_param.k": k,
            "lrn_param.norm_region": "ACROSS_CHANNELS"}, function, data)


def pooled_extent(extent, kernel, stride, pad):
    result = -(-(extent + 2 * pad - kernel) // stride) + 1
    if (result - 1) * stride >= extent + pad:
        result -= 1
    return result


def pooling(writer):
    # name, input shape, kernel, stride, pad
    cases = [
        ("3_stride_2", (1, 3, 5, 7), 3, 2, 0),
        ("3_stride_2_rounded_up", (3, 8, 6, 4), 3, 2, 0),
        ("3_stride_2_rounded_up_odd_channels", (1, 13, 6, 7), 3, 2, 0),
        ("3_stride_2_pad_1", (3, 5, 5, 7), 3, 2, 1),
        ("3_stride_2_pad_1_even", (1, 16, 6, 8), 3, 2, 1),
        ("3_stride_1_pad_1", (1, 8, 5, 7), 3, 1, 1),
        ("2_stride_2", (3, 6, 6, 8), 2, 2, 0),
        ("2_stride_2_rounded_up", (1, 8, 5, 7), 2, 2, 0),
        ("2_stride_2_pad_1_last_window_dropped", (1, 8, 5, 7), 2, 2, 1),
        ("3_stride_3_pad_1_last_window_dropped", (3, 3, 6, 8), 3, 3, 1),
        ("5_stride_3_pad_2", (1, 8, 7, 11), 5, 3, 2),
        ("5_stride_3_rounded_up", (3, 3, 9, 7), 5, 3, 0),
        ("5_whole_input", (1, 16, 5, 5), 5, 1, 0),
    ]
    for method in ("MAX", "AVE"):
        for label, shape, kernel, stride, pad in cases:
            name = f"{method.lower()}_{label}"
            rng = random_generator("pooling/" + name)
            # Negative throughout in every padded MAX case, so that padding taken for zeros would show.
            data = distinct(rng, shape, -3.0, -0.1 if pad and method == "MAX" else 3.0)
            extents = [pooled_extent(extent, kernel, stride, pad) for extent in shape[2:]]

            def window(index, extent):
                """Begin and end inside the input, and the length that an average counts."""
                start = index * stride - pad
                stop = min(start + kernel, extent + pad)
                return max(start, 0), min(stop, extent), stop - start

            def function(x):
                rows = []
                for h in range(extents[0]):
                    top, bottom, height = window(h, x.shape[2])
                    row = []
                    for w in range(extents[1]):
                        left, right, width = window(w, x.shape[3])
                        values = x[:, :, top:bottom, left:right]
                        row.append(values.amax((2, 3)) if method == "MAX" else values.sum((2, 3)) / (height * width))
                    rows.append(torch.stack(row, 2))
                return torch.stack(rows, 2)

            write_case(writer, name, {
                "pooling_param.pool": method, "pooling_param.kernel_size": kernel, "pooling_param.stride": stride,
                "pooling_param.pad": pad}, function, data)


def softmax(writer):
    # name, input shape, scale and offset of the input
    cases = [
        ("flat_10", (3, 10, 1, 1), 2.0, 0.0),
        ("flat_16", (1, 16, 1, 1), 2.0, 0.0),
        ("flat_1", (3, 1, 1, 1), 2.0, 0.0),
        ("spatial_5x7", (1, 5, 5, 7), 2.0, 0.0),
        ("spatial_channels_8", (3, 8, 3, 5), 2.0, 0.0),
        ("large_inputs", (3, 13, 1, 1), 3.0, 200.0),
        ("large_negative_inputs", (1, 16, 2, 3), 3.0, -200.0),
    ]
    for name, shape, scale, offset in cases:
        data = normal(random_generator("softmax/" + name), shape, scale, offset)
        write_case(writer, name, {}, lambda x: torch.softmax(x, 1), data)


def softmax_with_loss(writer):
    # name, number of classes, labels, normaliser, scale and offset of the input
    cases = [
        ("batch_1", 10, [3], 1, 2.0, 0.0),
        ("batch_3", 10, [0, 9, 4], 3, 2.0, 0.0),
        ("classes_16", 16, [15, 0, 7], 3, 2.0, 0.0),
        ("one_row_ignored", 7, [2, -1, 6], 3, 2.0, 0.0),
        ("one_row_ignored_normaliser_of_valid_rows", 8, [-1, 5, 0], 2, 2.0, 0.0),
        ("part_of_a_larger_batch", 13, [12, 1, 1], 8, 2.0, 0.0),
        ("part_of_a_larger_batch_row_ignored", 16, [4, 4, -1], 5, 2.0, 0.0),
        ("all_rows_ignored", 5, [-1, -1, -1], 3, 2.0, 0.0),
        ("large_inputs", 10, [7, 2, -1], 3, 5.0, 200.0),
    ]
    for name, classes, labels, normaliser, scale, offset in cases:
        data = normal(random_generator("softmax_with_loss/" + name), (len(labels), classes, 1, 1), scale, offset)
        x = torch.tensor(data, requires_grad=True)
        log_probabilities = torch.log_softmax(x, 1)
        loss = 0.0 * x.sum()
        for row, label in enumerate(labels):
            if label >= 0:
                loss = loss - log_probabilities[row, label, 0, 0] / normaliser
        loss.backward()
        writer.begin(name, {"normaliser": normaliser})
        writer.tensor("input0", data, exact=True)
        writer.tensor("input1", numpy.array(labels, dtype=numpy.float64).reshape(-1, 1, 1, 1), exact=True)
        writer.tensor("output0", loss.reshape(1, 1, 1, 1), exact=False)
        writer.tensor("output_gradient0", numpy.ones((1, 1, 1, 1)), exact=True)
        writer.tensor("input_gradient0", x.grad, exact=False)
        writer.end()


def accuracy(writer):
    # name, number of classes, for every row the rank (0: highest score) of its true class or None for label -1,
    # top_k, normaliser
    cases = [
        ("top_1_batch_1_right", 10, [0], 1, 1),
        ("top_1_batch_1_wrong", 10, [1], 1, 1),
        ("top_1_batch_3", 7, [0, 3, 0], 1, 3),
        ("top_1_channels_16", 16, [15, 0, 1], 1, 3),
        ("top_1_row_ignored", 10, [0, None, 2], 1, 3),
        ("top_1_part_of_a_larger_batch", 10, [0, 0, 5], 1, 8),
        ("top_3_batch_3", 7, [2, 3, 0], 3, 3),
        ("top_3_channels_16", 16, [1, 2, 3], 3, 3),
        ("top_3_as_many_classes", 3, [0, 1, 2], 3, 3),
        ("top_3_row_ignored_normaliser_of_valid_rows", 8, [None, 2, 3], 3, 2),
        ("top_3_part_of_a_larger_batch", 13, [2, 12, 1], 3, 5),
    ]
    for name, classes, ranks, top_k, normaliser in cases:
        data = distinct(random_generator("accuracy/" + name), (len(ranks), classes, 1, 1), -4.0, 4.0)
        order = numpy.argsort(-data[:, :, 0, 0], axis=1)
        labels = [-1.0 if rank is None else float(order[row, rank]) for row, rank in enumerate(ranks)]
        right = sum(rank is not None and rank < top_k for rank in ranks)
        writer.begin(name, {"accuracy_param.top_k": top_k, "normaliser": normaliser})
        writer.tensor("input0", data, exact=True)
        writer.tensor("input1", numpy.array(labels).reshape(-1, 1, 1, 1), exact=True)
        writer.tensor("output0", numpy.full((1, 1, 1, 1), right / normaliser), exact=False)
        writer.end()


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent
    for layer in (convolution, inner_product, relu, lrn, pooling, softmax, softmax_with_loss, accuracy):
        writer = Writer(folder / f"{layer.__name__}.txt")
        layer(writer)
        writer.file.close()


if __name__ == "__main__":
    main()
