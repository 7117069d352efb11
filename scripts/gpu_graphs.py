"""Part `graphs` of scripts/gpu-check: steps that run as captured CUDA graphs must have the same bits as steps that run
task by task. Both are timed."""

import random

from gpu_soak import last_line

STEPS = 60
NO_SECOND_GPU = "there is no cuda:1"
# Small steps gain the most. Two logical devices test captures over streams and devices, two GPUs those over GPUs.
# Pixels as bytes need images.
RUNS = (("cifar10_quick", 32, "cuda:0", "sequential", "float32", "floats"),
        ("cifar10_quick", 32, "cuda:0", "sequential", "float32", "bytes"),
        ("cifar10_quick", 32, "cuda:0", "sequential", "float16", "floats"),
        ("cifar10_quick", 32, "cuda:0,0", "two_phase", "float32", "floats"),
        ("cifar10_quick", 32, "cuda:0,0", "layerwise", "float32", "floats"),
        ("cifar10_quick", 32, "cuda:0,1", "two_phase", "float32", "floats"),
        ("cifar10_quick", 32, "cuda:0,1", "layerwise", "float32", "bytes"),
        ("alexnet", 128, "cuda:0", "sequential", "float32", "floats"),
        ("resnet50", 32, "cuda:0", "sequential", "bfloat16", "floats"))


def images(check):
    """A folder of noise in CIFAR-10's format: a label and 3 x 32 x 32 bytes for each image."""
    folder = check.work / "noise"
    folder.mkdir(exist_ok=True)
    noise = random.Random(1)
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        (folder / name).write_bytes(b"".join(bytes([i % 10]) + noise.randbytes(3072) for i in range(200)))
    return str(folder)


def weights_of(check, data, options, use, folder):
    """The run's weights as bytes, or None and the reason why there are none."""
    command = [check.program("tandem"), "train", "--data", data, *options, "--steps", str(STEPS), "--seed", "3",
               "--graphs", use, "--out", str(check.work / folder)]
    result = check.run(command, 600)
    (check.work / f"{folder}.log").write_text(result.stdout)
    if result.returncode != 0:
        return None, f"--graphs {use}: exit code {result.returncode}: {last_line(result.stdout)}"
    return (check.work / folder / "last.safetensors").read_bytes(), ""


def graphs(check, _):
    for net, batch, devices, strategy, precision, pixels in RUNS:
        name = f"graphs {net} {precision} {devices} {strategy}{' bytes' if pixels == 'bytes' else ''}"
        data = images(check) if pixels == "bytes" else "synthetic"
        options = ["--net", net, "--batch", str(batch), "--devices", devices, "--strategy", strategy, "--precision", precision,
                   "--pixels", pixels]
        weights, seconds, problem = {}, {}, ""
        for use in ("off", "on"):
            folder = f"graphs-{net}-{precision}-{devices.replace(':', '').replace(',', '')}-{strategy}-{pixels}-{use}"
            weights[use], problem = weights_of(check, data, options, use, folder)
            if problem:
                break
            measured, problem = check.json_of(["profile", *options, "--graphs", use, "--warm-up", 5, "--steps", 30,
                                               "--no-communication-check"], 300)
            if problem:
                break
            seconds[use] = measured["step_seconds"]
        if problem and ("needs 8.0 (Ampere)" in problem or NO_SECOND_GPU in problem):
            check.skip(name, problem)
        elif problem:
            check.ok(name, False, problem)
        else:
            check.ok(name, weights["on"] == weights["off"],
                     f"{'the same' if weights['on'] == weights['off'] else 'OTHER'} bits after {STEPS} steps; a step takes "
                     f"{seconds['on'] * 1e3:.3f} ms, task by task {seconds['off'] * 1e3:.3f} ms "
                     f"({seconds['off'] / seconds['on']:.2f}x)")
