#!/usr/bin/env python3
"""The same work as bench_loader by torchvision: ImageFolder (Pillow), Resize(256), RandomCrop(227), mirror, floats minus
mean, in a DataLoader of batches of 128. Prints images/s by number of worker processes.

    loader_torchvision.py FOLDER [--crop 227] [--resize 256] [--workers 0,1,2] [--seconds 5]
"""
import argparse
import time

import torch
import torchvision
from torchvision import transforms

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--crop", type=int, default=227)
parser.add_argument("--resize", type=int, default=256)
parser.add_argument("--batch", type=int, default=128)
parser.add_argument("--workers", default="0,1,2")
parser.add_argument("--seconds", type=float, default=5)
arguments = parser.parse_args()
torch.set_num_threads(1)
crop = [transforms.Resize(arguments.resize), transforms.RandomCrop(arguments.crop)]
ready = transforms.Compose(crop + [transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                                   transforms.Normalize((0.48, 0.46, 0.41), (1, 1, 1))])
data = torchvision.datasets.ImageFolder(arguments.folder, ready)
print(f"torchvision {torchvision.__version__}: {len(data)} images, crop {arguments.crop}")
for workers in [int(text) for text in arguments.workers.split(",")]:
    loader = torch.utils.data.DataLoader(data, arguments.batch, shuffle=True, num_workers=workers,
                                         persistent_workers=workers > 0, drop_last=True)
    begin, images, cpu = None, 0, 0
    while begin is None or time.time() - begin < arguments.seconds:
        for pixels, labels in loader:
            if begin is None:
                begin, images, cpu = time.time(), -len(pixels), time.process_time()  # workers have started
            images += len(pixels)
            if time.time() - begin >= arguments.seconds:
                break
    own = f", {images / (time.process_time() - cpu):.0f} by CPU second" if workers == 0 else ""
    print(f"{workers} workers: {images / (time.time() - begin):.0f} images/s{own}", flush=True)
