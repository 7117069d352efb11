"""Part `soak` of scripts/gpu-check: training for a while; memory, speed and loss must not drift."""

import csv
import os
import pathlib
import signal
import subprocess
import time


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip()[:160] if lines else "no output"


def gpu_memory(process):
    """MiB that a process uses on the GPUs; 0 if nvidia-smi does not report it."""
    try:
        text = subprocess.run(["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"],
                              stdout=subprocess.PIPE, text=True, timeout=20).stdout
        used = [line.split(",") for line in text.strip().splitlines() if "," in line]
        mine = [int(mib) for pid, mib in used if int(pid) == process and mib.strip().isdigit()]
        return sum(mine) or sum(int(mib) for _, mib in used if mib.strip().isdigit())
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return 0


def host_memory(process):
    try:
        pages = int(pathlib.Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, IndexError):
        return 0


def training_rows(run):
    """The rows of training steps in the metrics of a run folder."""
    if not (run / "metrics.csv").exists():
        return []
    with open(run / "metrics.csv") as file:
        return [row for row in csv.DictReader(file) if row.get("split") == "train"]


def middle(values):
    return sorted(values)[len(values) // 2]


def soak(check, arguments):
    seconds = arguments.soak_seconds
    name = f"soak {seconds} s cuda:0,0"
    out, log = check.work / "soak", check.work / "soak.log"
    with open(log, "w") as output:
        process = subprocess.Popen(
            [check.program("tandem"), "train", "--data", "synthetic", "--net", "cifar10_quick", "--devices", "cuda:0,0",
             "--batch", "128", "--steps", "100000000", "--test-interval", "2000", "--out", str(out)],
            cwd=check.work, env=check.environment, stdout=output, stderr=subprocess.STDOUT)
        memory, begin = [], time.time()
        while time.time() - begin < seconds and process.poll() is None:
            time.sleep(min(5, seconds / 10))
            memory.append((host_memory(process.pid), gpu_memory(process.pid)))
        if process.poll() is not None:
            check.ok(name, False, "it ended by itself: " + last_line(log.read_text()))
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            check.ok(name, False, "Ctrl-C did not end it within a minute")
            return
    rows = training_rows(out)
    losses, rates = ([float(row[column]) for row in rows] for column in ("loss", "images_per_second"))
    fifth = max(len(memory) // 5, 1)
    early, late = memory[fifth:2 * fifth] or memory, memory[-fifth:]
    grown = [max(m[i] for m in late) - max(m[i] for m in early) for i in (0, 1)] if memory else [0, 0]
    fifth = max(len(rows) // 5, 1)
    slower = middle(rates[fifth:2 * fifth] or rates) / middle(rates[-fifth:]) if rates else 0
    finite = bool(losses) and all(loss == loss and loss < 1e6 for loss in losses)
    check.ok(name, finite and grown[0] < 32 and grown[1] < 32 and slower < 1.2,
             f"{len(losses)} losses, {losses[0]:.3f} to {losses[-1]:.3f}; {middle(rates):.0f} images/s, at the end "
             f"{slower:.2f}x slower; memory grew by {grown[0]:.0f} MiB on the host, {grown[1]:.0f} MiB on the GPU"
             if losses else "no losses were logged: " + last_line(log.read_text()))
