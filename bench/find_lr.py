#!/usr/bin/env python3
"""How good the rate is that --find-lr suggests: six nets, each trained with it and with a sweep of rates.

    python3 bench/find_lr.py --data CIFAR10 [--tandem PROGRAM] [--images 2000] [--epochs 5] [--seeds 1] [--threads 2]
                             [--arms NET,...] [--out FOLDER]

CIFAR10 is as for accuracy.py. --images is the number of training images of all ten classes together; `four` has four
of the classes, `shapes` are the images of tandem-shapes, which must stand beside PROGRAM. Every run has the default
recipe but for --lr, and is measured on the test images (`four`, `all`) or its own validation (`shapes`) after its last
step. Writes runs.json to FOLDER after every run, goes on where it was stopped, and prints a table.
"""
import pathlib
import re

from accuracy import begin, link_images, parser_of, run, run_arms, tandem

RATES = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0]
FOUR = ["bird", "frog", "ship", "truck"]
CASES = {  # name of the arm: net, data, more options
    "lenet": ("lenet", "shapes", []),
    "shapes_quick": ("shapes_quick", "shapes", []),
    "cifar10_quick": ("cifar10_quick", "all", []),
    "resnet18": ("resnet18", "four", ["--image-size", 32]),
    "mobilenet": ("mobilenet", "four", ["--image-size", 64]),
    "squeezenet": ("squeezenet", "all", ["--image-size", 64]),
}


def make_data(options):
    folders = {name: options.out / f"data-{name}-{options.images}" for name in ("all", "four", "shapes")}
    link_images(options.data / "train", folders["all"] / "train", end=options.images // 10)
    link_images(options.data / "test", folders["all"] / "val", end=200)
    link_images(options.data / "train", folders["four"] / "train", end=options.images // 10, classes=FOUR)
    link_images(options.data / "test", folders["four"] / "val", end=500, classes=FOUR)
    if not folders["shapes"].exists():
        program = pathlib.Path(options.tandem).with_name("tandem-shapes")
        run([program, folders["shapes"], "--per-class", options.images // 10])
    return folders


def suggestion(options, data, words):
    """The rate that --find-lr suggests, or None."""
    folder = options.out / "curve"
    try:
        text = run([options.tandem, "train", "--data", data, "--find-lr", "--devices", "cpu:1", "--threads",
                    options.threads, "--seed", 1, "--epochs", options.epochs, "--out", folder, *words])
    except SystemExit as stopped:
        if "nothing can be suggested" not in str(stopped):
            raise
        return None
    found = re.search(r"suggested: --lr (\S+?)\. ", text)
    return float(found.group(1)) if found else None


def top1(options, data, rate, words, name, seed):
    """A rate at which the loss becomes infinite trains nothing: 0."""
    try:
        return tandem(options, data, seed, ["--lr", rate, *words], name=name)
    except SystemExit as stopped:
        if "finite" not in str(stopped):
            raise
        return 0.0


def main():
    parser = parser_of(__doc__, CASES, "find_lr")
    parser.set_defaults(images=2000, seeds=1)
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    begin(options, CASES)
    folders = make_data(options)
    print("| net, data | suggested | its top-1 | best of the sweep | rates within 2 points of the best |")
    print("|---|---:|---:|---|---|")
    for arm in options.arms:
        net, data, more = CASES[arm]
        words = ["--net", net, "--from-scratch", *more]
        rate = suggestion(options, folders[data], words)
        rates = {f"{arm}-{value:g}": value for value in [*([] if rate is None else [rate]), *RATES]}
        options.arms = list(rates)
        runs = run_arms(options, {name: name for name in rates},
                        lambda name, seed: top1(options, folders[data], rates[name], words, name, seed), "find_lr")
        of = {value: [r["top1"] for r in runs if r["arm"] == name] for name, value in rates.items()}
        mean = {value: 100 * sum(values) / len(values) for value, values in of.items()}
        best = max(RATES, key=mean.get)
        good = ", ".join(f"{value:g}" for value in RATES if mean[value] >= mean[best] - 2)
        mine = "none | " if rate is None else f"{rate:g} | {mean[rate]:.1f} %"
        print(f"| `{net}`, {data} | {mine} | {mean[best]:.1f} % at {best:g} | {good} |",
              flush=True)


if __name__ == "__main__":
    main()
