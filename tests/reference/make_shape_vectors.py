#!/usr/bin/env python3
"""Writes the reference vectors of layers that shape, cut or reduce tensors: one <layer>.txt per layer type.

As make_vectors.py, whose helpers it uses: float64, from inputs that float32 holds exactly.
"""

import math
import pathlib
import sys

import numpy
import torch

from make_vectors import Writer, distinct, normal, random_generator

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


def tile(writer):
    for name, shape, axis, tiles in [
        ("channels_16", (2, 16, 2, 3), 1, 3), ("odd_channels", (3, 5, 3, 2), 1, 2), ("one_pixel", (3, 4, 1, 1), 1, 4),
        ("height", (2, 8, 2, 3), 2, 3), ("width_of_one_pixel", (2, 16, 1, 1), 3, 2), ("one_tile", (1, 3, 2, 2), 1, 1),
    ]:
        repeats = [tiles if i == axis else 1 for i in range(4)]
        write_case(writer, name, {"tile_param.axis": axis, "tile_param.tiles": tiles},
                   lambda x, _: [x[0].repeat(repeats)], inputs_of("tile", name, shape))


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


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent
    for layer in (concat, slice_, tile, crop, flatten, reshape):
        writer = Writer(folder / f"{layer.__name__.rstrip('_')}.txt")
        layer(writer)
        writer.file.close()


if __name__ == "__main__":
    main()
