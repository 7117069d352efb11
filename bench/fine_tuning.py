#!/usr/bin/env python3
"""Accuracy of fine-tuning with a frozen net beside PyTorch: ResNet-18 on CIFAR-10 as a folder of images.

    python3 bench/fine_tuning.py --data CIFAR10 [--tandem PROGRAM] [--python PYTHON] [--images 50000]
                                 [--pretraining-epochs 8] [--epochs 4] [--seeds 3] [--threads 2]
                                 [--arms tandem,same] [--out FOLDER]

CIFAR10 and PYTHON are as for accuracy.py. Tandem trains torchvision's ResNet-18 once, on the first half of the images
of all classes but the last. Each arm then trains a new last layer for all classes on the rest: the other halves, and
the last class. Every other layer is frozen, BatchNorm keeps its running statistics, and both have the weights of that
one run. They train for the same epochs by the same recipe and are measured on all test images after the last step:

    tandem  tandem train --weights RUN --freeze '*' --freeze-bn, nothing else chosen
    same    PyTorch with the recipe that Tandem chooses (accuracy_torch.py --run)

--images is the number of training images of all classes together. bench/freezing.py measures the step. Writes
runs.json to FOLDER after every run, goes on where it was stopped, and prints a table.
"""
import pathlib

from accuracy import begin, link_images, parser_of, run_arms, table, tandem, torch

ROOT = pathlib.Path(__file__).resolve().parents[1]
NET = ROOT / "examples/models/pretrained/resnet18.prototxt"
NAMES = {"tandem": "Tandem, --freeze '*' --freeze-bn", "same": "PyTorch, the recipe that Tandem chooses"}
SIZE = 32


def pretrained(options, data):
    """The run folder; a run of an earlier call is kept."""
    epochs = options.pretraining_epochs
    folder = options.out / f"pretrained-{options.images}-{epochs}-1"
    if not folder.with_suffix(".txt").exists():
        more = ["--net", NET, "--adapt-classes", "--image-size", SIZE, "--recipe", "photos"]
        tandem(options, data, 1, more, epochs, "pretrained")
    return folder


def main():
    parser = parser_of(__doc__, NAMES, "fine_tuning")
    parser.set_defaults(images=50000)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--pretraining-epochs", type=int, default=8)
    options = parser.parse_args()
    begin(options, NAMES)
    classes = sorted(p.name for p in (options.data / "train").iterdir() if p.is_dir())
    each = options.images // len(classes)
    first, rest = options.out / f"first-{options.images}", options.out / f"rest-{options.images}"
    old, new = classes[:-1], classes[-1:]
    link_images(options.data / "train", first / "train", end=each // 2, classes=old)
    link_images(options.data / "test", first / "val", classes=old)
    link_images(options.data / "train", rest / "train", each // 2, each, old)
    link_images(options.data / "train", rest / "train", end=each, classes=new)
    link_images(options.data / "test", rest / "val")
    weights = pretrained(options, first)

    def train(arm, seed):
        if arm == "tandem":
            return tandem(options, rest, seed, ["--weights", weights, "--freeze", "*", "--freeze-bn"])
        return torch(options, rest, ["--recipe", arm, "--seed", seed, "--run", weights])

    runs = run_arms(options, NAMES, train, "fine_tuning", pretraining_epochs=options.pretraining_epochs)
    print(table(runs, NAMES))


if __name__ == "__main__":
    main()
