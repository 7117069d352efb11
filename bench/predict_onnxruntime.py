#!/usr/bin/env python3
"""`tandem predict` on a folder, and ONNX Runtime on the same pictures with the same cores, in turns.

    python3 bench/predict_onnxruntime.py --run RUN FOLDER [--repeat 12] [--tandem build/bin/tandem] [--cores 0,1]
                                         [--rounds 5] [--decoders pillow,opencv]

RUN is a run folder, for instance of `tandem train --data FOLDER --model resnet18 --steps 1 --out RUN`. Needs numpy,
onnxruntime, and Pillow or OpenCV (`python3 -m venv peers && peers/bin/pip install onnxruntime pillow
opencv-python-headless`, then peers/bin/python). --repeat: both sides read the folder so many times, for a folder of
few pictures; 500 pictures or more give steady figures.

ONNX Runtime gets what `tandem export --onnx` writes, batches of 32, and all cores for its operators. Its pictures are
decoded and prepared by as many threads as there are cores, one batch ahead of the net; --decoders says by which
library, and both are measured where both are installed. Each side is a process of its own, bound to the same cores. A
process is measured with all pictures and with one, and the difference is the time of the others: starting, and reading
the weights, is left out.

Both sides resize to the same extents and cut the same middle out, as torchvision's Resize and CenterCrop. Pillow has
Tandem's filter and rounds its results to bytes. OpenCV has no such filter: it takes INTER_AREA where the picture
shrinks, so its probabilities differ more. The classes that both sides name and the largest difference of a
probability of any picture and class are printed.
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
    """Crop (height, width), shorter side (0: none), filter, mean, scale and whether the colors are R,G,B."""
    record = json.loads((run / "run.json").read_text())
    parameters = record["data_parameters"]
    height, width = record["data_shape"][-2:]
    is_rgb = parameters.get("color") == "rgb"
    mean = [float(value) for value in parameters.get("mean", "0").split(",")]  # of B,G,R
    return {"crop": (height, width), "side": int(parameters.get("resize", 0)),
            "cubic": parameters.get("interpolation") == "bicubic", "mean": mean[::-1] if is_rgb else mean,
            "scale": float(parameters.get("scale", 1)), "rgb": is_rgb}


def middle(pixels, how):
    """As CenterCrop: round() takes a half to the even pixel."""
    height, width = how["crop"]
    top, left = round((pixels.shape[0] - height) / 2), round((pixels.shape[1] - width) / 2)
    return pixels[top:top + height, left:left + width]


def extents(width, height, how):
    """As Resize: the longer side is rounded down. Without `resize` the picture becomes as small as the crop allows."""
    rows, columns = how["crop"]
    side = how["side"]
    by_width = width <= height if side else columns * height >= rows * width
    given = side or (columns if by_width else rows)
    return (given, given * height // width) if by_width else (given * width // height, given)


def by_pillow(path, how):
    import numpy
    from PIL import Image
    image = Image.open(path).convert("RGB")
    kind = Image.Resampling.BICUBIC if how["cubic"] else Image.Resampling.BILINEAR
    image = image.resize(extents(*image.size, how), kind)
    pixels = middle(numpy.asarray(image), how)
    return pixels if how["rgb"] else pixels[:, :, ::-1]


def by_opencv(path, how):
    import cv2
    image = cv2.imread(str(path), cv2.IMREAD_COLOR)
    height, width = image.shape[:2]
    size = extents(width, height, how)
    larger = cv2.INTER_CUBIC if how["cubic"] else cv2.INTER_LINEAR
    image = cv2.resize(image, size, interpolation=cv2.INTER_AREA if size[0] < width else larger)
    pixels = middle(image, how)
    return pixels[:, :, ::-1] if how["rgb"] else pixels


def run_peer(arguments):
    """Prints the probabilities of each picture by its path."""
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
    paths = (pictures_of(arguments.folder) * arguments.repeat)[:arguments.most]
    mean = numpy.array(how["mean"], numpy.float32)

    def prepare(path):
        pixels = (read(path, how).astype(numpy.float32) - mean) * numpy.float32(how["scale"])
        return pixels.transpose(2, 0, 1)

    found = []
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        batches = [paths[i:i + BATCH] for i in range(0, len(paths), BATCH)]
        ahead = [pool.submit(prepare, path) for path in batches[0]]
        for i in range(len(batches)):
            now = ahead
            ahead = [pool.submit(prepare, path) for path in batches[i + 1]] if i + 1 < len(batches) else []
            rows = numpy.stack([one.result() for one in now])
            scores = session.run(None, {name: rows})[0].reshape(len(rows), -1)
            shares = numpy.exp(scores - scores.max(1, keepdims=True))
            found += (shares / shares.sum(1, keepdims=True)).tolist()
    print(json.dumps({str(path): one for path, one in zip(paths, found)}))


# ---- both sides ---------------------------------------------------------------------------------------------

def timed(command, cores):
    begin = time.perf_counter()
    done = subprocess.run(["taskset", "-c", cores] + [str(word) for word in command], capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{done.stderr}")
    return seconds, done.stdout


def probabilities_of(output, names):
    """By path, of what `tandem predict --json` printed; a picture that could not be used is left out."""
    numbers = {name: number for number, name in enumerate(names)}
    result = {}
    for picture in json.loads(output):
        if "scores" in picture:
            result[picture["path"]] = row = [0.0] * len(names)
            for score in picture["scores"]:
                row[numbers[score["class"]]] = score["probability"]
    return result


def agreement(ours, theirs):
    both = ours.keys() & theirs.keys()
    same = sum(ours[path].index(max(ours[path])) == theirs[path].index(max(theirs[path])) for path in both)
    largest = max((abs(a - b) for path in both for a, b in zip(ours[path], theirs[path])), default=0)
    return f"same class: {same} of {len(both)}, largest difference of a probability {largest:.1e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--run", type=pathlib.Path, required=True)
    parser.add_argument("--repeat", type=int, default=1)
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
        ours = [arguments.tandem, "predict", "--run", arguments.run, "--top", len(names), "--json"]
        sides = {"tandem": (ours + [arguments.folder] * arguments.repeat, ours + paths[:1])}
        for name in decoders:
            peer = [sys.executable, __file__, "--run", arguments.run, "--onnx", onnx, "--peer", name, "--repeat",
                    arguments.repeat, arguments.folder]
            sides[f"ONNX Runtime, {name}"] = (peer, peer + ["--most", "1"])
        rates, found = {name: [] for name in sides}, {}
        count = len(paths) * arguments.repeat
        for _ in range(arguments.rounds):
            for name, (all_of_them, one) in sides.items():
                start, _ = timed(one, arguments.cores)
                seconds, output = timed(all_of_them, arguments.cores)
                rates[name].append((count - 1) / (seconds - start))
                found[name] = probabilities_of(output, names) if name == "tandem" else json.loads(output)
    print(f"{count} pictures, cores {arguments.cores}, {arguments.rounds} rounds in turns; images/s")
    base = statistics.median(rates["tandem"])
    for name, values in rates.items():
        middle_rate = statistics.median(values)
        line = f"{name:<22} median {middle_rate:8.1f}, {min(values):.1f} to {max(values):.1f}"
        if name != "tandem":
            line += f"; tandem is {base / middle_rate:.2f} of it; {agreement(found['tandem'], found[name])}"
        print(line)


if __name__ == "__main__":
    main()
