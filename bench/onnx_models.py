#!/usr/bin/env python3
"""Exports architectures of torchvision and timm with random weights, and compares the scores of bench_onnx with ONNX
Runtime's: bench/onnx_models.py PROGRAM [--as FORM,...] MODEL...

PROGRAM is bench_onnx; MODEL is a builder of torchvision ("resnet18") or a model of timm ("timm/resnet10t"). Each is
exported in the forms that are named, those of both of PyTorch's exporters if none is: FORMS describes them. Batch
statistics and the factors of normalizations are random, too. A line for each file has the largest difference as a share
of the largest score. ONNX Runtime gets files in half precision with the same weights as float32; scores of files in
training mode are compared with PyTorch's. Needs torch, torchvision, timm, onnxscript and onnxruntime.
"""

import argparse
import logging
import pathlib
import subprocess
import sys
import tempfile
import warnings

import onnx
import onnxruntime
import torch
import torchvision

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "reference"))
from make_onnx_nets import in_float32  # noqa: E402

# Protobuf's files have at most 2 GB: weights of larger nets are in files of their own.
MOST_PARAMETERS = 450_000_000


def old_exporter(model, image, path, opset=17, **options):
    torch.onnx.export(model, (image,), path, dynamo=False, opset_version=opset, input_names=["image"],
                      dynamic_axes={"image": {0: "n"}}, **options)


def new_exporter(model, image, path, **options):
    is_large = sum(weight.numel() for weight in model.parameters()) > MOST_PARAMETERS
    torch.onnx.export(model, (image,), path, dynamo=True, opset_version=18, external_data=is_large, verbose=False,
                      **options)


def any_size(model, image, path):
    """Any batch, height and width, where the model allows it."""
    axes = {0: torch.export.Dim.DYNAMIC, 2: torch.export.Dim.AUTO, 3: torch.export.Dim.AUTO}
    new_exporter(model, torch.cat([image, image]), path, dynamic_shapes=(axes,))


def in_training(model, image, path):
    """As for training: BatchNorm is not folded, and what is drawn at random stays."""
    old_exporter(model.train(), torch.cat([image, image]), path, training=torch.onnx.TrainingMode.PRESERVE,
                 do_constant_folding=False)


def with_casts(model, image, path):
    """Weights of float16 between casts of the input and of the scores."""
    from onnxruntime.transformers import float16
    old_exporter(model, image, path)
    onnx.save(float16.convert_float_to_float16(onnx.load(path), keep_io_types=True), path)


FORMS = {
    "default": lambda model, image, path: torch.onnx.export(model, (image,), path, verbose=False),
    "old": old_exporter,
    "new": new_exporter,
    "opset11": lambda *given: old_exporter(*given, opset=11),
    "opset13": lambda *given: old_exporter(*given, opset=13),
    "any_size": any_size,
    "training": in_training,
    "half": lambda model, image, path: old_exporter(model.half(), image.half(), path),
    "new_half": lambda model, image, path: new_exporter(model.half(), image.half(), path),
    "casts": with_casts,
}


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


def export(name, form, path):
    model, image = make(name)
    image = image.half().float()
    FORMS[form](model, image, path)
    image = image.float()
    if form == "training":
        scores = model.eval()(image).detach().numpy()
    else:
        is_half = form in ("half", "new_half", "casts")
        session = onnxruntime.InferenceSession(in_float32(onnx.load(path)).SerializeToString() if is_half else path)
        scores = session.run(None, {session.get_inputs()[0].name: image.numpy()})[0]
    image.numpy().tofile(path + ".x")
    scores.tofile(path + ".y")


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--as", dest="forms", default="old,new", help=f"of {', '.join(FORMS)}; separated by commas")
    parser.add_argument("models", nargs="+")
    given = parser.parse_intermixed_args()
    for name in given.models:
        for form in given.forms.split(","):
            with tempfile.TemporaryDirectory() as folder:
                path = str(pathlib.Path(folder) / f"{name.replace('/', '_')}_{form}.onnx")
                try:
                    export(name, form, path)
                except Exception as failure:  # pylint: disable=broad-except
                    print(f"{name}, {form}: PyTorch does not export it: {str(failure)[:100]}", flush=True)
                    continue
                result = subprocess.run([given.program, path], capture_output=True, text=True, check=False)
                print(f"{name}, {form}: {result.stdout.strip().split(': ', 1)[-1]}", flush=True)


if __name__ == "__main__":
    main()
