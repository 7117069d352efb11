"""Nets of torchvision and timm for compare_nets.py: made with random weights, exported as ONNX for training, and run
beside Tandem with the weights that it read. Needs torch, torchvision, and timm for names that begin with "timm/".
"""

import copy
import itertools
import warnings

import numpy
import torch
import torchvision


def is_name(net):
    return net.startswith(("torchvision/", "timm/"))


def make(net, side, classes):
    """In training mode, without what is drawn at random."""
    library, name = net.split("/", 1)
    if library == "timm":
        import timm
        options = {"num_classes": classes}
        try:
            model = timm.create_model(name, img_size=side, **options)
        except TypeError:  # of any size
            model = timm.create_model(name, **options)
    else:
        options = {"init_weights": True, "aux_logits": False} if name in ("googlenet", "inception_v3") else {}
        if name.startswith("vit"):
            options["image_size"] = side
        if name.startswith("maxvit"):
            options["input_size"] = (side, side)
        model = torchvision.models.get_model(name, weights=None, num_classes=classes, **options)
    for module in model.modules():
        kind = type(module).__name__
        if "Dropout" in kind or kind == "StochasticDepth":
            module.p = 0.0
        if kind == "DropPath":
            module.drop_prob = 0.0
        if hasattr(module, "drop_rate"):
            module.drop_rate = 0.0
        if getattr(module, "attention_dropout", None):
            module.attention_dropout = 0.0
        # ViT's classifier and layer scales of 1e-6 would give gradients of nothing else.
        if isinstance(module, torch.nn.Linear) and not module.weight.any():
            torch.nn.init.normal_(module.weight, std=0.02)
    for weight in model.parameters():
        if 0 < float(weight.detach().abs().max()) <= 1e-4:
            torch.nn.init.uniform_(weight, 0.5, 1.5)
        if weight.ndim == 1 or weight.max() == weight.min():  # so that places() tells arrays of equal values apart
            weight.data += 0.05 * torch.randn_like(weight)
    return model.train()


def smooth(module):
    """Takes the kinks out, as BNLL and means for ReLU and maxima."""
    torch.nn.functional.relu = lambda x, inplace=False: torch.nn.functional.softplus(x)
    for name, child in module.named_children():
        if isinstance(child, (torch.nn.ReLU, torch.nn.ReLU6)):
            setattr(module, name, torch.nn.Softplus())
        elif isinstance(child, torch.nn.MaxPool2d):
            setattr(module, name, torch.nn.AvgPool2d(child.kernel_size, child.stride, child.padding,
                                                     child.ceil_mode, count_include_pad=False))
        else:
            smooth(child)


def export(model, side, path):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore")
        torch.onnx.export(copy.deepcopy(model), torch.randn(2, 3, side, side), path, dynamo=False, opset_version=17,
                          training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
                          input_names=["image"], dynamic_axes={"image": {0: "n"}})


class Module:
    """As torch_nets.Reference, over a module."""

    def __init__(self, model, dtype, factors):
        self.model = copy.deepcopy(model).to(dtype)
        self.weights = dict(self.model.named_parameters())
        self.factors = torch.tensor(factors).to(dtype).reshape(1, 3, 1, 1)

    def loss(self, data, labels):
        scores = self.model(data.flip(1) * self.factors)  # Tandem's planes are B, G, R here
        return torch.nn.functional.cross_entropy(scores, labels)


def places(model, initial):
    """Where Tandem has each weight: its array, and the order of the weight's axes there. Weights that are computed
    from others in the file, or are not there, have none."""
    found = {}
    for name, weight in model.named_parameters():
        values = weight.detach().numpy()
        candidates = [name] if name in initial else []
        candidates += [key for key, array in initial.items() if key != name and array.size == values.size]
        for key in candidates:
            orders = itertools.permutations(range(values.ndim)) if values.ndim <= 4 else [tuple(range(values.ndim))]
            order = next((o for o in orders if initial[key].size == values.size and numpy.array_equal(
                values.transpose(o).ravel(), initial[key].ravel())), None)
            if order is not None:
                found[name] = (key, order)
                break
    return found
