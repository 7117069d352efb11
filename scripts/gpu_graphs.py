"""Part `graphs` of scripts/gpu-check: steps as captured CUDA graphs must give the bits that steps issued task by task give,
and are timed beside them."""

from gpu_soak import last_line

STEPS = 60
# Small steps gain the most; two logical devices show that a capture spans streams and devices.
RUNS = (("cifar10_quick", 32, "cuda:0", "sequential", "float32"),
        ("cifar10_quick", 32, "cuda:0", "sequential", "float16"),
        ("cifar10_quick", 32, "cuda:0,0", "two_phase", "float32"),
        ("cifar10_quick", 32, "cuda:0,0", "layerwise", "float32"),
        ("alexnet", 128, "cuda:0", "sequential", "float32"),
        ("resnet50", 32, "cuda:0", "sequential", "bfloat16"))


def weights_of(check, options, use, folder):
    """The run's weights as bytes, or None and why there are none."""
    command = [check.program("tandem"), "train", "--data", "synthetic", *options, "--steps", str(STEPS), "--seed", "3",
               "--graphs", use, "--out", str(check.work / folder)]
    result = check.run(command, 600)
    (check.work / f"{folder}.log").write_text(result.stdout)
    if result.returncode != 0:
        return None, f"--graphs {use}: exit code {result.returncode}: {last_line(result.stdout)}"
    return (check.work / folder / "last.safetensors").read_bytes(), ""


def graphs(check, _):
    for net, batch, devices, strategy, precision in RUNS:
        name = f"graphs {net} {precision} {devices} {strategy}"
        options = ["--net", net, "--batch", str(batch), "--devices", devices, "--strategy", strategy, "--precision", precision]
        weights, seconds, problem = {}, {}, ""
        for use in ("off", "on"):
            folder = f"graphs-{net}-{precision}-{strategy}-{use}"
            weights[use], problem = weights_of(check, options, use, folder)
            if problem:
                break
            measured, problem = check.json_of(["profile", *options, "--graphs", use, "--warm-up", 5, "--steps", 30,
                                               "--no-communication-check"], 300)
            if problem:
                break
            seconds[use] = measured["step_seconds"]
        if problem and "needs 8.0 (Ampere)" in problem:
            check.skip(name, problem)
        elif problem:
            check.ok(name, False, problem)
        else:
            check.ok(name, weights["on"] == weights["off"],
                     f"{'the same' if weights['on'] == weights['off'] else 'OTHER'} bits after {STEPS} steps; a step takes "
                     f"{seconds['on'] * 1e3:.3f} ms, task by task {seconds['off'] * 1e3:.3f} ms "
                     f"({seconds['off'] / seconds['on']:.2f}x)")
