#!/usr/bin/env python3
"""Exports architectures of torchvision and timm with random weights, and compares the scores of bench_onnx with ONNX
Runtime's: bench/onnx_models.py PROGRAM [--as FORM,...] [--side N] MODEL...

PROGRAM is bench_onnx; MODEL is a builder of torchvision ("resnet18") or a model of timm ("timm/resnet10t"). Each is
exported in the forms that are named, those of both of PyTorch's exporters if none is: FORMS describes them. A line for
each file has the largest difference as a share of the largest score, and how much the scores of another image differ:
where that is little, an error may go unseen. ONNX Runtime gets files in half precision with the same weights as float32; scores of files in
training mode are compared with PyTorch's. Needs torch, torchvision, timm, onnxscript and onnxruntime.
"""

import argparse
import logging
import math
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


def fused(model, image, path):
    """As ONNX Runtime saves a graph that it has optimized, with operators of its own."""
    old_exporter(model, image, path + ".plain")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = path
    options.log_severity_level = 4
    onnxruntime.InferenceSession(path + ".plain", options)


FORMS = {
    "default": lambda model, image, path: torch.onnx.export(model, (image,), path, verbose=False),
    "old": old_exporter,
    "new": new_exporter,
    "opset7": lambda *given: old_exporter(*given, opset=7),
    "opset11": lambda *given: old_exporter(*given, opset=11),
    "opset13": lambda *given: old_exporter(*given, opset=13),
    "any_size": any_size,
    "fused": fused,
    "training": in_training,
    "half": lambda model, image, path: old_exporter(model.half(), image.half(), path),
    "new_half": lambda model, image, path: new_exporter(model.half(), image.half(), path),
    "casts": with_casts,
}


def randomize(model, side):
    """Makes every weight matter to the scores: none is left at a constant as 0, 1 or 1e-6, and BatchNorm has the
    statistics of a few images, so that scores do not depend on the biases alone."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.numel() == 0 or weight.min() != weight.max():
                continue
            value = weight.flatten()[0].item()
            if value == 0:
                torch.nn.init.normal_(weight, std=0.1 if weight.ndim < 2 else 0.02)
            else:
                weight.uniform_(0.5, 1.5).mul_(math.copysign(max(abs(value), 0.4), value))
        norms = [module for module in model.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)
                 and module.running_mean is not None]
        momenta = [module.momentum for module in norms]
        for module in norms:
            module.momentum = 1.0
        if norms:
            model.train()(torch.randn(4, 3, side, side))
        for module, momentum in zip(norms, momenta):
            module.momentum = momentum
            module.running_var.copy_((module.running_var + module.running_var.mean()) / 2)  # none is near zero
    model.eval()


def make(name, side):
    """The model, an image, and how much its scores differ from those of another, as a share of the largest."""
    torch.manual_seed(1)
    if name.startswith("timm/"):
        import timm
        model = timm.create_model(name[5:], pretrained=False)
        if not side or model.default_cfg.get("fixed_input_size"):
            side = model.default_cfg["input_size"][1]
    else:
        options = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
        model = torchvision.models.get_model(name, weights=None, **options)
        if not side or name.startswith(("vit", "maxvit")):
            side = 299 if name == "inception_v3" else 224
    randomize(model, side)
    images = torch.randn(2, 3, side, side)
    with torch.no_grad():
        scores = model(images)
    return model, images[:1], ((scores[0] - scores[1]).abs().max() / scores.abs().max()).item()


def export(name, form, path, side):
    model, image, variety = make(name, side)
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
    return variety


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--as", dest="forms", default="old,new", help=f"of {', '.join(FORMS)}; separated by commas")
    parser.add_argument("--side", type=int, help="of the images of nets that take any (default: their own)")
    parser.add_argument("models", nargs="+")
    given = parser.parse_intermixed_args()
    for name in given.models:
        for form in given.forms.split(","):
            with tempfile.TemporaryDirectory() as folder:
                path = str(pathlib.Path(folder) / f"{name.replace('/', '_')}_{form}.onnx")
                try:
                    variety = export(name, form, path, given.side)
                except Exception as failure:  # pylint: disable=broad-except
                    print(f"{name}, {form}: PyTorch does not export it: {str(failure)[:100]}", flush=True)
                    continue
                result = subprocess.run([given.program, path], capture_output=True, text=True, check=False)
                print(f"{name}, {form}: {result.stdout.strip().split('.onnx: ', 1)[-1]} (another image: {variety:.1e})",
                      flush=True)


if __name__ == "__main__":
    main()
