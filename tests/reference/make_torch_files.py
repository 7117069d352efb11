"""Writes tests/reference/torch: small files of torch.save(), in the forms that people have. PyTorch 2.

    python3 make_torch_files.py
"""
import argparse
import collections
import pathlib
import zipfile

import torch

FOLDER = pathlib.Path(__file__).parent / "torch"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 3)

    def forward(self, x):
        return self.fc(x)


def weights(first=0.0):
    """fc.weight is [[first, first + 1], ...], fc.bias negative."""
    state = collections.OrderedDict()
    state["fc.weight"] = first + torch.arange(6, dtype=torch.float32).reshape(3, 2)
    state["fc.bias"] = -1 - first - torch.arange(3, dtype=torch.float32)
    state["bn.num_batches_tracked"] = torch.tensor(7)
    return state


def save(name, value, **options):
    torch.save(value, FOLDER / name, **options)


def rewrite(source, name, compression=zipfile.ZIP_STORED, without=None):
    """The same archive, as PyTorch never writes it."""
    with zipfile.ZipFile(FOLDER / source) as old, zipfile.ZipFile(FOLDER / name, "w", compression) as new:
        for record in old.infolist():
            if not (without and record.filename.endswith(without)):
                new.writestr(record.filename, old.read(record))


def main():
    FOLDER.mkdir(exist_ok=True)
    save("plain.pth", weights())
    save("old_form.pth", weights(), _use_new_zipfile_serialization=False)
    save("old_form_of_protocol_5.pth", weights(), _use_new_zipfile_serialization=False, pickle_protocol=5)
    save("protocol_5.pth", weights(), pickle_protocol=5)
    for name, dtype in (("half.pt", torch.float16), ("bfloat16.pt", torch.bfloat16), ("double.pt", torch.float64)):
        save(name, {key: value.to(dtype) if value.is_floating_point() else value for key, value in weights().items()})
    buffer = torch.arange(100, dtype=torch.float32)
    save("views.pt", {
        "transposed": buffer[10:16].reshape(2, 3).t(),
        "part": buffer[20:32].reshape(3, 4)[1:, 1:3],
        "same": buffer[10:16],
        "empty": torch.empty(0, 4),
        "scalar": torch.tensor(2.5),
    })
    save("checkpoint.pth.tar", {
        "epoch": 3,
        "arch": "resnet18",
        "best_acc1": 71.5,
        "args": argparse.Namespace(lr=0.1, data=pathlib.PosixPath("/data"), dtype=torch.float32),
        "state_dict": {"module." + name: value for name, value in weights().items()},
        "optimizer": {"state": {0: {"momentum_buffer": torch.ones(3, 2)}}, "param_groups": [{"lr": 0.1, "params": [0]}]},
    })
    save("average.pth", {
        "model": weights(),
        "model_ema": {"n_averaged": torch.tensor(9), **{"module." + name: value for name, value in weights(10).items()}},
    })
    save("parameters.pt", {"model": {"state_dict": {name: torch.nn.Parameter(value) for name, value in weights().items()
                                                    if value.is_floating_point()}}})
    save("two_nets.pt", {"generator": weights(), "discriminator": weights()})
    save("no_weights.pt", {"epoch": 3, "history": [1, 2.5, True, None, (1, 2), 10**30, {"a"}, b"bytes"]})
    save("tensor.pt", torch.ones(2))
    save("module.pt", torch.nn.Linear(2, 3))
    save("zeros.pt", {"a": torch.zeros(100000)})
    rewrite("zeros.pt", "compressed.pt", zipfile.ZIP_DEFLATED)
    (FOLDER / "zeros.pt").unlink()
    rewrite("plain.pth", "no_pickle.pt", without="/data.pkl")
    rewrite("plain.pth", "no_storage.pt", without="/data/0")
    torch.jit.save(torch.jit.script(Net()), FOLDER / "script.pt")


if __name__ == "__main__":
    main()
