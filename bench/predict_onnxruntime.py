#!/usr/bin/env python3
"""`tandem predict` on a folder, and ONNX Runtime on the same pictures with the same cores, in turns.

    python3 bench/predict_onnxruntime.py --run RUN FOLDER [--tandem build/bin/tandem] [--cores 0,1] [--rounds 5]

RUN is a run folder, for instance of `tandem train --data FOLDER --model resnet18 --steps 1 --out RUN`. Needs numpy,
onnxruntime, and Pillow or OpenCV (`python3 -m venv peers && peers/bin/pip install onnxruntime pillow
opencv-python-headless`, then peers/bin/python).

ONNX Runtime gets what `tandem export --onnx` writes, batches of 32, and all cores for its operators. Its pictures are
decoded and resized by as many threads as there are cores, one batch ahead of the net; --decoders pillow,opencv says by
which library, and both are measured where both are installed. Each side is a process of its own, bound to the same
cores. A process is measured with all pictures and with one, and the difference is the time of the others: starting,
and reading the weights, is left out. The classes that both sides name are compared; as decoders and the rounding of
sizes differ a little, a few of a net that has learnt little may differ.
"""
import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BATCH = 32
DECODERS = {"pillow": "PIL", "opencv": "cv2"}


def pictures_of(folder):
    endings = {".jpg", ".jpeg", ".png", ".webp", ".bmp"}
    return sorted(path for path in pathlib.Path(folder).rglob("*") if path.suffix.lower() in endings)


# ---- ONNX Runtime, in a process of its own ------------------------------------------------------------------

def preparation(run):
    """Crop (height, width), shorter side, mean, scale and whether the colours are R,G,B."""
    record = json.loads((run / "run.json").read_text())
    parameters = record["data_parameters"]
    height, width = record["data_shape"][-2:]
    is_rgb = parameters.get("color") == "rgb"
    mean = [float(value) for value in parameters.get("mean", "0").split(",")]  # of B,G,R
    return {"crop": (height, width), "side": int(parameters.get("resize", min(height, width))),
            "mean": mean[::-1] if is_rgb else mean, "scale": float(parameters.get("scale", 1)), "rgb": is_rgb}


def middle(pixels, how):
    height, width = how["crop"]
    top, left = (pixels.shape[0] - height) // 2, (pixels.shape[1] - width) // 2
    return pixels[top:top + height, left:left + width]


def extents(width, height, side):
    scale = side / min(width, height)
    return max(side, round(width * scale)), max(side, round(height * scale))


def by_pillow(path, how):
    import numpy
    from PIL import Image
    image = Image.open(path).convert("RGB")
    image = image.resize(extents(*image.size, how["side"]), Image.Resampling.BILINEAR)
    pixels = middle(numpy.asarray(image), how)
    return pixels if how["rgb"] else pixels[:, :, ::-1]


def by_opencv(path, how):
    import cv2
    image = cv2.imread(str(path), cv2.IMREAD_COLOR)
    height, width = image.shape[:2]
    shrinks = min(width, height) > how["side"]
    image = cv2.resize(image, extents(width, height, how["side"]),
                       interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
    pixels = middle(image, how)
    return pixels[:, :, ::-1] if how["rgb"] else pixels


def run_peer(arguments):
    """Prints the class of each picture by its path."""
    import numpy
    import onnxruntime
    how = preparation(arguments.run)
    read = by_pillow if arguments.peer == "pillow" else by_opencv
    if arguments.peer == "opencv":
        import cv2
        cv2.setNumThreads(1)
    threads = len(os.sched_getaffinity(0))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(arguments.onnx), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    paths = pictures_of(arguments.folder)[:arguments.most]
    mean = numpy.array(how["mean"], numpy.float32)

    def prepare(path):
        pixels = (read(path, how).astype(numpy.float32) - mean) * numpy.float32(how["scale"])
        return pixels.transpose(2, 0, 1)

    classes = []
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        batches = [paths[i:i + BATCH] for i in range(0, len(paths), BATCH)]
        ahead = [pool.submit(prepare, path) for path in batches[0]]
        for i in range(len(batches)):
            now = ahead
            ahead = [pool.submit(prepare, path) for path in batches[i + 1]] if i + 1 < len(batches) else []
            rows = numpy.stack([one.result() for one in now])
            scores = session.run(None, {name: rows})[0].reshape(len(rows), -1)
            classes += [int(one) for one in scores.argmax(1)]
    print(json.dumps({str(path): found for path, found in zip(paths, classes)}))


# ---- both sides ---------------------------------------------------------------------------------------------

def timed(command, cores):
    begin = time.perf_counter()
    done = subprocess.run(["taskset", "-c", cores] + [str(word) for word in command], capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{done.stderr}")
    return seconds, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--run", type=pathlib.Path, required=True)
    parser.add_argument("--tandem", type=pathlib.Path, default=ROOT / "build/bin/tandem")
    parser.add_argument("--cores", default=",".join(str(core) for core in sorted(os.sched_getaffinity(0))))
    parser.add_argument("--decoders", default="pillow,opencv")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", choices=DECODERS, help=argparse.SUPPRESS)
    parser.add_argument("--onnx", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--most", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        return run_peer(arguments)
    if importlib.util.find_spec("onnxruntime") is None:
        sys.exit("this Python has no onnxruntime")
    wanted = arguments.decoders.split(",")
    decoders = [name for name in wanted if importlib.util.find_spec(DECODERS[name]) is not None]
    if not decoders:
        sys.exit(f"this Python has none of {', '.join(DECODERS[name] for name in wanted)}")
    paths = pictures_of(arguments.folder)
    if len(paths) < 2:
        sys.exit(f"'{arguments.folder}' has fewer than two pictures")
    names = json.loads((arguments.run / "run.json").read_text())["class_names"]
    with tempfile.TemporaryDirectory() as folder:
        onnx = pathlib.Path(folder) / "net.onnx"
        subprocess.run([arguments.tandem, "export", "--run", arguments.run, "--onnx", onnx], check=True)
        ours = [arguments.tandem, "predict", "--run", arguments.run, "--top", "1", "--json"]
        sides = {"tandem": (ours + [arguments.folder], ours + paths[:1])}
        for name in decoders:
            peer = [sys.executable, __file__, "--run", arguments.run, "--onnx", onnx, "--peer", name, arguments.folder]
            sides[f"ONNX Runtime, {name}"] = (peer, peer + ["--most", "1"])
        rates, classes = {name: [] for name in sides}, {}
        for _ in range(arguments.rounds):
            for name, (all_of_them, one) in sides.items():
                start, _ = timed(one, arguments.cores)
                seconds, output = timed(all_of_them, arguments.cores)
                rates[name].append((len(paths) - 1) / (seconds - start))
                found = json.loads(output)
                classes[name] = found if name != "tandem" else {
                    each["path"]: names.index(each["scores"][0]["class"]) for each in found if "scores" in each}
    print(f"{len(paths)} pictures, cores {arguments.cores}, {arguments.rounds} rounds in turns; images/s")
    base = statistics.median(rates["tandem"])
    for name, values in rates.items():
        same = sum(found == classes["tandem"].get(path) for path, found in classes[name].items())
        print(f"{name:<22} median {statistics.median(values):8.1f}, {min(values):.1f} to {max(values):.1f}; "
              f"tandem is {base / statistics.median(values):.2f} of it; same class as tandem: {same} of {len(paths)}")


if __name__ == "__main__":
    main()
