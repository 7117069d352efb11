"""Part `precision` of scripts/gpu-check: the same run in each precision must learn as much as in float32."""

from gpu_soak import last_line, training_rows

PRECISIONS = ("float32", "tf32", "bfloat16", "float16")
STEPS = 300
MOST = 0.1  # the largest difference to the final loss in float32, as a fraction of the decrease of that loss


def final_loss(check, precision):
    """The loss at the beginning and at the end (a mean of some steps), or None and the reason why there is none."""
    out = check.work / f"precision-{precision}"
    result = check.run([check.program("tandem"), "train", "--data", "synthetic", "--net", "cifar10_quick", "--devices", "cuda:0",
                        "--batch", "64", "--steps", str(STEPS), "--display", "10", "--seed", "1", "--test-interval",
                        str(STEPS), "--precision", precision, "--out", str(out)], 300)
    losses = [float(row["loss"]) for row in training_rows(out)]
    if result.returncode != 0 or len(losses) < 10:
        return None, last_line(result.stdout)
    return (losses[0], sum(losses[-5:]) / 5), ""


def precisions(check, _):
    exact = None
    for word in PRECISIONS:
        name = f"precision {word} {STEPS} steps"
        found, reason = final_loss(check, word)
        if found is None:
            if "needs 8.0 (Ampere)" in reason:
                check.skip(name, reason)
            else:
                check.ok(name, False, reason)
            continue
        first, last = found
        detail = f"loss {first:.4f} to {last:.4f}"
        if word == "float32":
            exact = found if check.ok(name, last < first, detail) else None
        elif exact is None:
            check.skip(name, f"{detail}; no run in float32 to compare it with")
        else:
            apart = abs(last - exact[1]) / (exact[0] - exact[1])
            check.ok(name, apart <= MOST, f"{detail}, {100 * apart:.1f} % of float32's decrease away from it (at most {100 * MOST:.0f} %)")
