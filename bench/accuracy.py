#!/usr/bin/env python3
"""Accuracy of the default command beside PyTorch: ResNet-18 on CIFAR-10 as a folder of images.

    python3 bench/accuracy.py --data CIFAR10 [--tandem PROGRAM] [--python PYTHON] [--images 10000] [--epochs 8]
                              [--seeds 3] [--threads 2] [--arms tandem,reference,same] [--out FOLDER]

CIFAR10 has train/<class>/*.jpg and test/<class>/*.jpg. PYTHON is an interpreter that has torch and torchvision. Each
arm trains on the same images (the first of each class, --images in all), for the same epochs, and is measured on all
test images after its last step, so that they choose nothing:

    tandem     tandem train --data FOLDER --epochs N --seed S, nothing else chosen
    reference  PyTorch with torchvision's reference recipe (accuracy_torch.py says how it is fitted to N epochs)
    same       PyTorch with the recipe that Tandem chooses: tells the recipe's part from the program's

Writes runs.json to FOLDER after every run, goes on where it was stopped, and prints a table.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
NAMES = {
    "tandem": "Tandem, default command",
    "reference": "PyTorch, torchvision's reference recipe",
    "same": "PyTorch, the recipe that Tandem chooses",
}


def natural(path):
    digits = "".join(c for c in path.stem if c.isdigit())
    return (int(digits) if digits else 0, path.name)


def link_images(source, target, per_class):
    """The first images of each class, as hard links where the file system allows it."""
    for folder in sorted(p for p in source.iterdir() if p.is_dir()):
        (target / folder.name).mkdir(parents=True, exist_ok=True)
        files = sorted(folder.iterdir(), key=natural)
        if per_class and len(files) < per_class:
            raise SystemExit(f"{folder} has {len(files)} images; --images needs {per_class} of each class")
        for file in files[:per_class] if per_class else files:
            link = target / folder.name / file.name
            if link.exists():
                continue
            try:
                os.link(file, link)
            except OSError:
                link.write_bytes(file.read_bytes())


def run(command, environment=None):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def tandem(options, data, seed):
    folder = options.out / f"tandem-{options.images}-{options.epochs}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was stopped
    text = run([options.tandem, "train", "--data", data, "--epochs", options.epochs, "--seed", seed, "--devices",
                "cpu:1", "--threads", options.threads, "--out", folder])
    folder.with_suffix(".txt").write_text(text)
    answer = run([options.tandem, "test", "--run", folder, "--data", data, "--split", "val", "--weights", "last",
                  "--json"])
    return json.loads(answer)["top1"]


def torch(options, data, seed, recipe):
    # OPENBLAS_* may hold choices for another library.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OPENBLAS_", "OMP_", "MKL_"))}
    text = run([options.python, HERE / "accuracy_torch.py", data, "--recipe", recipe, "--epochs", options.epochs,
                "--seed", seed, "--threads", options.threads], environment)
    return json.loads(text.strip().splitlines()[-1])["top1"]


def table(runs, options):
    lines = ["| | seeds | top-1 of the test images | mean | standard deviation |", "|---|---|---|---|---|"]
    for arm in options.arms:
        mine = sorted((r["seed"], 100 * r["top1"]) for r in runs if r["arm"] == arm)
        if not mine:
            continue
        values = [v for _, v in mine]
        spread = f"{statistics.stdev(values):.2f}" if len(values) > 1 else ""
        lines.append(f"| {NAMES[arm]} | {', '.join(str(s) for s, _ in mine)} | "
                     f"{', '.join(f'{v:.2f}' for v in values)} % | {statistics.mean(values):.2f} % | {spread} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--tandem", default="tandem")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--images", type=int, default=10000)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--arms", type=lambda text: text.split(","), default=list(NAMES))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("accuracy"))
    options = parser.parse_args()
    unknown = [arm for arm in options.arms if arm not in NAMES]
    if unknown:
        raise SystemExit(f"--arms {unknown[0]}: there are {', '.join(NAMES)}")
    options.out.mkdir(parents=True, exist_ok=True)
    data = options.out / f"data-{options.images}"
    classes = sum(p.is_dir() for p in (options.data / "train").iterdir())
    link_images(options.data / "train", data / "train", options.images // classes)
    link_images(options.data / "test", data / "val", 0)
    record = options.out / "runs.json"
    runs = json.loads(record.read_text()) if record.exists() else []
    for seed in range(1, options.seeds + 1):
        for arm in options.arms:
            what = {"arm": arm, "seed": seed, "images": options.images, "epochs": options.epochs}
            if any(all(r[k] == v for k, v in what.items()) for r in runs):
                continue
            begin = time.monotonic()
            top1 = tandem(options, data, seed) if arm == "tandem" else torch(options, data, seed, arm)
            runs.append({**what, "top1": top1, "seconds": round(time.monotonic() - begin, 1)})
            record.write_text(json.dumps(runs, indent=1))
            print(f"{NAMES[arm]}, seed {seed}: {100 * top1:.2f} %", file=sys.stderr, flush=True)
    mine = [r for r in runs if r["images"] == options.images and r["epochs"] == options.epochs]
    print(table(mine, options))


if __name__ == "__main__":
    main()
