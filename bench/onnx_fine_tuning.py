#!/usr/bin/env python3
"""Losses of fine-tuning an architecture's ONNX file beside PyTorch, from the same random weights on CIFAR-10 images.

    python3 bench/onnx_fine_tuning.py --data CIFAR10 [--tandem PROGRAM] [--images 320] [--side 64] [--epochs 2]
                                      [--batch 32] [--seeds 3] [--rate 0.003] [--threads 2] [--out FOLDER] NET...

CIFAR10 is as for accuracy.py; NET is as for tests/reference/compare_nets.py: timm/resnet10t, torchvision/resnet18.
Each net is made with random weights once and exported for training. Both programs train it on the same images,
enlarged beforehand, by SGD with momentum 0.9 at one rate, without augmentation, once for each seed: that is the order
of the images only. A line for each net has the mean losses of the last epoch's steps and the loss of as many images of
the test split after it, over the seeds: mean and range. Needs torch, timm, torchvision and Pillow.
"""
import argparse
import csv
import pathlib
import statistics
import sys

import numpy
import torch
from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "reference"))
import exported_nets  # noqa: E402
from accuracy import natural, run  # noqa: E402
from torch_nets import read_safetensors  # noqa: E402

MEAN, SCALE = 128, 2.0 ** -8


def enlarge(options):
    """The folder of PPM images, and their pixels and labels by split."""
    folder, arrays = options.out / f"images-{options.images}-{options.side}", {}
    for split, source in (("train", "train"), ("val", "test")):
        pixels, labels = [], []
        classes = sorted(p for p in (options.data / source).iterdir() if p.is_dir())
        for label, where in enumerate(classes):
            for file in sorted(where.iterdir(), key=natural)[:options.images // len(classes)]:
                image = Image.open(file).convert("RGB").resize((options.side, options.side), Image.Resampling.BILINEAR)
                target = folder / split / where.name / f"{file.stem}.ppm"
                target.parent.mkdir(parents=True, exist_ok=True)
                image.save(target)
                pixels.append(numpy.asarray(image).transpose(2, 0, 1))
                labels.append(label)
        arrays[split] = torch.tensor(numpy.stack(pixels)), torch.tensor(labels)
    return folder, arrays


def tandem(options, images, work, seed):
    """The losses of the last epoch and of the validation after it, and the factors of the net's first layer."""
    solver = work / "solver.prototxt"
    solver.write_text(f'base_lr: {options.rate}\nlr_policy: "fixed"\nmomentum: 0.9\nweight_decay: 0\n')
    out = work / f"seed-{seed}"
    run([options.tandem, "train", "--data", images, "--net", work / "net.onnx", "--solver", solver, "--epochs",
         options.epochs, "--batch", options.batch, "--seed", seed, "--devices", "cpu:1", "--threads", options.threads,
         "--data-option", "color=rgb", "--data-option", "mirror=false", "--data-option",
         f"mean={MEAN},{MEAN},{MEAN}", "--data-option", f"scale={SCALE}", "--data-option", f"resize={options.side}",
         "--display", 1, "--out", out])
    with open(out / "metrics.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["loss"]]
    losses = [float(row["loss"]) for row in rows if row["split"] == "train"]
    steps = options.images // options.batch
    if len(losses) != options.epochs * steps:
        raise SystemExit(f"{out} has {len(losses)} losses for {options.epochs} epochs of {steps} steps")
    validated = [float(row["loss"]) for row in rows if row["split"] == "val"]
    return (statistics.mean(losses[-steps:]), validated[-1]), read_safetensors(out / "last.safetensors")["std.weight"]


def pytorch(options, model, arrays, factors, seed):
    net = exported_nets.Module(model, torch.float32, factors)
    net.model.train()
    optimizer = torch.optim.SGD(net.weights.values(), lr=options.rate, momentum=0.9)
    order, losses = torch.Generator().manual_seed(seed), []

    def loss_of(split, some):
        pixels, labels = arrays[split]
        return net.loss(((pixels[some].float() - MEAN) * SCALE).flip(1), labels[some])

    for _ in range(options.epochs):
        losses.clear()
        for some in torch.randperm(options.images, generator=order).split(options.batch):
            optimizer.zero_grad()
            loss = loss_of("train", some)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    net.model.eval()
    with torch.no_grad():
        validated = [loss_of("val", some).item() for some in torch.arange(options.images).split(options.batch)]
    return statistics.mean(losses), statistics.mean(validated)


def text_of(results):
    """Mean and range of both losses."""
    parts = []
    for values in zip(*results, strict=True):
        parts.append(f"{statistics.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})")
    return " | ".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--tandem", default="tandem")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("onnx_fine_tuning"))
    for name, value in {"images": 320, "side": 64, "epochs": 2, "batch": 32, "seeds": 3, "threads": 2}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--rate", type=float, default=0.003)
    parser.add_argument("nets", nargs="+", metavar="NET")
    options = parser.parse_intermixed_args()
    torch.set_num_threads(options.threads)
    images, arrays = enlarge(options)
    print("| net | Tandem: training | test images | PyTorch: training | test images |\n|---|---|---|---|---|")
    for name in options.nets:
        work = options.out / name.replace("/", "-")
        work.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(1)
        model = exported_nets.make(name, options.side, len(list((images / "train").iterdir())))
        exported_nets.export(model, options.side, str(work / "net.onnx"))
        seeds = range(1, options.seeds + 1)
        runs = [tandem(options, images, work, seed) for seed in seeds]
        theirs = [pytorch(options, model, arrays, runs[0][1], seed) for seed in seeds]
        print(f"| `{name}` | {text_of([run for run, _ in runs])} | {text_of(theirs)} |", flush=True)


if __name__ == "__main__":
    main()
