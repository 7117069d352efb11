#!/usr/bin/env python3
"""The step of fine-tuning with frozen layers against the full step, in turns.

    python3 bench/freezing.py [--tandem build/bin/tandem] [--net resnet18] [--batch N] [--rounds 3] [--steps 5]
                              [--freeze PATTERN ...]

Trains one step on synthetic images for weights, then fine-tunes one step from them with each --freeze, as `tandem train
--freeze PATTERN --freeze-bn` does (the latter for nets with BatchNorm); this leaves the frozen net in its run folder.
`tandem profile` measures the steps of these nets. A PATTERN may have commas. Without --freeze: of resnet18 its first
block, its first two, ..., all but the classifier. Prints the median step, its share of the full one, and the memory.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BLOCKS = ["*conv1", "*res2*", "*res3*", "*res4*", "*res5*"]


def run(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tandem", type=pathlib.Path, default=ROOT / "build/bin/tandem")
    parser.add_argument("--net", default="resnet18")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--freeze", action="append", default=[])
    arguments = parser.parse_args()
    patterns = list(arguments.freeze)
    if not patterns and arguments.net == "resnet18":
        patterns = [",".join(BLOCKS[:count]) for count in range(2, len(BLOCKS) + 1)]
    if not patterns:
        sys.exit("--freeze is needed for this net: 'tandem net --net NET' shows its layers")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        train = [arguments.tandem, "train", "--data", "synthetic", "--steps", 1, "--batch", 2]
        run(train + ["--model", arguments.net, "--out", folder / "full"])
        nets = {"no layer": folder / "full/net.prototxt"}
        also = ["--freeze-bn"] if "BatchNorm" in nets["no layer"].read_text() else []
        for i, pattern in enumerate(patterns):
            out = folder / f"frozen{i}"
            run(train + ["--weights", folder / "full", "--freeze", pattern, "--out", out] + also)
            nets[pattern] = out / "net.prototxt"
        steps = {name: [] for name in nets}
        for _ in range(arguments.rounds):
            for name, net in nets.items():
                output = run([arguments.tandem, "profile", "--net", net, "--batch", arguments.batch, "--steps",
                              arguments.steps, "--no-communication-check", "--json"])
                steps[name].append(json.loads(output))
    full = statistics.median(one["step_seconds"] for one in steps["no layer"])
    print(f"{arguments.net}, batch {arguments.batch}, {arguments.rounds} rounds in turns; frozen:")
    for name, found in steps.items():
        seconds = [one["step_seconds"] for one in found]
        middle = statistics.median(seconds)
        print(f"{name:<40} {1000 * middle:8.1f} ms ({1000 * min(seconds):.1f} to {1000 * max(seconds):.1f}), "
              f"{middle / full:.2f} of the full step, {found[0]['peak_memory_bytes'] / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
