#!/usr/bin/env python3
"""Trains a small net on several labels and on numbers, with Tandem and with PyTorch, and compares what they reach.

    targets.py --tandem PROGRAM [--images 1500] [--epochs 15] [--seeds 3] [--batch 50] [--threads 1]

Run it with a Python that has torch and numpy. The pictures are made up: noise with up to four shapes on it. Labels: which
shapes there are. Numbers: the side of the square and where it is. Both programs read the same files, begin with the same
weights (PyTorch's, of each seed), and train with SGD and momentum; the order of the images is each program's own. With
--batch 0 each step reads all of them, so that the order does not matter and only rounding differs. Prints a table of the validation losses, computed alike, and of the metrics.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import tempfile

import numpy
import torch
from torch import nn

SIDE, RATE, MOMENTUM = 32, 0.02, 0.9
LABELS = ["bar", "cross", "ring", "square"]
VALUES = ["side", "across", "down"]


def draw(rng):
    """A picture of bytes (height, width, 3), its labels, and the numbers of its square."""
    picture = rng.integers(0, 90, (SIDE, SIDE, 3))
    y, x = numpy.mgrid[:SIDE, :SIDE]
    labels = (rng.random(4) < 0.4).astype(int)
    side, across, down = int(rng.integers(5, 13)), int(rng.integers(8, 24)), int(rng.integers(8, 24))
    middle = rng.integers(8, 24, 6)
    masks = [abs(y - middle[0]) < 2,
             (abs(x - middle[1]) < 2) & (abs(y - middle[2]) < 7) | (abs(y - middle[2]) < 2) & (abs(x - middle[1]) < 7),
             abs(numpy.hypot(x - middle[3], y - middle[4]) - 6) < 1.5,
             (abs(x - across) < side / 2) & (abs(y - down) < side / 2)]
    for label, mask in zip(labels, masks):
        if label:
            picture[mask] = rng.integers(120, 256, 3)
    return picture.astype(numpy.uint8), labels, (side, across, down)


def make_data(folder, images, task):
    """Writes the pictures and a CSV file of them; returns training and validation data as tensors."""
    rng = numpy.random.default_rng(7)
    parts = {"train": ([], []), "val": ([], [])}
    with open(folder / f"{task}.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "split", *(LABELS if task == "labels" else VALUES)])
        for i in range(images):
            picture, labels, numbers = draw(rng)
            if task == "values" and not labels[3]:
                continue
            split = "val" if i % 5 == 0 else "train"
            name = f"{task}-{i}.ppm"
            (folder / name).write_bytes(b"P6\n%d %d\n255\n" % (SIDE, SIDE) + picture.tobytes())
            targets = labels if task == "labels" else numbers
            writer.writerow([name, split, *targets])
            pixels = (picture[:, :, ::-1].astype(numpy.float32) - 128) / 64  # B,G,R
            parts[split][0].append(pixels.transpose(2, 0, 1))
            parts[split][1].append(numpy.asarray(targets, numpy.float32))
    return {split: tuple(torch.tensor(numpy.stack(one)) for one in both) for split, both in parts.items()}


def make_net(outputs):
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 64, outputs))


def prototxt(outputs):
    text = ("name: 'targets'\nlayer { name: 'data' type: 'Data' top: 'data' top: 'label' transform_param { "
            "crop_size: 32 scale: 0.015625 mean_value: 128 mean_value: 128 mean_value: 128 } }\n")
    below = "data"
    for i, channels in enumerate((16, 32, 64), 1):
        text += (f"layer {{ name: 'conv{i}' type: 'Convolution' bottom: '{below}' top: 'conv{i}' convolution_param {{ "
                 f"num_output: {channels} kernel_size: 3 pad: 1 }} }}\n"
                 f"layer {{ name: 'relu{i}' type: 'ReLU' bottom: 'conv{i}' top: 'conv{i}' }}\n")
        below = f"conv{i}"
        if i < 3:
            text += (f"layer {{ name: 'pool{i}' type: 'Pooling' bottom: '{below}' top: 'pool{i}' pooling_param {{ "
                     "kernel_size: 2 stride: 2 } }\n")
            below = f"pool{i}"
    return text + (f"layer {{ name: 'fc' type: 'InnerProduct' bottom: '{below}' top: 'fc' inner_product_param {{ "
                   f"num_output: {outputs} }} }}\n"
                   "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'fc' bottom: 'label' top: 'loss' }\n")


def write_safetensors(path, net):
    modules = {"conv1": net[0], "conv2": net[3], "conv3": net[6], "fc": net[9]}
    header, data = {}, b""
    for name, module in modules.items():
        for kind in ("weight", "bias"):
            values = getattr(module, kind).detach().numpy()
            header[f"{name}.{kind}"] = {"dtype": "F32", "shape": list(values.shape),
                                        "data_offsets": [len(data), len(data) + values.nbytes]}
            data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def loss_of(task, scores, targets):
    if task == "labels":
        return nn.functional.binary_cross_entropy_with_logits(scores, targets, reduction="sum") / len(scores)
    return ((scores - targets) ** 2).sum() / (2 * len(scores))


def train_torch(task, data, net, batch, steps, seed):
    pixels, targets = data["train"]
    mean, deviation = targets.mean(0), targets.std(0, unbiased=False)
    learned = targets if task == "labels" else (targets - mean) / deviation
    optimizer = torch.optim.SGD(net.parameters(), RATE, MOMENTUM)
    order = torch.Generator().manual_seed(seed)
    queue = torch.empty(0, dtype=torch.long)
    for _ in range(steps):
        if len(queue) < batch:
            queue = torch.cat([queue, torch.randperm(len(pixels), generator=order)])
        rows, queue = queue[:batch], queue[batch:]
        optimizer.zero_grad()
        loss_of(task, net(pixels[rows]), learned[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        pixels, targets = data["val"]
        scores = net(pixels)
        if task == "labels":
            return loss_of(task, scores, targets).item(), mean_average_precision(scores, targets)
        error = (scores * deviation + mean - targets).abs().mean().item()
        return loss_of(task, scores, (targets - mean) / deviation).item(), error


def mean_average_precision(scores, targets):
    precisions = []
    for score, target in zip(scores.T, targets.T):
        hits = target[score.argsort(descending=True)]
        precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
        precisions.append((precision * hits).sum() / hits.sum())
    return torch.stack(precisions).mean().item()


def train_tandem(arguments, folder, task, batch, steps, seed):
    run = folder / f"run-{task}-{seed}"
    loss = ["--loss", "euclidean"] if task == "values" else []
    subprocess.run([arguments.tandem, "train", *loss, "--data", folder / f"{task}.csv", "--net", folder / f"{task}.prototxt",
                    "--weights", folder / "first.safetensors", "--solver", folder / "solver.prototxt",
                    "--steps", str(steps), "--batch", str(batch), "--seed", str(seed), "--out", run,
                    "--threads", str(arguments.threads)], check=True, stdout=subprocess.DEVNULL)
    output = subprocess.run([arguments.tandem, "test", "--run", run, "--split", "val", "--weights", "last", "--json",
                             "--no-report"], check=True, capture_output=True, text=True).stdout
    result = json.loads(output)
    return result["loss"], result["metrics"]["mAP" if task == "labels" else "MAE"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tandem", default="tandem")
    parser.add_argument("--images", type=int, default=1500)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    arguments.tandem = str(pathlib.Path(arguments.tandem).resolve()) if "/" in arguments.tandem else arguments.tandem
    torch.set_num_threads(arguments.threads)
    print("| task | seed | loss, Tandem | loss, PyTorch | metric, Tandem | metric, PyTorch |\n|---|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "solver.prototxt").write_text(
            f"base_lr: {RATE} lr_policy: 'fixed' momentum: {MOMENTUM} weight_decay: 0 max_iter: 1 type: 'SGD'\n")
        for task, names in (("labels", LABELS), ("values", VALUES)):
            data = make_data(folder, arguments.images, task)
            (folder / f"{task}.prototxt").write_text(prototxt(len(names)))
            for seed in range(1, arguments.seeds + 1):
                torch.manual_seed(seed)
                net = make_net(len(names))
                write_safetensors(folder / "first.safetensors", net)
                count = len(data["train"][0])
                batch = arguments.batch or count
                steps = arguments.epochs * count // batch
                mine = train_tandem(arguments, folder, task, batch, steps, seed)
                theirs = train_torch(task, data, net, batch, steps, seed)
                print(f"| {task} | {seed} | {mine[0]:.7f} | {theirs[0]:.7f} | {mine[1]:.7f} | {theirs[1]:.7f} |",
                      flush=True)


if __name__ == "__main__":
    main()
