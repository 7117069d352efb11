#!/usr/bin/env python3
"""The peer's half of accuracy.py: trains torchvision's ResNet-18 on a folder of small images and prints JSON.

    accuracy_torch.py FOLDER --recipe reference|same [--epochs 8] [--seed 1] [--threads 2] [--size 32] [--run RUN]

FOLDER has train/<class>/ and val/<class>/. Batches of 128 in both recipes.
reference: torchvision's references/classification/train.py as its options stand: SGD with momentum 0.9, decay 1e-4,
rate 0.1 for 256 images (0.05 for 128), divided by 10 after each third of the run (there: every 30 of 90 epochs),
RandomResizedCrop and a random flip. Test images are taken whole.
same: what `tandem train` chooses for small images: Nesterov, decay 5e-4, rate 0.05 with a warm-up over 5 % of the
steps from a tenth of it and half a cosine to 0, a random crop of the image padded by an eighth, a random flip, and whole
batches only: BatchNorm's statistics would end with those of a few images.
--run: the net begins with the best weights of a Tandem run of examples/models/pretrained/resnet18.prototxt, which has
torchvision's names. Images are prepared as in that run, and only the last layer, which is new, is trained; BatchNorm
keeps its running statistics.
"""
import argparse
import json
import math
import pathlib
import random

import torch
from torch import nn
from torchvision import datasets, models, transforms

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BATCH = 128
RATE = 0.1 * BATCH / 256


def read_safetensors(path):
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    arrays = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, end = entry["data_offsets"]
            values = torch.frombuffer(bytearray(data[begin + first:begin + end]), dtype=torch.float32)
            arrays[name] = values.reshape(entry["shape"])
    return arrays


def take_weights(net, arrays):
    """All but the last layer's. Tandem keeps sums of the running statistics, and by what they are to be divided."""
    state = net.state_dict()
    for name in state:
        layer, kind = name.rsplit(".", 1)
        if layer == "fc" or kind == "num_batches_tracked":
            continue
        key = {"running_mean": "mean", "running_var": "variance"}.get(kind, kind)
        value = arrays[f"{layer}.{key}"]
        value = value if key == kind else value / arrays[f"{layer}.scale_factor"]
        state[name] = value.reshape(state[name].shape)  # a 1x1 kernel is stored as a matrix
    net.load_state_dict(state)


def preparation_of(run, arrays):
    """What a Tandem run does with the pixels, for tensors of R,G,B from 0 to 1."""
    parameters = json.loads((run / "run.json").read_text())["data_parameters"]
    is_rgb = parameters.get("color") == "rgb"
    mean = torch.tensor([float(one) for one in parameters.get("mean", "0").split(",")])  # of B,G,R, or one for all
    mean = (mean.flip(0) if is_rgb else mean).reshape(-1, 1, 1)
    factor = float(parameters.get("scale", 1)) * arrays["std.weight"].reshape(-1, 1, 1)
    return transforms.Lambda(lambda pixels: ((pixels if is_rgb else pixels.flip(0)) * 255 - mean) * factor)


def augmentation(recipe, size):
    crop = (transforms.RandomResizedCrop(size) if recipe == "reference"
            else transforms.RandomCrop(size, padding=size // 8))
    return [crop, transforms.RandomHorizontalFlip()]


def rate_at(recipe, step, steps):
    if recipe == "reference":
        return RATE * 0.1 ** (3 * step // steps)
    warm_up = round(0.05 * steps)
    if step < warm_up:
        return RATE * (0.1 + 0.9 * step / warm_up)
    return RATE * 0.5 * (1 + math.cos(math.pi * (step - warm_up) / (steps - warm_up)))


def top1(net, loader):
    net.eval()
    right = total = 0
    with torch.no_grad():
        for images, labels in loader:
            right += (net(images).argmax(1) == labels).sum().item()
            total += len(labels)
    return right / total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--recipe", choices=["reference", "same"], required=True)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--run", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    random.seed(options.seed)
    arrays = read_safetensors(options.run / "best.safetensors") if options.run else None
    to_input = [transforms.ToTensor(), preparation_of(options.run, arrays) if options.run
                else transforms.Normalize(MEAN, DEVIATION)]
    train = datasets.ImageFolder(options.folder / "train",
                                 transforms.Compose(augmentation(options.recipe, options.size) + to_input))
    test = datasets.ImageFolder(options.folder / "val",
                                transforms.Compose([transforms.Resize(options.size),
                                                    transforms.CenterCrop(options.size)] + to_input))
    batches = torch.utils.data.DataLoader(train, batch_size=BATCH, shuffle=True,
                                          drop_last=options.recipe == "same")
    net = models.resnet18(num_classes=len(train.classes)).to(memory_format=torch.channels_last)
    if options.run:
        take_weights(net, arrays)
        net.requires_grad_(False)
        net.fc.requires_grad_(True)
    trained = [one for one in net.parameters() if one.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=RATE, momentum=0.9, nesterov=options.recipe == "same",
                                weight_decay=1e-4 if options.recipe == "reference" else 5e-4)
    loss_of = nn.CrossEntropyLoss()
    steps, step = options.epochs * len(batches), 0
    for _ in range(options.epochs):
        net.train(not options.run)
        for images, labels in batches:
            optimizer.param_groups[0]["lr"] = rate_at(options.recipe, step, steps)
            optimizer.zero_grad()
            loss_of(net(images.to(memory_format=torch.channels_last)), labels).backward()
            optimizer.step()
            step += 1
    result = top1(net, torch.utils.data.DataLoader(test, batch_size=500))
    print(json.dumps({"top1": result, "torch": torch.__version__, "steps": steps}))


if __name__ == "__main__":
    main()
