#!/usr/bin/env python3
"""Compares whole nets with PyTorch: gradients against float64, and the loss curve of ten SGD steps.

    python compare_nets.py TANDEM_PROGRAM FOLDER [--batches N] [--smooth] [--gradients] [--size 64] [NET...]

NET is a model's name, a prototxt file, or the name of an architecture of torchvision or timm, as torchvision/resnet18
or timm/ghostnet_100: that gets random weights, is exported as ONNX for training, and is its own PyTorch net.

The same weights, images and labels go to Tandem (one device) and to a PyTorch net made from the same
prototxt by this script, once in float64 and once in float32. Dropout is taken out. Tandem's gradients are
read from the solver state after one step with rate 1 and no decay, which is then the gradient itself.
The error of a weight tensor is |g - g64| / |g64| (Euclidean norms), and its median over N batches (3). Where
an activation lies within rounding of a kink (ReLU, the maximum of a pool), float32 falls on one side or the
other by chance, and all tensors below get an error a thousand times larger: in a net of a million
activations that happens to one program and not to the other. With --smooth the kinks are taken out (BNLL for
ReLU, means for maxima), so that what is left is the arithmetic. Printed is, for each net, the largest and the median
error over the tensors, for Tandem and for PyTorch in float32, the largest ratio of the two and whose it is,
and how many ratios are above 2; then the largest relative difference of the losses over ten steps from
PyTorch's in float64: Tandem's, and that of PyTorch in float32. Weights whose gradient is zero by construction, as a
bias before a BatchNorm, are left out. FOLDER is made, and keeps the runs. Needs numpy and torch; exported_nets.py says
what architectures need.
"""

import argparse
import csv
import pathlib
import re
import subprocess
import zlib

import numpy
import torch

import exported_nets
from torch_nets import Reference, get, get_all, in_training, numbers, parse_prototxt, read_safetensors

CLASSES = 8
BATCH = 8


# ---- files ---------------------------------------------------------------------------------------------

def write_image(path, pixels):
    """A PPM file; `pixels` is height x width x (R, G, B)."""
    height, width, _ = pixels.shape
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"P6\n%d %d\n255\n" % (width, height) + pixels.tobytes())


def without_dropout(layers):
    """Takes the in-place Dropout layers out of the text form's layer list."""
    return [layer for layer in layers if get(layer, "type") != "Dropout"]


def without_kinks(pairs):
    """The same layer, or the same pool, as a smooth function."""
    smooth = {("type", "ReLU"): "BNLL", ("pool", "MAX"): "AVE"}
    return [(k, without_kinks(v) if isinstance(v, list) else smooth.get((k, v), v)) for k, v in pairs]


def write_prototxt(pairs, indent=0):
    lines = []
    for key, value in pairs:
        if isinstance(value, list):
            lines += [" " * indent + key + " {"] + write_prototxt(value, indent + 2) + [" " * indent + "}"]
        else:
            plain = re.fullmatch(r"-?[0-9.eE+-]+|true|false|[A-Z_]+", value)
            lines.append(" " * indent + f"{key}: " + (value if plain else f'"{value}"'))
    return lines


# ---- one net -------------------------------------------------------------------------------------------

def crop_of(layers):
    for layer in layers:
        if get(layer, "type") == "Data":
            return 3, int(get(get(layer, "transform_param"), "crop_size"))
        if get(layer, "type") == "Input":
            shape = numbers(get(get(layer, "input_param"), "shape"), "dim")
            return shape[1], shape[2]
    raise SystemExit("the net has no Data or Input layer")


def make_images(folder, size, rng):
    """BATCH pictures, one folder a class; returns them as B,G,R planes with their labels, in the folder's order."""
    planes, labels = [], []
    for index in range(BATCH):
        coarse = rng.integers(0, 256, (8, 8, 3))
        picture = numpy.kron(coarse, numpy.ones((size // 8 + 1, size // 8 + 1, 1)))[:size, :size]
        picture = (0.7 * picture + 0.3 * rng.integers(0, 256, (size, size, 3))).astype(numpy.uint8)
        label = index % CLASSES
        for split in ("train", "val"):
            write_image(folder / split / f"class{label}" / f"{index}.ppm", picture)
        planes.append(picture[:, :, ::-1].transpose(2, 0, 1))
        labels.append(label)
    return numpy.stack(planes).astype(numpy.float64), numpy.array(labels)


def tandem(program, *arguments):
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"tandem {' '.join(map(str, arguments))}\n{result.stdout}{result.stderr}")


def plain_net(net, work, smooth):
    """Writes a prototxt without dropout. Returns what Tandem gets, channels, size, and the scale of pixels."""
    source = pathlib.Path(net)
    if not source.exists():
        source = pathlib.Path(__file__).parents[2] / "examples" / "models" / (net + ".prototxt")
    pairs = parse_prototxt(source.read_text())
    layers = without_dropout(get_all(pairs, "layer"))
    if smooth:
        layers = [without_kinks(layer) for layer in layers]
    plain = [(k, v) for k, v in pairs if k != "layer"] + [("layer", plain_rates(layer)) for layer in layers]
    (work / "net.prototxt").write_text("\n".join(write_prototxt(plain)) + "\n")
    return ["--net", work / "net.prototxt", "--adapt-classes"], *crop_of(layers), 2.0 ** -6


def exported_net(net, work, smooth, size):
    """The same for an architecture, and the PyTorch module."""
    model = exported_nets.make(net, size, CLASSES)
    if smooth:
        exported_nets.smooth(model)
    exported_nets.export(model, size, str(work / "net.onnx"))
    return ["--net", work / "net.onnx", "--data-option", "color=rgb"], 3, size, 2.0 ** -8, model


def compare(program, net, folder, batch, options):
    """Errors of each tensor as pairs (Tandem's, PyTorch's), and the same for the losses."""
    rng = numpy.random.default_rng([zlib.crc32(net.encode()), batch])
    torch.manual_seed(batch)
    work = folder / f"{pathlib.Path(net).stem}-{batch}"
    work.mkdir(parents=True)
    model = None
    if exported_nets.is_name(net):
        given, channels, size, scale, model = exported_net(net, work, options.smooth, options.size)
    else:
        given, channels, size, scale = plain_net(net, work, options.smooth)
    pixels, labels = make_images(work / "images", size, rng)
    data = (pixels - 128) * scale
    fixed = ["--data", work / "images", *given, "--batch", BATCH, "--devices", "cpu:1", "--seed", batch + 1,
             "--data-option", "mirror=false", "--data-option", "mean=128,128,128", "--data-option", f"scale={scale}",
             "--data-option", f"resize={size}", "--display", 1, "--test-interval", 1000]

    # Initial weights, from a run that changes nothing.
    (work / "one.prototxt").write_text('base_lr: 1\nlr_policy: "fixed"\nmomentum: 0.9\nweight_decay: 0\n')
    (work / "ten.prototxt").write_text('base_lr: 0.001\nlr_policy: "fixed"\nmomentum: 0.9\nweight_decay: 0.0005\n')
    tandem(program, "train", *fixed, "--solver", work / "one.prototxt", "--steps", 1, "--lr", 0, "--out",
           work / "initial")
    initial = read_safetensors(work / "initial" / "last.safetensors")
    tandem(program, "train", *fixed, "--solver", work / "one.prototxt", "--steps", 1, "--out", work / "one")
    state = read_safetensors(work / "one" / "last.state.safetensors")
    # The run's own copy of the net has the classifiers for CLASSES classes, under the names they got.
    layers = get_all(parse_prototxt((work / "initial" / "net.prototxt").read_text()), "layer")
    training = [layer for layer in layers if in_training(layer)]
    where = exported_nets.places(model, initial) if model is not None else None

    def reference(dtype):
        if model is not None:
            return exported_nets.Module(model, dtype, initial["std.weight"])
        return Reference(training, initial, dtype)

    gradients = {}
    for dtype in (torch.float64, torch.float32):
        net_there = reference(dtype)
        net_there.loss(torch.tensor(data, dtype=dtype), torch.tensor(labels)).backward()
        gradients[dtype] = {k: w.grad.double() for k, w in net_there.weights.items() if w.grad is not None}
    exact = gradients[torch.float64]
    largest = max(gradient.norm().item() for gradient in exact.values())
    errors, absent = {}, []
    for key, gradient in exact.items():
        norm = gradient.norm().item()
        if norm < 1e-10 * largest:
            continue
        array, order = (key, None) if where is None else where.get(key, (None, None))
        if array is None:
            absent.append(key)
            continue
        shape = gradient.shape if order is None else [gradient.shape[axis] for axis in order]
        mine = torch.tensor(state[array + ".state0"]).double().reshape(shape)
        if order is not None:
            mine = mine.permute(*numpy.argsort(order).tolist()) if len(order) > 1 else mine
        theirs = gradients[torch.float32][key]
        errors[key] = ((mine - gradient).norm().item() / norm, (theirs - gradient).norm().item() / norm)
    if absent and batch == 0:
        print(f"{net}: not weights of the file: {', '.join(absent)}")
    if options.gradients:
        return errors, (numpy.nan, numpy.nan)
    tandem(program, "train", *fixed, "--solver", work / "ten.prototxt", "--steps", 10, "--out", work / "ten")
    with open(work / "ten" / "metrics.csv") as file:
        losses = [float(row["loss"]) for row in csv.DictReader(file) if row["split"] == "train"]
    exact_curve = ten_steps(reference(torch.float64), data, labels, torch.float64)
    curve = ten_steps(reference(torch.float32), data, labels, torch.float32)
    return errors, (largest_difference(losses, exact_curve), largest_difference(curve, exact_curve))


def largest_difference(losses, exact):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, exact, strict=True))


def plain_rates(layer):
    """The same rate and decay for every weight, as PyTorch's SGD has."""
    return [(k, v) for k, v in layer if k != "param"]


def ten_steps(reference, data, labels, dtype):
    trained = [w for w in reference.weights.values() if w.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.001, momentum=0.9, weight_decay=0.0005)
    curve = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = reference.loss(torch.tensor(data, dtype=dtype), torch.tensor(labels))
        loss.backward()
        optimizer.step()
        curve.append(loss.item())
    return curve


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("nets", nargs="*", default=["alexnet", "googlenet", "resnet18"])
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--smooth", action="store_true")
    parser.add_argument("--gradients", action="store_true", help="leave the ten steps out")
    parser.add_argument("--size", type=int, default=64, help="of the images of architectures")
    arguments = parser.parse_intermixed_args()
    print(f"PyTorch {torch.__version__}, {arguments.batches} batches of {BATCH}; relative errors against float64")
    print(f"{'net':<12} {'tensors':>7}  {'tandem max':>10} {'median':>8}  {'pytorch max':>11} {'median':>8}  "
          f"{'ratio':>5} {'above 2':>7}  {'of':<30} {'losses':>8} {'pytorch':>8}")
    for net in arguments.nets:
        results = [compare(arguments.program, net, arguments.folder, batch, arguments)
                   for batch in range(arguments.batches)]
        tensors = list(results[0][0])
        errors = numpy.array([[result[0][key] for key in tensors] for result in results])
        mine, theirs = numpy.median(errors, axis=0).T
        ratios = mine / numpy.maximum(theirs, 2.0 ** -24)
        losses, their_losses = numpy.max([result[1] for result in results], axis=0)
        print(f"{pathlib.Path(net).stem:<12} {len(tensors):>7}  {mine.max():>10.1e} {numpy.median(mine):>8.1e}  "
              f"{theirs.max():>11.1e} {numpy.median(theirs):>8.1e}  {ratios.max():>5.2f} {(ratios > 2).sum():>7}  "
              f"{tensors[int(ratios.argmax())]:<30} {losses:>8.1e} {their_losses:>8.1e}", flush=True)


if __name__ == "__main__":
    main()
