#!/usr/bin/env python3
"""The peer's half of training.py: trains a prototxt's net in PyTorch on one standing batch and prints JSON, as
bench_training does.

    training_torch.py NET FOLDER [--mode stock|tuned] [--precision float32|bfloat16]
                      [--threads 2] [--steps 5] [--warm-up 3]
                      [--master 10.77.0.1:29500] [--interface eth0]
    training_torch.py NET FOLDER --export SIDE    writes NET, of torchvision or timm, to FOLDER/net.onnx
    mpirun -n 2 training_torch.py ...     as ranks of DistributedDataParallel over gloo: each trains on its share of
                                          the batch, and rank 0 prints; the ranks meet at --master, the first
                                          host, and send through --interface

NET is a prototxt, or a model's name: torchvision/resnet18, timm/resnet10t; these are made with random weights (the
same each time), for 1,000 classes, without dropout and stochastic depth, which draw numbers.
FOLDER has weights.safetensors and batch.safetensors, which `bench_training NET --write FOLDER` left. Stock is
what PyTorch does by itself; bfloat16 is its autocast. Tuned by hand is channels_last, LRN as one autograd
function (stock makes copies of five dimensions for it), and the update in one fused pass; what the environment
says (threads, the allocator) is training.py's to set.
"""
import argparse
import contextlib
import json
import os
import pathlib
import resource
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "reference"))

import torch

import exported_nets
from torch_nets import Reference, get, get_all, in_training, parse_prototxt, read_safetensors

RATE = 1e-2  # momentum 0.9, decay 0.0005, as bench_training


class AcrossChannels(torch.autograd.Function):
    """y = x s^-beta, s = k + alpha / size * (the sum of x^2 over `size` channels)."""

    @staticmethod
    def window(x, size):
        total = x.clone()
        for shift in range(1, size // 2 + 1):
            total[:, shift:] += x[:, :-shift]
            total[:, :-shift] += x[:, shift:]
        return total

    @staticmethod
    def forward(context, x, size, alpha, beta, k):
        scale = AcrossChannels.window(x * x, size).mul_(alpha / size).add_(k)
        root = scale.sqrt()
        power = (root * root.sqrt()).reciprocal_() if beta == 0.75 else scale.pow(-beta)
        context.save_for_backward(x, scale, power)
        context.numbers = size, alpha, beta
        return x * power

    @staticmethod
    def backward(context, dy):
        x, scale, power = context.saved_tensors
        size, alpha, beta = context.numbers
        shared = dy * x * power / scale
        return dy * power - x * AcrossChannels.window(shared, size).mul_(2 * alpha * beta / size), None, None, None, None


class Tuned(Reference):
    def run_LRN(self, name, layer, inputs):
        p = get(layer, "lrn_param", [])
        if get(p, "norm_region") == "WITHIN_CHANNEL":
            return super().run_LRN(name, layer, inputs)
        return AcrossChannels.apply(inputs[0], int(get(p, "local_size", 5)), float(get(p, "alpha", 1)),
                                    float(get(p, "beta", 0.75)), float(get(p, "k", 1)))


class FileNet:
    """Of a prototxt."""

    def __init__(self, path, weights, tuned):
        self.layers = [layer for layer in get_all(parse_prototxt(path.read_text()), "layer") if in_training(layer)]
        net = (Tuned if tuned else Reference)(self.layers, weights, torch.float32)
        self.weights, self.loss = net.weights, net.loss

    def tune(self):
        for name, weight in self.weights.items():
            if weight.dim() == 4 and weight.requires_grad:
                layout = weight.detach().contiguous(memory_format=torch.channels_last)
                self.weights[name] = layout.requires_grad_()

    def groups(self):
        return groups_of(self.layers, self.weights)


def groups_of(layers, weights):
    """Parameter groups with the rate and decay that the file gives each weight."""
    groups = []
    for layer in layers:
        rules = get_all(layer, "param")
        for index, part in enumerate(("weight", "bias")):
            tensor = weights.get(f"{get(layer, 'name')}.{part}")
            if tensor is None or not tensor.requires_grad:
                continue
            rule = rules[index] if index < len(rules) else []
            groups.append({"params": [tensor], "lr": RATE * float(get(rule, "lr_mult", 1)),
                           "weight_decay": 0.0005 * float(get(rule, "decay_mult", 1))})
    return groups


class Model:
    """As Reference, over a model of torchvision or timm with the weights that were exported."""

    def __init__(self, name, side):
        torch.manual_seed(1)
        self.model = exported_nets.make(name, side, 1000)
        self.weights = dict(self.model.named_parameters())
        self.factors = 1 / torch.tensor([0.229, 0.224, 0.225]).reshape(1, 3, 1, 1)

    def loss(self, data, labels):
        return torch.nn.functional.cross_entropy(self.model(data * self.factors), labels)

    def tune(self):
        self.model.to(memory_format=torch.channels_last)

    def groups(self):
        return [{"params": [w], "lr": RATE, "weight_decay": 0.0005 if w.ndim in (2, 4) else 0.0} for w in self.weights.values()]


class Ranks:
    """The ranks that mpirun started, joined by gloo; alone without it."""

    def __init__(self, master, interface):
        self.rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", 0))
        self.count = int(os.environ.get("OMPI_COMM_WORLD_SIZE", 1))
        if self.count > 1:
            os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = master.split(":")
            os.environ["GLOO_SOCKET_IFNAME"] = interface
            torch.distributed.init_process_group("gloo", rank=self.rank, world_size=self.count)

    def share(self, tensor):
        return tensor.chunk(self.count)[self.rank]

    def mean(self, losses):
        """Of the ranks, whose shares are equal; by step."""
        if self.count == 1:
            return losses
        total = torch.tensor(losses)
        torch.distributed.all_reduce(total)
        torch.distributed.destroy_process_group()
        return (total / self.count).tolist()

    def wrapped(self, net):
        """A function of a batch that gives its loss; its backward pass averages gradients over the ranks."""
        if self.count == 1:
            return net.loss
        for name, weight in net.weights.items():
            if weight.requires_grad:
                net.weights[name] = torch.nn.Parameter(weight.detach())

        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.trained = torch.nn.ParameterList(w for w in net.weights.values() if w.requires_grad)

            def forward(self, data, labels):
                return net.loss(data, labels)

        return torch.nn.parallel.DistributedDataParallel(Module(), gradient_as_bucket_view=True, static_graph=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("net")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--mode", choices=["stock", "tuned"], default="stock")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--export", type=int, metavar="SIDE")
    parser.add_argument("--master", default="127.0.0.1:29500")
    parser.add_argument("--interface", default="lo")
    a = parser.parse_args()
    if a.export:
        exported_nets.export(Model(a.net, a.export).model, a.export, str(a.folder / "net.onnx"))
        return
    tuned = a.mode == "tuned"
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    batch = read_safetensors(a.folder / "batch.safetensors")
    if exported_nets.is_name(a.net):
        net = Model(a.net, batch["data"].shape[-1])
    else:
        net = FileNet(pathlib.Path(a.net), read_safetensors(a.folder / "weights.safetensors"), tuned)
    ranks = Ranks(a.master, a.interface)
    if len(batch["label"]) % ranks.count != 0:
        raise SystemExit(f"a batch of {len(batch['label'])} cannot be divided among {ranks.count} ranks")
    data, labels = (ranks.share(torch.tensor(batch[name])) for name in ("data", "label"))
    labels = labels.long()
    if tuned:
        data = data.contiguous(memory_format=torch.channels_last)
        net.tune()
    loss_of = ranks.wrapped(net)
    optimizer = torch.optim.SGD(net.groups(), lr=RATE, momentum=0.9, **({"fused": True} if tuned else {}))
    cast = torch.autocast("cpu", torch.bfloat16) if a.precision == "bfloat16" else contextlib.nullcontext()
    seconds, losses = [], []
    for step in range(a.warm_up + a.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with cast:
            loss = loss_of(data, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step >= a.warm_up:
            seconds.append(time.perf_counter() - begin)
    losses = ranks.mean(losses)
    if ranks.rank > 0:
        return
    print(json.dumps({"program": f"torch {torch.__version__} {a.mode}", "batch": len(labels) * ranks.count,
                      "precision": a.precision, "strategy": "DistributedDataParallel, gloo" if ranks.count > 1 else "",
                      "weights": sum(w.numel() for w in net.weights.values() if w.requires_grad),
                      "seconds": seconds, "losses": losses,
                      "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
