#!/usr/bin/env python3
"""Writes the reference vectors of layers that look at the whole batch: batch_norm.txt, and one file a loss.

As make_vectors.py: float64 with PyTorch's automatic differentiation, from inputs that float32 holds exactly.
"""

import pathlib
import sys

import numpy
import torch

from make_vectors import Writer, as_input, normal, random_generator


def batch_norm(writer):
    # name, input shape, scale and offset of the input, eps, moving_average_fraction, use_global_stats
    cases = [
        ("plain_odd", (3, 5, 5, 7), 1.0, 0.0, 1e-5, 0.999, False),
        ("channels_8", (2, 8, 3, 5), 2.0, 0.5, 1e-5, 0.9, False),
        ("channels_16", (3, 16, 9, 7), 0.5, -1.0, 1e-3, 0.999, False),
        ("channels_24", (2, 24, 3, 3), 1.0, 0.0, 1e-5, 0.999, False),
        ("channels_37", (2, 37, 2, 3), 1.0, 0.0, 1e-5, 0.999, False),
        ("more_pixels_than_a_run", (2, 3, 11, 13), 1.0, 3.0, 1e-5, 0.999, False),
        ("one_row", (1, 8, 5, 6), 1.0, 0.0, 1e-5, 0.999, False),
        ("flat", (6, 16, 1, 1), 1.0, 0.0, 1e-5, 0.999, False),
        ("flat_odd", (5, 13, 1, 1), 3.0, 1.0, 1e-5, 0.5, False),
        ("far_from_zero", (3, 8, 5, 7), 1.0, 1000.0, 1e-5, 0.999, False),
        ("very_far_from_zero", (3, 16, 5, 7), 1.0, 10000.0, 1e-5, 0.999, False),
        ("small_values", (3, 16, 4, 4), 1e-2, 0.0, 1e-5, 0.999, False),
        ("kept_statistics", (2, 16, 3, 5), 1.0, 0.3, 1e-5, 0.999, True),
        ("kept_statistics_odd", (2, 7, 3, 5), 1.0, 0.3, 1e-5, 0.999, True),
    ]
    for name, shape, scale, offset, eps, fraction, kept in cases:
        rng = random_generator("batch_norm/" + name)
        data = normal(rng, shape, scale, offset)
        channels = shape[1]
        states = [normal(rng, (channels, 1, 1, 1), 1.0, 2 * offset), normal(rng, (channels, 1, 1, 1), 0.1, 2.0),
                  numpy.array([2.5]).reshape(1, 1, 1, 1)]
        factor = states[2].item()
        x = torch.tensor(data, requires_grad=True)
        if kept:
            y = torch.nn.functional.batch_norm(x, torch.tensor(states[0].reshape(-1) / factor),
                                               torch.tensor(states[1].reshape(-1) / factor), eps=eps)
            after = states
        else:
            y = torch.nn.functional.batch_norm(x, None, None, training=True, eps=eps)
            mean = data.mean(axis=(0, 2, 3)).reshape(states[0].shape)
            variance = data.var(axis=(0, 2, 3), ddof=1).reshape(states[1].shape)
            after = [fraction * states[0] + mean, fraction * states[1] + variance, fraction * states[2] + 1]
        gradient = normal(rng, shape)
        y.backward(torch.tensor(gradient))
        parameters = {"batch_norm_param.eps": eps, "batch_norm_param.moving_average_fraction": fraction}
        if kept:
            parameters["batch_norm_param.use_global_stats"] = True
        writer.begin(name, parameters)
        writer.tensor("input0", data, exact=True)
        for index, state in enumerate(states):
            writer.tensor(f"weight{index}", state, exact=True)
        writer.tensor("output0", y, exact=False)
        writer.tensor("output_gradient0", gradient, exact=True)
        writer.tensor("input_gradient0", x.grad, exact=False)
        for index, state in enumerate(after):
            writer.tensor(f"state{index}", state, exact=False)
        writer.end()


def write_loss(writer, name, parameters, samples, inputs, learned, function, loss_weight=1.0):
    """function(*inputs) gives the loss; the inputs numbered in `learned` have gradients."""
    tensors = [torch.tensor(array, requires_grad=index in learned) for index, array in enumerate(inputs)]
    loss = function(*tensors)
    (loss_weight * loss).backward()
    writer.begin(name, {**parameters, "normaliser": samples})
    for index, array in enumerate(inputs):
        writer.tensor(f"input{index}", array, exact=True)
    writer.tensor("output0", loss.reshape(1, 1, 1, 1), exact=False)
    writer.tensor("output_gradient0", numpy.full((1, 1, 1, 1), loss_weight), exact=True)
    for index in learned:
        writer.tensor(f"input_gradient{index}", tensors[index].grad, exact=False)
    writer.end()


def labels_of(rng, shape, classes, ignored=None):
    labels = rng.integers(0, classes, shape).astype(numpy.float64)
    if ignored is not None:
        labels[rng.random(shape) < 0.3] = ignored
    return labels


def divisor(normalization, samples, places, counted):
    return max(1.0, {"FULL": samples * places, "VALID": counted, "BATCH_SIZE": samples, "NONE": 1}[normalization])


def softmax_with_loss_places(writer):
    # name, scores, axis, ignore_label, normalization, samples of the whole batch
    cases = [
        ("places", (2, 5, 3, 7), 1, None, "VALID", 2),
        ("many_places", (1, 3, 9, 11), 1, None, "VALID", 1),
        ("places_full", (2, 4, 3, 3), 1, 2, "FULL", 2),
        ("places_valid", (2, 4, 3, 3), 1, 2, "VALID", 2),
        ("places_ignore_255", (2, 4, 3, 5), 1, 255, "VALID", 2),
        ("places_batch_size", (3, 4, 3, 3), 1, 1, "BATCH_SIZE", 3),
        ("places_none", (3, 4, 3, 3), 1, 1, "NONE", 3),
        ("places_part_of_a_batch_full", (2, 4, 3, 3), 1, None, "FULL", 5),
        ("rows_valid", (6, 8, 1, 1), 1, 3, "VALID", 6),
        ("rows_none", (4, 8, 1, 1), 1, None, "NONE", 4),
        ("axis_2", (2, 3, 5, 4), 2, None, "VALID", 2),
        ("axis_3", (2, 3, 2, 6), 3, 0, "VALID", 2),
    ]
    for name, shape, axis, ignored, normalization, samples in cases:
        rng = random_generator("softmax_with_loss_places/" + name)
        scores = normal(rng, shape, 2.0)
        label_shape = tuple(1 if i == axis else extent for i, extent in enumerate(shape))
        labels = labels_of(rng, label_shape, shape[axis], ignored)
        counts = torch.ones(label_shape, dtype=torch.bool) if ignored is None else torch.tensor(labels != ignored)
        index = torch.where(counts, torch.tensor(labels), torch.zeros(label_shape, dtype=torch.float64)).long()
        places = labels.size // shape[0]
        valid = int(counts.sum()) if ignored is not None else samples * places

        def function(x, _):
            each = -torch.gather(torch.log_softmax(x, axis), axis, index)
            return (each * counts).sum() / divisor(normalization, samples, places, valid)

        parameters = {"loss_param.normalization": normalization, "softmax_param.axis": axis}
        if ignored is not None:
            parameters["loss_param.ignore_label"] = ignored
        write_loss(writer, name, parameters, samples, [scores, labels], [0], function)


def softmax_with_loss_targets(writer):
    # name, scores, axis, normalization, samples of the whole batch, whether each place's targets sum to 1
    cases = [
        ("rows", (5, 7, 1, 1), 1, "VALID", 5, True),
        ("weighted_rows", (5, 7, 1, 1), 1, "VALID", 5, False),
        ("part_of_a_batch", (3, 4, 1, 1), 1, "BATCH_SIZE", 8, True),
        ("places", (2, 5, 3, 7), 1, "VALID", 2, True),
        ("many_places", (1, 3, 9, 11), 1, "NONE", 1, False),
        ("axis_2", (2, 3, 5, 4), 2, "FULL", 2, False),
    ]
    for name, shape, axis, normalization, samples, share in cases:
        rng = random_generator("softmax_with_loss_targets/" + name)
        scores = normal(rng, shape, 2.0)
        targets = rng.random(shape) * (rng.random(shape) < 0.6)
        if share:
            targets[targets.sum(axis, keepdims=True).repeat(shape[axis], axis) == 0] = 1
            targets = targets / targets.sum(axis, keepdims=True)
        targets = targets.astype(numpy.float32).astype(numpy.float64)
        places = int(numpy.prod(shape)) // shape[axis] // shape[0]

        def function(x, _):
            loss = torch.nn.functional.cross_entropy(x.movedim(axis, 1), torch.tensor(targets).movedim(axis, 1),
                                                     reduction="sum")
            return loss / divisor(normalization, samples, places, samples * places)

        parameters = {"loss_param.normalization": normalization, "softmax_param.axis": axis}
        write_loss(writer, name, parameters, samples, [scores, targets], [0], function)


def sigmoid_cross_entropy_loss(writer):
    # name, shape, target (probabilities or labels), ignore_label, normalization or None, scale of the scores
    cases = [
        ("default", (3, 7, 1, 1), "probabilities", None, None, 2.0),
        ("images", (2, 8, 3, 5), "probabilities", None, None, 2.0),
        ("full", (3, 5, 1, 1), "labels", -1, "FULL", 2.0),
        ("valid", (3, 16, 1, 3), "labels", -1, "VALID", 2.0),
        ("batch_size", (4, 5, 1, 1), "labels", -1, "BATCH_SIZE", 2.0),
        ("none", (4, 5, 1, 1), "labels", None, "NONE", 2.0),
        ("large_scores", (2, 9, 1, 1), "labels", None, None, 60.0),
    ]
    for name, shape, kind, ignored, normalization, scale in cases:
        rng = random_generator("sigmoid_cross_entropy_loss/" + name)
        scores = normal(rng, shape, scale)
        targets = labels_of(rng, shape, 2, ignored) if kind == "labels" else as_input(rng.random(shape))
        counts = torch.ones(shape, dtype=torch.float64)
        if ignored is not None:
            counts = torch.tensor((targets != ignored).astype(numpy.float64))
        places = scores.size // shape[0]
        valid = counts.sum().item()

        def function(x, t):
            each = torch.nn.functional.binary_cross_entropy_with_logits(x, t, reduction="none")
            return (each * counts).sum() / divisor(normalization or "BATCH_SIZE", shape[0], places, valid)

        parameters = {} if normalization is None else {"loss_param.normalization": normalization}
        if ignored is not None:
            parameters["loss_param.ignore_label"] = ignored
        write_loss(writer, name, parameters, shape[0], [scores, targets], [0], function)


def euclidean_loss(writer):
    for name, shape, samples in (("flat", (3, 7, 1, 1), 3), ("images", (2, 8, 3, 5), 2), ("one", (1, 1, 1, 1), 1),
                                 ("channels_16", (3, 16, 2, 3), 3), ("part_of_a_larger_batch", (2, 5, 3, 3), 7)):
        rng = random_generator("euclidean_loss/" + name)
        inputs = [normal(rng, shape), normal(rng, shape)]
        write_loss(writer, name, {}, samples, inputs, [0, 1], lambda a, b: ((a - b) ** 2).sum() / (2 * samples), 0.5)


def huber_loss(writer):
    for delta in (1.0, 0.25):
        for label, shape, samples in (("flat", (3, 7, 1, 1), 3), ("images", (2, 8, 3, 5), 2), ("one", (1, 1, 1, 1), 1),
                                      ("part_of_a_larger_batch", (2, 5, 3, 3), 7)):
            rng = random_generator(f"huber_loss/{delta}/{label}")
            inputs = [normal(rng, shape), normal(rng, shape)]

            def function(a, b):
                return torch.nn.functional.huber_loss(a, b, reduction="sum", delta=delta) / samples

            write_loss(writer, f"delta_{delta}_{label}", {"huber_loss_param.delta": delta}, samples, inputs, [0],
                       function, 0.5)


def hinge_loss(writer):
    for norm in ("L1", "L2"):
        for label, shape, samples in (("flat", (4, 7, 1, 1), 4), ("places", (2, 5, 3, 2), 2), ("part", (3, 4, 1, 1), 8)):
            rng = random_generator(f"hinge_loss/{norm}/{label}")
            # Away from the kinks at 1 and -1.
            scores = normal(rng, shape, 1.5)
            for kink in (-1, 1):
                near = numpy.abs(scores - kink) < 0.02
                scores[near] = as_input(scores[near] + 0.05)
            labels = labels_of(rng, (shape[0], 1, *shape[2:]), shape[1])
            signs = torch.ones(shape, dtype=torch.float64)
            signs.scatter_(1, torch.tensor(labels).long(), -torch.ones(labels.shape, dtype=torch.float64))

            def function(x, _):
                over = torch.clamp(1 + signs * x, min=0)
                return (over if norm == "L1" else over * over).sum() / samples

            write_loss(writer, f"{norm.lower()}_{label}", {"hinge_loss_param.norm": norm}, samples, [scores, labels],
                       [0], function, 2.0)


def contrastive_loss(writer):
    for legacy in (False, True):
        for label, shape, margin, samples in (("flat", (6, 5, 1, 1), 3.0, 6), ("images", (4, 8, 2, 3), 10.0, 4),
                                              ("part", (5, 2, 1, 1), 1.0, 9)):
            rng = random_generator(f"contrastive_loss/{legacy}/{label}")
            inputs = [normal(rng, shape), normal(rng, shape), labels_of(rng, (shape[0], 1, 1, 1), 2)]

            def function(a, b, alike):
                squared = ((a - b) ** 2).flatten(1).sum(1)
                missing = torch.clamp(margin - (squared if legacy else torch.sqrt(squared)), min=0)
                apart = missing if legacy else missing * missing
                return torch.where(alike.reshape(-1) != 0, squared, apart).sum() / (2 * samples)

            write_loss(writer, f"{'legacy_' if legacy else ''}{label}",
                       {"contrastive_loss_param.margin": margin, "contrastive_loss_param.legacy_version": legacy},
                       samples, inputs, [0, 1], function)


def multinomial_logistic_loss(writer):
    for name, shape, samples in (("flat", (4, 7, 1, 1), 4), ("places", (2, 5, 3, 2), 2), ("part", (3, 4, 1, 1), 8)):
        rng = random_generator("multinomial_logistic_loss/" + name)
        scores = rng.standard_normal(shape)
        probabilities = as_input(numpy.exp(scores) / numpy.exp(scores).sum(1, keepdims=True))
        labels = labels_of(rng, (shape[0], 1, *shape[2:]), shape[1])

        def function(p, _):
            return -torch.log(torch.gather(p, 1, torch.tensor(labels).long())).sum() / samples

        write_loss(writer, name, {}, samples, [probabilities, labels], [0], function)


def sum_loss(writer):
    for normalization in ("NONE", "BATCH_SIZE"):
        for label, shape, samples in (("flat", (4, 7, 1, 1), 4), ("images", (2, 16, 3, 5), 2), ("one", (1, 1, 1, 1), 1),
                                      ("part_of_a_larger_batch", (3, 5, 3, 3), 8)):
            x = normal(random_generator(f"sum_loss/{normalization}/{label}"), shape)
            divisor = samples if normalization == "BATCH_SIZE" else 1
            write_loss(writer, f"{normalization.lower()}_{label}", {"loss_param.normalization": normalization}, samples,
                       [x], [0], lambda a: a.sum() / divisor, 0.5)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent
    for layer in (batch_norm, softmax_with_loss_places, softmax_with_loss_targets, sigmoid_cross_entropy_loss,
                  euclidean_loss, huber_loss, hinge_loss, contrastive_loss, multinomial_logistic_loss, sum_loss):
        writer = Writer(folder / f"{layer.__name__}.txt")
        layer(writer)
        writer.file.close()


if __name__ == "__main__":
    main()
