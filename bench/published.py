#!/usr/bin/env python3
"""Logits of published architectures on photos: `tandem import` and `tandem predict` beside PyTorch, each with its own
decoding, resizing and normalizing of the files.

    python3 bench/published.py --tandem build/bin/tandem [--only resnet18,timm/resnet50] [--threads 2] PHOTOS...

Needs torch, torchvision, timm and safetensors. PHOTOS are image files and folders of them. No weights are downloaded:
torchvision and timm draw them (seed 1), and three steps in training mode over the first photos give BatchNorm running
statistics. The classifier is scaled so that the largest logit of all photos is 20, as of trained nets; without that
the drawn nets' logits are anything from 0.1 to 100. torchvision's weights are a file for --model, timm's a folder with
config.json. PyTorch's input is that of the published weights' own transforms (torchvision) or of create_transform()
with the configuration of the net (timm).

`tandem predict` prints probabilities of nets that learn them. The net of the imported run therefore gets HingeLoss in
place of SoftmaxWithLoss, which makes it print what the classifier computes. Prints for each net the largest difference
of any logit of any photo, and of the photos at hand the number with the same first class. The exit code is 1 if any
logit differs by more than 1e-4.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import timm
import torch
import torchvision
from PIL import Image
from safetensors.torch import save_file

NETS = ["resnet18", "resnet34", "resnet50", "resnet101", "vgg11", "vgg13", "vgg16", "vgg19", "vgg11_bn", "vgg13_bn",
        "vgg16_bn", "vgg19_bn", "mobilenet_v2", "mobilenet_v3_large", "densenet121", "efficientnet_b0", "convnext_tiny"]
TIMM_NAMES = {"mobilenet_v2": "mobilenetv2_100", "mobilenet_v3_large": "mobilenetv3_large_100"}
TOLERANCE, LARGEST, BATCH = 1e-4, 20.0, 10


def photos_in(paths):
    endings = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".ppm"}
    found = []
    for path in map(pathlib.Path, paths):
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        found += [file.resolve() for file in files if file.suffix.lower() in endings]
    return found


def drawn(name):
    """The net and what prepares its pictures."""
    torch.manual_seed(1)
    if name.startswith("timm/"):
        net = timm.create_model(name[5:])
        return net, timm.data.create_transform(**timm.data.resolve_data_config({}, model=net))
    return torchvision.models.get_model(name), torchvision.models.get_model_weights(name).IMAGENET1K_V1.transforms()


@torch.no_grad()
def settle(net, pictures):
    """Running statistics of the pictures, and logits up to LARGEST. Returns them."""
    norms = [layer for layer in net.modules() if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)]
    net.train()
    for layer in norms:
        layer.momentum = 0.5
    for begin in (0, BATCH, 2 * BATCH) if norms else ():
        net(pictures[begin:begin + BATCH])
    net.eval()
    last = [layer for layer in net.modules() if isinstance(layer, torch.nn.Linear)][-1]
    features = []
    keeping = last.register_forward_pre_hook(lambda layer, inputs: features.append(inputs[0]))
    logits = torch.cat([net(batch) for batch in pictures.split(BATCH)])
    keeping.remove()
    factor = LARGEST / logits.abs().max().item()
    last.weight.mul_(factor)
    last.bias.mul_(factor)
    return torch.cat([last(batch) for batch in features])


def written(name, net, folder):
    """What `tandem import` is given."""
    arrays = {key: value.contiguous() for key, value in net.state_dict().items()}
    if not name.startswith("timm/"):
        save_file(arrays, folder / "weights.safetensors")
        return [folder / "weights.safetensors", "--model", name]
    save_file(arrays, folder / "model.safetensors")
    config = {key: value for key, value in net.pretrained_cfg.items() if key != "url"}
    (folder / "config.json").write_text(json.dumps({"architecture": name[5:], "num_classes": 1000,
                                                    "pretrained_cfg": config}))
    return [folder]


def of_tandem(tandem, given, photos, folder):
    run = folder / "run"
    subprocess.run([tandem, "import", *given, "--out", run], check=True, stdout=subprocess.PIPE)
    net = run / "net.prototxt"
    net.write_text(net.read_text().replace("SoftmaxWithLoss", "HingeLoss"))
    printed = subprocess.run([tandem, "predict", "--run", run, "--json", "--top", "1000", *photos], check=True,
                             stdout=subprocess.PIPE).stdout
    rows = [{one["class"]: one["score"] for one in row["scores"]} for row in json.loads(printed)]
    return torch.tensor([[row[f"class {i}"] for i in range(1000)] for row in rows], dtype=torch.float64)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", nargs="+")
    parser.add_argument("--tandem", default=str(pathlib.Path(__file__).resolve().parents[1] / "build/bin/tandem"))
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    photos = photos_in(arguments.photos)
    names = NETS + ["timm/" + TIMM_NAMES.get(name, name) for name in NETS]
    if arguments.only:
        names = arguments.only.split(",")
    print(f"{len(photos)} photos; torch {torch.__version__}, torchvision {torchvision.__version__}, timm "
          f"{timm.__version__}")
    worst = 0.0
    for name in names:
        net, prepare = drawn(name)
        pictures = torch.stack([prepare(Image.open(photo).convert("RGB")) for photo in photos])
        right = settle(net, pictures).double()
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            found = of_tandem(arguments.tandem, written(name, net, folder), photos, folder)
        difference = (found - right).abs().max().item()
        same = (found.argmax(1) == right.argmax(1)).sum().item()
        worst = max(worst, difference)
        print(f"{name:28} differs by {difference:.2g} of {right.abs().max().item():.3g}, relative "
              f"{difference / right.abs().max().item():.2g}; same class {same} of {len(photos)}", flush=True)
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
