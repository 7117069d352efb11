#!/usr/bin/env python3
"""Writes the reference vectors of layers that shape, cut or reduce tensors: one <layer>.txt per layer type.

As make_vectors.py, whose helpers it uses: float64, from inputs that float32 holds exactly.
"""

import math
import pathlib
import sys

import numpy
import torch

from make_vectors import Writer, away_from_zero, distinct, normal, random_generator

functional = torch.nn.functional


class Repeated(list):
    """The values of a repeated parameter."""


def write_case(writer, name, parameters, function, inputs, weights=(), differentiated=None):
    """function(inputs, weights) gives the outputs. `differentiated`: the inputs with a gradient; None: all.

    Weights may have fewer than four axes in the formula; in the file they have four."""
    layer = pathlib.Path(writer.file.name).stem
    tensors = [torch.tensor(array, requires_grad=True) for array in inputs]
    leaves = [torch.tensor(array, requires_grad=True) for array in weights]
    outputs = function(tensors, leaves)
    outputs = [output.reshape(*output.shape, *[1] * (4 - output.ndim)) for output in outputs]
    indices = range(len(inputs)) if differentiated is None else differentiated
    writer.begin(name, {})
    for key, value in parameters.items():
        for one in value if isinstance(value, Repeated) else [value]:
            text = str(one).lower() if isinstance(one, bool) else f"{one:.9g}" if isinstance(one, float) else one
            writer.file.write(f"param {key} {text}\n")
    for index, array in enumerate(inputs):
        writer.tensor(f"input{index}", array, exact=True)
    for index, array in enumerate(weights):
        writer.tensor(f"weight{index}", array, exact=True)
    for index, output in enumerate(outputs):
        writer.tensor(f"output{index}", output, exact=False)
    if len(indices) + len(weights) > 0:
        gradients = [normal(random_generator(f"{layer}/{name}/output_gradient{index}"), tuple(output.shape))
                     for index, output in enumerate(outputs)]
        sum((output * torch.tensor(gradient)).sum() for output, gradient in zip(outputs, gradients)).backward()
        for index, gradient in enumerate(gradients):
            writer.tensor(f"output_gradient{index}", gradient, exact=True)
        for index in indices:
            writer.tensor(f"input_gradient{index}", tensors[index].grad, exact=False)
        for index, leaf in enumerate(leaves):
            writer.tensor(f"weight_gradient{index}", leaf.grad, exact=False)
    writer.end()


def inputs_of(layer, name, *shapes):
    rng = random_generator(f"{layer}/{name}")
    return [normal(rng, shape) for shape in shapes]


def concat(writer):
    # name, shapes of the inputs, axis
    cases = [
        ("channels_blocked_by_16", [(2, 16, 3, 2), (2, 32, 3, 2)], 1),
        ("channels_blocked_by_8", [(1, 8, 2, 3), (1, 16, 2, 3), (1, 8, 2, 3)], 1),
        ("odd_channels", [(3, 3, 3, 5), (3, 1, 3, 5), (3, 7, 3, 5)], 1),
        ("one_pixel", [(3, 5, 1, 1), (3, 2, 1, 1)], 1),
        ("one_input", [(2, 3, 4, 5)], 1),
        ("height", [(2, 16, 1, 3), (2, 16, 4, 3)], 2),
        ("height_of_one_pixel", [(2, 8, 1, 1), (2, 8, 1, 1)], 2),
        ("width", [(2, 5, 3, 2), (2, 5, 3, 3)], 3),
    ]
    for name, shapes, axis in cases:
        write_case(writer, name, {"concat_param.axis": axis}, lambda x, _: [torch.cat(x, axis)],
                   inputs_of("concat", name, *shapes))
    write_case(writer, "old_name", {"concat_param.concat_dim": 2}, lambda x, _: [torch.cat(x, 2)],
               inputs_of("concat", "old_name", (1, 3, 2, 2), (1, 3, 1, 2)))


def slice_(writer):
    # name, shape, axis, slice_point, number of outputs
    cases = [
        ("channels_in_equal_parts", (2, 32, 2, 3), 1, [], 2),
        ("channels_blocked_by_16", (2, 48, 3, 2), 1, [16], 2),
        ("odd_channels", (3, 9, 3, 5), 1, [1, 6], 3),
        ("pair_of_one_channel_images", (3, 2, 5, 4), 1, [1], 2),
        ("one_pixel", (3, 7, 1, 1), 1, [3], 2),
        ("height_to_one_pixel", (2, 8, 3, 1), 2, [1, 2], 3),
        ("width", (2, 5, 3, 7), 3, [2], 2),
        ("one_output", (2, 3, 4, 2), 1, [], 1),
    ]
    for name, shape, axis, points, outputs in cases:
        places = points or [i * shape[axis] // outputs for i in range(1, outputs)]
        write_case(writer, name, {"slice_param.axis": axis, "slice_param.slice_point": Repeated(points)},
                   lambda x, _: list(torch.tensor_split(x[0], places, axis)), inputs_of("slice", name, shape))
    # name, shape, axis, the written fields, the indices
    for name, shape, axis, fields, indices in [
        ("every_second_channel", (2, 16, 2, 3), 1, {"step": 2}, range(0, 16, 2)),
        ("channels_backwards", (2, 3, 4, 2), 1, {"step": -1}, range(2, -1, -1)),
        ("rows", (2, 8, 7, 3), 2, {"start": 1, "step": 3, "count": 2}, (1, 4)),
        ("columns_backwards", (1, 5, 3, 7), 3, {"start": 5, "step": -2}, (5, 3, 1)),
        ("one_column", (2, 16, 3, 5), 3, {"start": 2, "count": 1}, (2,)),
        ("rest_of_the_rows", (3, 4, 5, 2), 2, {"start": 3}, (3, 4)),
    ]:
        write_case(writer, name, {"slice_param.axis": axis, **{f"slice_param.{key}": value for key, value in fields.items()}},
                   lambda x, _: [x[0].index_select(axis, torch.tensor(list(indices)))], inputs_of("slice", name, shape))


def tile(writer):
    for name, shape, axis, tiles in [
        ("channels_16", (2, 16, 2, 3), 1, 3), ("odd_channels", (3, 5, 3, 2), 1, 2), ("one_pixel", (3, 4, 1, 1), 1, 4),
        ("height", (2, 8, 2, 3), 2, 3), ("width_of_one_pixel", (2, 16, 1, 1), 3, 2), ("one_tile", (1, 3, 2, 2), 1, 1),
    ]:
        repeats = [tiles if i == axis else 1 for i in range(4)]
        write_case(writer, name, {"tile_param.axis": axis, "tile_param.tiles": tiles},
                   lambda x, _: [x[0].repeat(repeats)], inputs_of("tile", name, shape))


def permute(writer):
    # name, shape of the input, extents of a row (none: its own), order, shape of the output
    for name, shape, dims, order, result in [
        ("channels_last", (2, 16, 3, 5), [], [0, 2, 3, 1], (2, 3, 5, 16)),
        ("channels_in_the_middle", (2, 5, 3, 4), [], [0, 2, 1, 3], (2, 3, 5, 4)),
        ("width_first", (1, 17, 1, 18), [], [0, 3, 1, 2], (1, 18, 17, 1)),
        ("as_it_is", (2, 3, 2, 2), [], [0, 1, 2, 3], (2, 3, 2, 2)),
        ("shuffled_channels", (2, 12, 2, 3), [3, 4, 6], [0, 2, 1, 3], (2, 4, 3, 6)),
        ("windows", (2, 4, 6, 5), [2, 2, 3, 2, 5], [0, 1, 3, 2, 4, 5], (2, 2, 3, 20)),
    ]:
        parameters = {"permute_param.order": Repeated(order)}
        if dims:
            parameters["permute_param.dim"] = Repeated(dims)
        rows = [shape[0], *(dims or shape[1:])]
        write_case(writer, name, parameters,
                   lambda x, _: [x[0].reshape(rows).permute(order).reshape(result)],
                   inputs_of("permute", name, shape))


def pad(writer):
    # name, shape, top, bottom, left, right, mode
    for name, shape, sides, mode in [
        ("zeros_after", (2, 16, 3, 4), (0, 1, 0, 1), "constant"), ("zeros", (1, 3, 2, 3), (2, 1, 0, 3), "constant"),
        ("a_value", (2, 8, 2, 2), (1, 0, 1, 1), "constant"), ("mirrored", (2, 5, 4, 3), (3, 1, 2, 2), "reflect"),
        ("mirrored_blocks", (1, 16, 3, 3), (1, 2, 1, 0), "reflect"), ("edge", (2, 3, 2, 3), (2, 1, 0, 2), "edge"),
        ("edge_of_one_pixel", (1, 8, 1, 1), (1, 1, 2, 0), "edge"),
    ]:
        value = 0.5 if name == "a_value" else 0
        parameters = dict(zip(["pad_param.top", "pad_param.bottom", "pad_param.left", "pad_param.right"], sides))
        if mode != "constant":
            parameters["pad_param.mode"] = mode.upper()
        if value:
            parameters["pad_param.value"] = value
        top, bottom, left, right = sides
        options = {"value": value} if mode == "constant" else {}
        write_case(writer, name, parameters,
                   lambda x, _: [functional.pad(x[0], (left, right, top, bottom),
                                                {"edge": "replicate"}.get(mode, mode), **options)],
                   inputs_of("pad", name, shape))


def upsample(writer):
    for name, shape, scales, mode, aligns in [
        ("nearest", (2, 16, 2, 3), (2, 2), "nearest", False),
        ("nearest_odd", (1, 3, 3, 2), (1.5, 3), "nearest", False),
        ("bilinear", (2, 8, 3, 4), (2, 2), "bilinear", False),
        ("bilinear_less", (1, 5, 6, 4), (0.5, 1.5), "bilinear", False),
        ("nearest_fraction", (2, 3, 7, 5), (2.3, 1.7), "nearest", False),
        ("bilinear_fraction", (2, 8, 5, 3), (1.5, 1.7), "bilinear", False),
        ("bilinear_less_fraction", (1, 3, 7, 9), (0.45, 0.7), "bilinear", False),
        ("corners", (2, 3, 3, 2), (2, 3), "bilinear", True), ("one_pixel", (1, 8, 1, 1), (3, 2), "bilinear", False),
    ]:
        parameters = {"upsample_param.scale_h": float(scales[0]), "upsample_param.scale_w": float(scales[1])}
        if mode == "bilinear":
            parameters["upsample_param.mode"] = "BILINEAR"
        if aligns:
            parameters["upsample_param.align_corners"] = True
        options = {"align_corners": aligns} if mode == "bilinear" else {}
        write_case(writer, name, parameters,
                   lambda x, _: [functional.interpolate(x[0], scale_factor=scales, mode=mode, **options)],
                   inputs_of("upsample", name, shape))


def matmul(writer):
    for name, a, b, first, second in [
        ("plain", (2, 3, 4, 5), (2, 3, 5, 2), False, False), ("first", (2, 1, 5, 4), (2, 1, 5, 3), True, False),
        ("second", (1, 4, 3, 7), (1, 4, 2, 7), False, True), ("both", (2, 2, 4, 3), (2, 2, 6, 4), True, True),
        ("a_row_and_a_column", (3, 2, 1, 8), (3, 2, 8, 1), False, False),
    ]:
        parameters = {key: True for key, value in [("matmul_param.transpose_a", first),
                                                   ("matmul_param.transpose_b", second)] if value}
        write_case(writer, name, parameters,
                   lambda x, _: [(x[0].mT if first else x[0]) @ (x[1].mT if second else x[1])],
                   inputs_of("matmul", name, a, b))


def softmax_axes(writer):
    for name, shape, axis in [("height", (2, 3, 5, 4), 2), ("width", (2, 16, 3, 7), 3), ("one_row", (1, 8, 1, 6), 3)]:
        write_case(writer, name, {"softmax_param.axis": axis}, lambda x, _: [torch.softmax(x[0], axis)],
                   inputs_of("softmax_axes", name, shape))


def average_pooling_inside(writer):
    # name, shape, kernel, stride, pad, rounding
    for name, shape, kernel, stride, margin, mode in [
        ("pad_1", (2, 16, 5, 6), 3, 1, 1, "FLOOR"), ("pad_1_stride_2", (1, 3, 6, 7), 3, 2, 1, "FLOOR"),
        ("pad_1_rounded_up", (1, 8, 5, 6), 2, 3, 1, "CEIL"), ("pad_2", (2, 5, 4, 4), 5, 2, 2, "FLOOR"),
    ]:
        parameters = {"pooling_param.pool": "AVE", "pooling_param.kernel_size": kernel,
                      "pooling_param.stride": stride, "pooling_param.pad": margin,
                      "pooling_param.round_mode": mode, "pooling_param.count_padding": False}
        write_case(writer, name, parameters,
                   lambda x, _: [functional.avg_pool2d(x[0], kernel, stride, margin, mode == "CEIL", False)],
                   inputs_of("average_pooling_inside", name, shape))


def crop(writer):
    # name, shape of the input and of the reference, axis, offsets
    for name, shape, like, axis, offsets in [
        ("height_and_width", (2, 16, 6, 7), (2, 3, 4, 5), 2, [1, 2]),
        ("one_offset", (1, 5, 6, 7), (1, 8, 4, 5), 2, [1]),
        ("no_offset", (3, 8, 5, 5), (3, 1, 3, 4), 2, []),
        ("width", (2, 8, 5, 5), (2, 1, 9, 3), 3, [2]),
        ("whole_blocks_of_channels", (2, 48, 3, 3), (2, 16, 2, 2), 1, [16, 1, 0]),
        ("odd_channels", (2, 7, 3, 3), (2, 4, 2, 2), 1, [2, 0, 1]),
        ("one_pixel_of_an_image", (2, 16, 3, 3), (2, 1, 1, 1), 2, [1, 2]),
    ]:
        begins = [0] * 4
        for i in range(axis, 4):
            begins[i] = offsets[i - axis] if len(offsets) > 1 else offsets[0] if offsets else 0
        ends = [begins[i] + (like[i] if i >= axis else shape[i]) for i in range(4)]
        box = tuple(slice(begin, end) for begin, end in zip(begins, ends))
        write_case(writer, name, {"crop_param.axis": axis, "crop_param.offset": Repeated(offsets)},
                   lambda x, _: [x[0][box]], inputs_of("crop", name, shape, like), differentiated=[0])


def flatten(writer):
    for name, shape, axis, end in [
        ("whole_row", (3, 4, 3, 5), 1, -1), ("pixels", (2, 16, 2, 3), 2, -1), ("channels_and_height", (2, 3, 4, 5), 1, 2),
        ("nothing", (2, 8, 2, 3), 3, 3), ("one_pixel", (3, 5, 1, 1), 1, -1),
    ]:
        write_case(writer, name, {"flatten_param.axis": axis, "flatten_param.end_axis": end},
                   lambda x, _: [x[0].flatten(axis, end)], inputs_of("flatten", name, shape))


def reshape(writer):
    # name, shape, dims, axis, num_axes, resulting shape
    for name, shape, dims, axis, axes, result in [
        ("kept_and_left_over", (2, 4, 3, 6), [0, 0, -1], 0, -1, (2, 4, 18, 1)),
        ("pixels_of_blocks", (2, 16, 2, 3), [0, 0, 3, 2], 0, -1, (2, 16, 3, 2)),
        ("row_to_image", (3, 12, 1, 1), [0, 2, 3, 2], 0, -1, (3, 2, 3, 2)),
        ("image_to_row", (3, 2, 3, 2), [0, -1], 0, -1, (3, 12, 1, 1)),
        ("batch_left_over", (3, 2, 3, 2), [-1, 12], 0, -1, (3, 12, 1, 1)),
        ("channels_only", (2, 6, 5, 1), [3, 2], 1, 1, (2, 3, 2, 5)),
        ("an_axis_put_in", (2, 6, 5, 1), [1], 1, 0, (2, 1, 6, 5)),
        ("from_axis_2", (2, 3, 4, 6), [-1, 2], 2, 2, (2, 3, 12, 2)),
    ]:
        write_case(writer, name, {"reshape_param.dim": Repeated(dims), "reshape_param.axis": axis,
                                  "reshape_param.num_axes": axes},
                   lambda x, _: [x[0].reshape(result)], inputs_of("reshape", name, shape))


def reduction(writer):
    operations = {"SUM": lambda x: x, "ASUM": torch.abs, "SUMSQ": torch.square, "MEAN": lambda x: x}
    for name, shape, axis, operation, coeff in [
        ("sum_of_rows", (3, 16, 3, 5), 1, "SUM", 1.0), ("asum_of_odd_rows", (2, 5, 3, 7), 1, "ASUM", 0.5),
        ("sumsq_of_channels", (2, 16, 3, 5), 2, "SUMSQ", 1.0), ("mean_of_channels", (2, 24, 4, 3), 2, "MEAN", -2.0),
        ("mean_of_odd_channels", (3, 7, 5, 3), 2, "MEAN", 1.0), ("asum_of_lines", (2, 8, 3, 5), 3, "ASUM", 1.0),
        ("sumsq_of_one_pixel", (3, 20, 1, 1), 1, "SUMSQ", 2.0), ("mean_of_a_long_row", (1, 3, 31, 21), 1, "MEAN", 1.0),
    ]:
        axes = tuple(range(axis, 4))
        count = math.prod(shape[axis:]) if operation == "MEAN" else 1
        inputs = [away_from_zero(random_generator(f"reduction/{name}"), shape)]
        write_case(writer, name, {"reduction_param.operation": operation, "reduction_param.axis": axis,
                                  "reduction_param.coeff": coeff},
                   lambda x, _: [coeff * operations[operation](x[0]).sum(axes, keepdim=True) / count], inputs)


def argmax(writer):
    # name, shape, axis or None, top_k, out_max_val
    for name, shape, axis, top_k, values in [
        ("row", (3, 5, 3, 2), None, 1, False), ("row_top_4", (2, 3, 4, 3), None, 4, False),
        ("row_with_values", (3, 10, 1, 1), None, 3, True), ("channels", (2, 7, 3, 2), 1, 2, False),
        ("values_of_channels", (2, 8, 3, 2), 1, 3, True), ("height", (2, 3, 5, 4), 2, 1, False),
        ("width_as_many", (1, 2, 3, 4), 3, 4, True),
    ]:
        inputs = [distinct(random_generator(f"argmax/{name}"), shape, -3.0, 3.0)]
        parameters = {"argmax_param.top_k": top_k, "argmax_param.out_max_val": values}
        if axis is not None:
            parameters["argmax_param.axis"] = axis

        def function(x, _):
            if axis is not None:
                best = x[0].topk(top_k, axis)
                return [best.values if values else best.indices.double()]
            best = x[0].flatten(1).topk(top_k, 1)
            parts = [best.indices.double()] + ([best.values] if values else [])
            return [torch.stack(parts, 1)]

        write_case(writer, name, parameters, function, inputs, differentiated=[])


def mvn(writer):
    # name, shape, normalize_variance, across_channels, eps, offset of the input
    for name, shape, variance, across, eps, offset in [
        ("channels_16", (2, 16, 3, 5), True, False, 1e-9, 0.0), ("odd_channels", (3, 5, 4, 3), True, False, 1e-9, 0.0),
        ("across_channels", (2, 24, 3, 2), True, True, 1e-9, 0.0), ("mean_only", (2, 8, 3, 5), False, False, 1e-9, 3.0),
        ("mean_only_across", (2, 3, 5, 7), False, True, 1e-9, 0.0), ("large_eps", (2, 16, 5, 3), True, False, 0.5, 0.0),
        ("far_from_zero", (2, 9, 7, 5), True, False, 1e-9, 20.0), ("flat_across", (3, 13, 1, 1), True, True, 1e-9, 0.0),
    ]:
        axes = (1, 2, 3) if across else (2, 3)

        def function(x, _):
            centred = x[0] - x[0].mean(axes, keepdim=True)
            if not variance:
                return [centred]
            return [centred / (centred.square().mean(axes, keepdim=True).sqrt() + eps)]

        inputs = [normal(random_generator(f"mvn/{name}"), shape, 1.0, offset)]
        write_case(writer, name, {"mvn_param.normalize_variance": variance, "mvn_param.across_channels": across,
                                  "mvn_param.eps": eps}, function, inputs)


def layer_norm(writer):
    for name, shape, eps, affine in [
        ("channels_16", (2, 16, 3, 5), 1e-5, True), ("channels_24", (2, 24, 2, 3), 1e-6, True),
        ("odd_channels", (3, 7, 3, 4), 1e-5, True), ("flat", (5, 37, 1, 1), 1e-5, True),
        ("channels_48", (1, 48, 5, 3), 1e-5, True), ("without_weights", (2, 32, 3, 2), 0.1, False),
    ]:
        channels = shape[1]
        inputs = inputs_of("layer_norm", name, shape)
        rng = random_generator(f"layer_norm/{name}/weights")
        weights = [normal(rng, (channels, 1, 1, 1)), normal(rng, (channels, 1, 1, 1))] if affine else []

        def function(x, w):
            last = x[0].movedim(1, 3)
            scale, shift = (one.flatten() for one in w) if affine else (None, None)
            return [functional.layer_norm(last, (channels,), scale, shift, eps).movedim(3, 1)]

        write_case(writer, name, {"layer_norm_param.eps": eps, "layer_norm_param.affine": affine}, function, inputs,
                   weights)


def lrn_within_channel(writer):
    for name, shape, size, alpha, beta, scale in [
        ("cifar10_full", (2, 16, 5, 7), 3, 5e-5, 0.75, 30.0), ("size_3_odd_channels", (3, 5, 6, 4), 3, 1.0, 0.75, 1.0),
        ("size_5_channels_8", (1, 8, 7, 5), 5, 2.0, 0.75, 2.0), ("other_exponent", (2, 3, 5, 5), 3, 1.0, 0.5, 1.0),
        ("window_larger_than_image", (2, 16, 2, 3), 7, 3.0, 0.75, 1.0), ("one_pixel", (3, 4, 1, 1), 3, 9.0, 0.75, 1.0),
    ]:
        def function(x, _):
            squares = functional.avg_pool2d(x[0].square(), size, 1, size // 2, count_include_pad=True)
            return [x[0] * (1 + alpha * squares) ** -beta]

        inputs = [normal(random_generator(f"lrn_within_channel/{name}"), shape, scale)]
        write_case(writer, name, {"lrn_param.norm_region": "WITHIN_CHANNEL", "lrn_param.local_size": size,
                                  "lrn_param.alpha": alpha, "lrn_param.beta": beta}, function, inputs)


def embed(writer):
    # name, indices, input_dim, num_output, bias_term
    for name, indices, count, outputs, bias in [
        ("one_a_row", [[3], [0], [3], [5]], 6, 7, True), ("sequence", [[1, 2, 1], [0, 3, 1]], 4, 5, True),
        ("no_bias", [[2], [2], [2]], 3, 16, False),
    ]:
        rng = random_generator(f"embed/{name}")
        index = numpy.array(indices)
        weights = [normal(rng, (count, outputs, 1, 1))] + ([normal(rng, (outputs, 1, 1, 1))] if bias else [])

        def function(_, w):
            vectors = w[0].reshape(count, outputs)[torch.tensor(index)]
            if bias:
                vectors = vectors + w[1].flatten()
            return [vectors[:, 0] if index.shape[1] == 1 else vectors]

        write_case(writer, name, {"embed_param.num_output": outputs, "embed_param.input_dim": count,
                                  "embed_param.bias_term": bias}, function,
                   [index.astype(numpy.float64)[:, :, None, None]], weights, differentiated=[])


def window_parameters(outputs, kernel, stride, pad, dilation, group, bias):
    return {"convolution_param.num_output": outputs, "convolution_param.kernel_size": kernel,
            "convolution_param.stride": stride, "convolution_param.pad": pad, "convolution_param.dilation": dilation,
            "convolution_param.group": group, "convolution_param.bias_term": bias}


def deconvolution(writer):
    # name, input shape, outputs, kernel, stride, pad, dilation, group, bias_term
    for name, shape, outputs, kernel, stride, pad, dilation, group, bias in [
        ("stride_2_blocked", (2, 16, 3, 4), 16, 4, 2, 1, 1, 1, True), ("odd_channels", (1, 5, 4, 3), 3, 3, 2, 0, 1, 1, True),
        ("stride_1", (2, 8, 4, 5), 8, 3, 1, 1, 1, 1, True), ("more_outputs", (1, 3, 3, 3), 16, 3, 2, 1, 1, 1, False),
        ("dilated", (1, 6, 4, 5), 4, 3, 2, 1, 2, 1, True), ("grouped", (2, 6, 3, 4), 4, 4, 2, 1, 1, 2, True),
        ("depthwise_upsampling", (1, 16, 4, 3), 16, 4, 2, 1, 1, 16, False),
        ("depthwise_odd", (2, 5, 3, 4), 5, 4, 2, 1, 1, 5, True), ("from_one_pixel", (3, 7, 1, 1), 4, 3, 1, 0, 1, 1, True),
    ]:
        inputs = inputs_of("deconvolution", name, shape)
        rng = random_generator(f"deconvolution/{name}/weights")
        weights = [normal(rng, (shape[1], outputs // group, kernel, kernel), 0.3)]
        if bias:
            weights.append(normal(rng, (outputs, 1, 1, 1)))
        write_case(writer, name, window_parameters(outputs, kernel, stride, pad, dilation, group, bias),
                   lambda x, w: [functional.conv_transpose2d(x[0], w[0], w[1].flatten() if bias else None, stride, pad,
                                                             0, group, dilation)], inputs, weights)


def convolution_dilated_depthwise(writer):
    for name, shape, outputs, kernel, stride, pad, dilation, group, bias in [
        ("dilation_2", (2, 16, 7, 6), 16, 3, 1, 2, 2, 1, True), ("dilation_3_stride_2", (1, 5, 9, 11), 7, 3, 2, 2, 3, 1, True),
        ("dilated_groups", (2, 6, 7, 7), 4, 3, 1, 2, 2, 2, False), ("depthwise_16", (2, 16, 6, 5), 16, 3, 1, 1, 1, 16, True),
        ("depthwise_32_stride_2", (1, 32, 7, 8), 32, 3, 2, 1, 1, 32, False),
        ("depthwise_odd", (3, 7, 5, 6), 7, 3, 1, 1, 1, 7, True), ("depthwise_dilated", (1, 16, 8, 7), 16, 3, 1, 2, 2, 16, True),
        ("depthwise_two_outputs_a_channel", (2, 8, 5, 5), 16, 3, 1, 1, 1, 8, True),
        ("depthwise_7x7", (1, 16, 9, 8), 16, 7, 1, 3, 1, 16, True),
    ]:
        inputs = inputs_of("convolution_dilated_depthwise", name, shape)
        rng = random_generator(f"convolution_dilated_depthwise/{name}/weights")
        weights = [normal(rng, (outputs, shape[1] // group, kernel, kernel), 0.3)]
        if bias:
            weights.append(normal(rng, (outputs, 1, 1, 1)))
        write_case(writer, name, window_parameters(outputs, kernel, stride, pad, dilation, group, bias),
                   lambda x, w: [functional.conv2d(x[0], w[0], w[1].flatten() if bias else None, stride, pad, dilation,
                                                   group)], inputs, weights)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent
    for layer in (concat, slice_, tile, permute, pad, upsample, matmul, softmax_axes, average_pooling_inside, crop, flatten,
                  reshape, reduction, argmax, mvn, layer_norm, lrn_within_channel, embed, deconvolution,
                  convolution_dilated_depthwise):
        writer = Writer(folder / f"{layer.__name__.rstrip('_')}.txt")
        layer(writer)
        writer.file.close()


if __name__ == "__main__":
    main()
