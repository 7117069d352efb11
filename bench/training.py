#!/usr/bin/env python3
"""Training steps of ours and of PyTorch, alternately, held against what this machine can do.

    cmake --build --preset release --target bench_training
    python3 bench/training.py [--python PYTHON] [--onnxruntime PYTHON]
                              [--nets alexnet,googlenet,resnet18,mobilenet,squeezenet,cifar10_quick]
                              [--precisions float32,bfloat16] [--isa avx2] [--recompute] [--rounds 3] [--steps 5]
                              [--out FOLDER]
    python3 bench/training.py --hosts 2 [--rate 1gbit] [--strategy auto] ...   (root; scripts/hosts)
    python3 bench/training.py --ranks 2 ...

A net with a slash is a model of torchvision or timm (torchvision/vit_b_16): PyTorch exports it for training, Tandem
imports the ONNX file, and both begin with the weights in it. It needs torchvision or timm and onnx, too.
PYTHON is an interpreter that has torch and numpy (`python3 -m venv peers && peers/bin/pip install torch numpy`);
without one the peer is left out, with a message. All do the same work: the net from the same prototxt, the same
initial weights and batch, SGD with momentum and decay; the number of weights and the loss of the first step are
compared, and the loss must fall. PyTorch runs stock (no environment but the number of threads) and tuned by hand
(training_torch.py says how; here: the allocator keeps its memory). ONNX Runtime's training build, of the interpreter
that --onnxruntime names, trains the nets that it can express in float32; its update is plain SGD, which does less
(training_onnxruntime.py). The limit is the rate of multiply-adds of
this machine's cores, measured in the same run, over the net's convolutions and inner products done directly.
--isa avx2 caps both sides and the limit, so that an AVX-512 machine measures as one without: ONEDNN_MAX_CPU_ISA
for Tandem's kernels and for oneDNN on both sides, ATEN_CPU_CAPABILITY and MKL_ENABLE_INSTRUCTIONS for PyTorch. A
few loops of ours that only move memory, such as the update, are not capped.
--hosts compares ranks of one device of one thread, one on each pretended host with links of --rate, and --ranks
those on this host that send over loopback, beside as many devices in one process of ours: PyTorch tuned as ranks of
DistributedDataParallel over gloo. The batch is that of all ranks. Normalization is of each rank's rows on both sides.
--busy compares beside other processes that compute at a lower priority.
Each number is the median over all steps of all rounds. Writes training.csv and training.svg to FOLDER.
"""
import argparse
import contextlib
import csv
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parents[1]
BATCHES = {"alexnet": 128, "googlenet": 32, "resnet18": 32, "mobilenet": 32, "squeezenet": 32, "cifar10_quick": 100,
           "torchvision/vit_b_16": 16}
MODEL_SIDE = 224
NETS = [net for net in BATCHES if "/" not in net]
OVER_RANKS = ["alexnet", "googlenet", "resnet18"]
ONNX_NETS = ["squeezenet", "cifar10_quick"]  # that ONNX Runtime has all gradients for
# Both dropout and the order of sums differ.
FIRST_LOSS_TOLERANCE = 0.02
COLORS = {"tandem": "#1f78b4", "PyTorch tuned": "#fdbf6f", "PyTorch stock": "#cab2d6", "ONNX Runtime": "#b2df8a",
           "tandem, ranks": "#1f78b4", "tandem, one process": "#a6cee3", "PyTorch, ranks": "#fdbf6f"}


# What --isa sets for every program.
CAPS = {"avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}}

# What mpirun must hand to the ranks of another host.
PASSED = {"OMP_NUM_THREADS", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "ONEDNN_MAX_CPU_ISA",
          "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS"}


def environment(kind, threads, isa):
    """What a program runs with. OPENBLAS_* may hold choices for another library and slow the peer down."""
    result = {k: v for k, v in os.environ.items() if not k.startswith(("OPENBLAS_", "OMP_", "MKL_", "KMP_", "MALLOC_"))}
    if not kind.startswith("tandem"):
        result["OMP_NUM_THREADS"] = str(threads)
    if kind in ("PyTorch tuned", "PyTorch, ranks"):
        result.update(MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_=str(1 << 40), MALLOC_TOP_PAD_=str(1 << 26))
        if "avx512" in cpu()[1]:
            result["ATEN_CPU_CAPABILITY"] = "avx512"
    result.update(CAPS.get(isa, {}))
    return result


def cpu():
    text = pathlib.Path("/proc/cpuinfo").read_text() if os.path.exists("/proc/cpuinfo") else ""
    name = re.search(r"model name\s*: (.*)", text)
    flags = re.search(r"flags\s*: (.*)", text)
    return name.group(1) if name else platform.processor(), flags.group(1) if flags else ""


def ask(command, env=None):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=env)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return json.loads(next(line for line in reversed(done.stdout.splitlines()) if line.startswith("{")))


def version_of(python, modules):
    """Of the first of the modules; "" where one is missing."""
    program = f"import {modules}; print({modules.split(',')[0]}.__version__)"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True)
    return done.stdout.strip().splitlines()[-1] if done.returncode == 0 else ""


def with_own_statistics(prototxt, file):
    """The net with BatchNorm of each rank's rows, as DistributedDataParallel has it."""
    file.write_text(re.sub(r"batch_norm_param\s*{", "batch_norm_param { per_device: true", prototxt.read_text()))
    return file


def over_ranks(a, command, env, is_ours):
    """The command as the ranks of a job, each with one thread, and options that say how they reach each other."""
    settings = [word for name in sorted(PASSED & env.keys()) for word in ("-x", f"{name}={env[name]}")]
    if a.hosts:
        launcher = [ROOT / "scripts" / "hosts", "--rate", a.rate, a.hosts, *settings]
        where = ["--master", "10.77.0.1:29500", "--interface", "eth0"]
    else:
        launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "tcp,self",
                    "--mca", "btl_tcp_if_include", "lo", "-n", a.ranks, *settings]
        where = ["--master", "127.0.0.1:29500", "--interface", "lo"]
    return [*launcher, *command, "--threads", 1, *(["--devices", "cpu:1", "--strategy", a.strategy] if is_ours else where)]


class Case:
    """One net in one precision, by every program, over the rounds."""

    def __init__(self, net, precision):
        self.net, self.precision, self.answers = net, precision, {}

    def add(self, kind, answer):
        self.answers.setdefault(kind, []).append(answer)

    def rate(self, kind):
        seconds = [s for answer in self.answers[kind] for s in answer["seconds"]]
        return self.answers[kind][0]["batch"] / statistics.median(seconds)

    def spread(self, kind):
        rates = [a["batch"] / statistics.median(a["seconds"]) for a in self.answers[kind]]
        return min(rates), max(rates)

    def memory(self, kind):
        return max(answer["peak_bytes"] for answer in self.answers[kind])

    def ours(self):
        return next(iter(self.answers))

    def limit(self, peak):
        return peak[self.precision] / self.answers[self.ours()][0]["operations"]

    def strategies(self, kind):
        return " / ".join(sorted({answer.get("strategy", "") for answer in self.answers[kind]}))

    def check(self):
        """What is not the same work, as messages."""
        found = []
        mine = self.answers[self.ours()][0]
        for kind, answers in self.answers.items():
            theirs = answers[0]
            if theirs["weights"] != mine["weights"]:
                found.append(f"{kind} trains {theirs['weights']} weights, Tandem {mine['weights']}")
            first = theirs["losses"][0]
            if abs(first - mine["losses"][0]) > FIRST_LOSS_TOLERANCE * abs(mine["losses"][0]):
                found.append(f"{kind}'s loss begins at {first:.4f}, Tandem's at {mine['losses'][0]:.4f}")
            if not theirs["losses"][-1] < first:
                found.append(f"{kind}'s loss does not fall: {first:.4f} to {theirs['losses'][-1]:.4f}")
        return [f"{self.net} {self.precision}: {text}" for text in found]


def is_model(net):
    return "/" in net


def folder_of(net, folder):
    return folder / net.replace("/", "_")


def net_of(net, folder):
    """What Tandem's program takes as a net, with options."""
    if not is_model(net):
        return [net]
    run = folder_of(net, folder) / "run"
    return [run / "net.prototxt", "--weights", run / "best.safetensors"]


def prepare(a, net, folder):
    """Writes the first weights and the batch for the peers."""
    env, place = environment("tandem", a.threads, a.isa), folder_of(net, folder)
    if is_model(net):
        place.mkdir()
        for command in ([a.python, ROOT / "bench" / "training_torch.py", net, place, "--export", MODEL_SIDE],
                        [a.program.parent / "tandem", "import", place / "net.onnx", "--out", place / "run"]):
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=env)
            if done.returncode != 0:
                raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    ask([a.program, *net_of(net, folder), "--batch", a.batch or BATCHES.get(net, 32), "--write", place], env)


def command_of(a, case, kind, folder):
    """The program's words and environment."""
    counts = ["--steps", a.steps, "--warm-up", a.warm_up]
    count = a.hosts or a.ranks
    env = environment(kind, 1 if kind.endswith("ranks") else a.threads, a.isa)
    place = folder_of(case.net, folder)
    prototxt = case.net if is_model(case.net) else ROOT / "examples" / "models" / f"{case.net}.prototxt"
    if kind == "ONNX Runtime":
        return [a.onnxruntime, ROOT / "bench" / "training_onnxruntime.py", prototxt, place, *counts,
                "--threads", a.threads], env
    counts += ["--precision", case.precision]
    if kind.startswith("tandem"):
        net = [with_own_statistics(prototxt, folder / f"{case.net}.prototxt")] if count else net_of(case.net, folder)
        command = [a.program, *net, "--batch", a.batch or BATCHES.get(case.net, 32), *counts]
        command += ["--recompute"] if a.recompute else []
    else:
        command = [a.python, ROOT / "bench" / "training_torch.py", prototxt, place,
                   "--mode", "stock" if kind == "PyTorch stock" else "tuned", *counts]
    if kind.endswith("ranks"):
        return over_ranks(a, command, env, kind.startswith("tandem")), env
    if kind == "tandem, one process":
        command += ["--devices", f"cpu:{count}", "--strategy", a.strategy]
        return command + ["--threads", count], env
    return command + ["--threads", a.threads], env


def runs(case, kind):
    return kind != "ONNX Runtime" or (case.net in ONNX_NETS and case.precision == "float32")


@contextlib.contextmanager
def busy(count):
    """Other work on the machine: processes that compute at a lower priority."""
    others = [subprocess.Popen(["nice", "-n", "10", sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def measure(a, kinds, folder):
    cases = [Case(net, precision) for net in a.nets for precision in a.precisions]
    for net in a.nets:
        prepare(a, net, folder)
    for number in range(a.rounds):
        for case in cases:
            for kind in [kind for kind in kinds if runs(case, kind)]:
                with busy(a.busy):
                    case.add(kind, ask(*command_of(a, case, kind, folder)))
                print(f"round {number + 1}: {case.net} {case.precision} {kind}: {case.rate(kind):.1f} images/s",
                      file=sys.stderr, flush=True)
    return cases


def rows_of(cases, peak):
    for case in cases:
        limit = case.limit(peak) if peak[case.precision] > 0 else None
        for kind in case.answers:
            rate, (low, high) = case.rate(kind), case.spread(kind)
            yield {"net": case.net, "precision": case.precision, "batch": case.answers[kind][0]["batch"], "program": kind,
                   "strategy": case.strategies(kind) if kind != "tandem" else "",
                   "images_per_second": round(rate, 2), "slowest_round": round(low, 2), "fastest_round": round(high, 2),
                   "share_of_limit": round(rate / limit, 3) if limit else "",
                   "tandem_over_this": round(case.rate(case.ours()) / rate, 2),
                   "peak_memory_mib": round(case.memory(kind) / 2 ** 20),
                   "first_loss": round(case.answers[kind][0]["losses"][0], 5),
                   "last_loss": round(case.answers[kind][0]["losses"][-1], 5)}


def print_table(rows):
    print("| net | precision | batch | program | images/s (rounds) | of the limit | Tandem over it | peak memory | loss |")
    print("|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        share = f"{r['share_of_limit']:.2f}" if r["share_of_limit"] != "" else "-"
        print(f"| {r['net']} | {r['precision']} | {r['batch']} | {r['program']}"
              f"{': ' + r['strategy'] if r['strategy'] else ''} | {r['images_per_second']:.1f} "
              f"({r['slowest_round']:.1f} - {r['fastest_round']:.1f}) | {share} | {r['tandem_over_this']:.2f} | "
              f"{r['peak_memory_mib']} MiB | {r['first_loss']:.3f} to {r['last_loss']:.3f} |")


def write_svg(path, rows, title):
    """Bars of images/s, each net and precision scaled to its own fastest, since nets differ a hundredfold."""
    groups = {}
    for row in rows:
        groups.setdefault(f"{row['net']} {row['precision']}", []).append(row)
    bar, gap, left, width = 18, 16, 170, 420
    height = 40 + sum(len(group) * bar + gap for group in groups.values())
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 150}" height="{height}" '
             'font-family="sans-serif" font-size="12">', f'<rect width="100%" height="100%" fill="white"/>',
             f'<text x="8" y="20" font-weight="bold">{escape(title)}</text>']
    y = 36
    for name, group in groups.items():
        longest = max(row["images_per_second"] for row in group)
        lines.append(f'<text x="8" y="{y + bar - 5}">{escape(name)}</text>')
        for row in group:
            length = width * row["images_per_second"] / longest
            lines.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{bar - 3}" fill="{COLORS[row["program"]]}"/>')
            lines.append(f'<text x="{left + length + 4:.1f}" y="{y + bar - 5}">'
                         f'{row["images_per_second"]:.1f} {escape(row["program"])}</text>')
            y += bar
        y += gap
    path.write_text("\n".join(lines + ["</svg>"]) + "\n")


def arguments():
    parser = argparse.ArgumentParser(description="Training steps of Tandem and PyTorch, alternately")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "bin" / "bench_training")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has torch and numpy")
    parser.add_argument("--onnxruntime", default=sys.executable, help="an interpreter that has onnxruntime-training")
    parser.add_argument("--nets", help=f"default: {','.join(NETS)}; over ranks {','.join(OVER_RANKS)}")
    parser.add_argument("--batch", type=int, help="instead of each net's own")
    over = parser.add_mutually_exclusive_group()
    over.add_argument("--hosts", type=int, help="compare ranks, one on each of so many pretended hosts")
    over.add_argument("--ranks", type=int, help="compare so many ranks on this host")
    parser.add_argument("--rate", default="1gbit", help="of the hosts' links, as for scripts/hosts")
    parser.add_argument("--strategy", default="auto", help="of Tandem over ranks")
    parser.add_argument("--precisions", help="float32,bfloat16; with --isa avx2 float32")
    parser.add_argument("--isa", choices=sorted(CAPS), help="cap both sides and the limit to these instructions")
    parser.add_argument("--recompute", action="store_true", help="Tandem computes activations again: less memory")
    parser.add_argument("--busy", type=int, default=0, help="compare beside so many processes that compute at nice 10")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    a = parser.parse_args()
    joined = a.hosts or a.ranks
    a.threads = joined or a.threads
    a.nets = (a.nets or ",".join(OVER_RANKS if joined else NETS)).split(",")
    a.precisions = (a.precisions or ("float32" if a.isa or joined else "float32,bfloat16")).split(",")
    if joined and any(map(is_model, a.nets)):
        raise SystemExit("--ranks and --hosts take nets of this project only: the peer's BatchNorm is of each rank's rows")
    if not a.program.exists():
        raise SystemExit(f"{a.program} is not there: cmake --build --preset release --target bench_training")
    for precision in a.precisions:
        if precision not in ("float32", "bfloat16"):
            raise SystemExit(f"--precisions {precision}: there are float32 and bfloat16")
        if a.isa and precision == "bfloat16":
            raise SystemExit(f"--precisions bfloat16 needs AVX-512, which --isa {a.isa} excludes")
    if min(a.rounds, a.steps, a.warm_up, a.threads) < 1:
        raise SystemExit("--rounds, --steps, --warm-up and --threads: at least 1 each")
    return a


def find_kinds(a):
    """The programs to run, ours first, and the peers' versions as text."""
    kinds, versions = ["tandem"], []
    if a.hosts or a.ranks:
        kinds = ["tandem, ranks"] + (["tandem, one process"] if a.ranks else [])
    torch = version_of(a.python, "torch,numpy")
    if torch:
        kinds += ["PyTorch, ranks"] if a.hosts or a.ranks else ["PyTorch tuned", "PyTorch stock"]
        versions.append("PyTorch " + torch)
    else:
        print(f"{a.python} has no torch with numpy: PyTorch is left out (--python names an interpreter that has it)", file=sys.stderr)
    if a.hosts or a.ranks:
        return kinds, ", ".join(versions)
    onnx = version_of(a.onnxruntime, "onnxruntime,onnxruntime.training.api,onnx")
    if onnx:
        kinds.append("ONNX Runtime")
        versions.append(f"ONNX Runtime {onnx} (training)")
    else:
        print(f"{a.onnxruntime} has no onnxruntime-training with onnx: ONNX Runtime is left out (--onnxruntime names an "
              "interpreter that has them)", file=sys.stderr)
    return kinds, ", ".join(versions)


def main():
    a = arguments()
    kinds, versions = find_kinds(a)
    peak_of_machine = lambda: ask([a.program, "--peak", "--threads", a.threads], environment("tandem", a.threads, a.isa))
    before = peak_of_machine()
    with tempfile.TemporaryDirectory() as folder:
        cases = measure(a, kinds, pathlib.Path(folder))
    after = peak_of_machine()
    peak = {p: max(before[p], after[p]) for p in ("float32", "bfloat16")}
    rows = list(rows_of(cases, peak))
    capped = f", capped to {a.isa.upper()}" if a.isa else ""
    capped += f", beside {a.busy} busy processes" if a.busy else ""
    place = (f"{a.hosts} hosts with links of {a.rate}" if a.hosts else f"{a.ranks} ranks over loopback" if a.ranks
             else f"{a.threads} threads")
    print(f"{cpu()[0]}{capped}, {place}: {peak['float32'] / 1e9:.0f} GFLOP/s float32"
          + (f", {peak['bfloat16'] / 1e9:.0f} bfloat16" if peak["bfloat16"] else ", no bfloat16 products")
          + f"; {versions or 'no peers'}; {a.rounds} rounds of {a.steps} steps after {a.warm_up}\n")
    print_table(rows)
    a.out.mkdir(parents=True, exist_ok=True)
    with open(a.out / "training.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    write_svg(a.out / "training.svg", rows, f"Images a second in training, {place}{capped}")
    print(f"\nwritten: {a.out / 'training.csv'}, {a.out / 'training.svg'}")
    problems = [text for case in cases for text in case.check()]
    for text in problems:
        print(f"not the same work: {text}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
