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


def link_images(source, target, first=0, end=None, classes=None):
    """Images [first, end) of each class, or of those named, as hard links where the file system allows it."""
    for folder in sorted(p for p in source.iterdir() if p.is_dir() and (classes is None or p.name in classes)):
        (target / folder.name).mkdir(parents=True, exist_ok=True)
        files = sorted(folder.iterdir(), key=natural)
        if end and len(files) < end:
            raise SystemExit(f"{folder} has {len(files)} images; --images needs {end} of each class")
        for file in files[first:end]:
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


def tandem(options, data, seed, more=(), epochs=None, name="tandem"):
    """Top-1 of the weights after the last step; `more`: options of `tandem train`."""
    epochs = epochs or options.epochs
    folder = options.out / f"{name}-{options.images}-{epochs}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was stopped
    text = run([options.tandem, "train", "--data", data, "--epochs", epochs, "--seed", seed, "--devices", "cpu:1",
                "--threads", options.threads, "--out", folder, *more])
    folder.with_suffix(".txt").write_text(text)
    answer = run([options.tandem, "test", "--run", folder, "--data", data, "--split", "val", "--weights", "last",
                  "--json"])
    return json.loads(answer)["top1"]


def torch(options, data, more):
    """`more`: options of accuracy_torch.py."""
    # OPENBLAS_* may hold choices for another library.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OPENBLAS_", "OMP_", "MKL_"))}
    text = run([options.python, HERE / "accuracy_torch.py", data, "--epochs", options.epochs, "--threads",
                options.threads, *more], environment)
    return json.loads(text.strip().splitlines()[-1])["top1"]


def bench_of(record):
    """The program that wrote a record of runs.json; those of earlier versions do not name it."""
    return record.get("bench", "fine_tuning" if "pretraining_epochs" in record else "accuracy")


def run_arms(options, names, train, bench, **more):
    """The runs of all arms and seeds, by train(arm, seed); those of the program `bench` that runs.json has are not
    repeated. `more`: what else makes them different runs."""
    record = options.out / "runs.json"
    runs = json.loads(record.read_text()) if record.exists() else []
    mine = []
    for seed in range(1, options.seeds + 1):
        for arm in options.arms:
            what = {"arm": arm, "seed": seed, "images": options.images, "epochs": options.epochs, **more}
            found = [r for r in runs if bench_of(r) == bench and all(r.get(k) == v for k, v in what.items())]
            if not found:
                start = time.monotonic()
                top1 = train(arm, seed)
                found = [{"bench": bench, **what, "top1": top1, "seconds": round(time.monotonic() - start, 1)}]
                runs += found
                record.write_text(json.dumps(runs, indent=1))
                print(f"{names[arm]}, seed {seed}: {100 * top1:.2f} %", file=sys.stderr, flush=True)
            mine += found
    return mine


def table(runs, names):
    lines = ["| | seeds | top-1 of the test images | mean | standard deviation |", "|---|---|---|---|---|"]
    for arm in dict.fromkeys(r["arm"] for r in runs):
        mine = sorted((r["seed"], 100 * r["top1"]) for r in runs if r["arm"] == arm)
        values = [v for _, v in mine]
        spread = f"{statistics.stdev(values):.2f}" if len(values) > 1 else ""
        lines.append(f"| {names[arm]} | {', '.join(str(s) for s, _ in mine)} | "
                     f"{', '.join(f'{v:.2f}' for v in values)} % | {statistics.mean(values):.2f} % | {spread} |")
    return "\n".join(lines)


def parser_of(text, names, out):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--tandem", default="tandem")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--images", type=int, default=10000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--arms", type=lambda text: text.split(","), default=list(names))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(out))
    return parser


def begin(options, names):
    unknown = [arm for arm in options.arms if arm not in names]
    if unknown:
        raise SystemExit(f"--arms {unknown[0]}: there are {', '.join(names)}")
    options.out.mkdir(parents=True, exist_ok=True)


def main():
    parser = parser_of(__doc__, NAMES, "accuracy")
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    begin(options, NAMES)
    data = options.out / f"data-{options.images}"
    classes = sum(p.is_dir() for p in (options.data / "train").iterdir())
    link_images(options.data / "train", data / "train", end=options.images // classes)
    link_images(options.data / "test", data / "val")
    print(table(run_arms(options, NAMES, lambda arm, seed: tandem(options, data, seed) if arm == "tandem"
                         else torch(options, data, ["--recipe", arm, "--seed", seed]), "accuracy"), NAMES))


if __name__ == "__main__":
    main()
