#!/usr/bin/env python3
"""Exports architectures of torchvision and timm with random weights, and compares the scores of bench_onnx with ONNX
Runtime's: bench/onnx_models.py PROGRAM MODEL...

PROGRAM is bench_onnx; MODEL is a builder of torchvision ("resnet18") or a model of timm ("timm/resnet10t"). Each is
exported by both of PyTorch's exporters; batch statistics and the factors of normalizations are random, too. A line for
each file has the largest difference as a share of the largest score. Needs torch, torchvision, timm, onnxscript and
onnxruntime.
"""

import logging
import pathlib
import subprocess
import sys
import tempfile
import warnings

import onnxruntime
import torch
import torchvision


def make(name):
    torch.manual_seed(1)
    side = 299 if name == "inception_v3" else 224
    if name.startswith("timm/"):
        import timm
        model = timm.create_model(name[5:], pretrained=False)
        side = model.default_cfg["input_size"][1]
    else:
        options = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
        model = torchvision.models.get_model(name, weights=None, **options)
    model.eval()
    for module in model.modules():
        if isinstance(module, (torch.nn.BatchNorm2d, torch.nn.LayerNorm)) and module.weight is not None:
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            if module.bias is not None:
                torch.nn.init.normal_(module.bias, std=0.1)
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(module.running_mean, std=0.1)
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
        if isinstance(module, torch.nn.Linear) and not module.weight.any():  # ViT's classifier
            torch.nn.init.normal_(module.weight, std=0.02)
    return model, torch.randn(1, 3, side, side)


def export(model, image, path, is_new):
    if is_new:
        torch.onnx.export(model, (image,), path, dynamo=True, opset_version=18, external_data=False, verbose=False)
    else:
        torch.onnx.export(model, (image,), path, dynamo=False, opset_version=17, input_names=["image"],
                          dynamic_axes={"image": {0: "n"}})
    session = onnxruntime.InferenceSession(path)
    scores = session.run(None, {session.get_inputs()[0].name: image.numpy()})[0]
    image.numpy().tofile(path + ".x")
    scores.tofile(path + ".y")


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    program, *names = sys.argv[1:]
    for name in names:
        model, image = make(name)
        for exporter in ("old", "new"):
            with tempfile.TemporaryDirectory() as folder:
                path = str(pathlib.Path(folder) / f"{name.replace('/', '_')}_{exporter}.onnx")
                try:
                    export(model, image, path, exporter == "new")
                except Exception as failure:  # pylint: disable=broad-except
                    print(f"{name}, {exporter} exporter: PyTorch does not export it: {str(failure)[:100]}", flush=True)
                    continue
                result = subprocess.run([program, path], capture_output=True, text=True, check=False)
                print(f"{name}, {exporter} exporter: {result.stdout.strip().split(': ', 1)[-1]}", flush=True)


if __name__ == "__main__":
    main()
