"""Parts `tune` and `links` of scripts/gpu-check: measured algorithms, and links between GPUs."""

import re

from gpu_precision import PRECISIONS
from gpu_soak import last_line

NETS = {"alexnet": 256, "googlenet": 256, "resnet18": 256, "resnet50": 256, "vgg16": 256}


def is_beyond(reason):
    """Whether a run was refused because this GPU is too old or too small for it."""
    return "needs 8.0 (Ampere)" in reason or re.search(r"batch \d+ fits", reason) is not None


def tune(check, _):
    """Measured algorithms must not be clearly slower than the others."""
    for net, batch in NETS.items():
        for precision in PRECISIONS:
            name, rates = f"tune {net} {precision} batch {batch}", []
            for more in ([], ["--tune"]):
                found, reason = check.json_of(["profile", "--net", net, "--batch", batch, "--devices", "cuda:0", "--strategy",
                                               "sequential", "--precision", precision, "--warm-up", 10, "--steps", 50, *more], 300)
                if found is None:
                    break
                rates.append(found["images_per_second"])
            if len(rates) == 2:
                measured = sum(layer["algorithm"].startswith("measured: ") for layer in found["layers"])
                check.ok(name, measured > 0 and rates[1] >= 0.95 * rates[0],
                         f"{rates[1]:.0f} images/s with --tune, {rates[0]:.0f} without, {rates[1] / rates[0]:.2f}x; {measured} "
                         "layers measured")
            elif is_beyond(reason):
                check.skip(name, reason)
            else:
                check.ok(name, False, reason)


def links(check, _):
    """The links between all GPUs; on a machine with one GPU, between two devices on it."""
    kinds, reason = check.json_of(["devices"], 120)
    gpus = next((len(kind["devices"]) for kind in kinds or [] if kind["kind"] == "cuda"), 0)
    if gpus == 0:
        check.ok("links", False, reason or "no GPU")
        return
    devices = "cuda:" + (",".join(map(str, range(gpus))) if gpus > 1 else "0,0")
    result = check.run([check.program("tandem"), "devices", "--links", "--devices", devices], 120)
    pairs = [line for line in result.stdout.splitlines() if re.match(r"cuda\d+ -> cuda\d+ ", line)]
    wanted = max(gpus * (gpus - 1), 2)
    check.ok(f"links of {devices}", result.returncode == 0 and len(pairs) == wanted,
             f"{len(pairs)} of {wanted} pairs reported" + ("" if pairs else f": {last_line(result.stdout)}"))
    for line in pairs:
        check.row("link", "ok", re.sub(r"  +", "  ", line))
