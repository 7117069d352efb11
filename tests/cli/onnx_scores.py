"""Prints, as JSON, what ONNX Runtime computes of a model that takes pictures: a row of its output for each PPM file.

    python3 onnx_scores.py model.onnx a.ppm b.ppm ...

Needs numpy and onnxruntime.
"""
import json
import sys

import numpy
import onnxruntime


def picture(path):
    with open(path, "rb") as file:
        data = file.read()
    words = data.split(maxsplit=4)[:4]
    width, height = int(words[1]), int(words[2])
    pixels = numpy.frombuffer(data[-3 * width * height:], numpy.uint8).reshape(height, width, 3)
    return pixels.transpose(2, 0, 1)[None].astype(numpy.float32)


options = onnxruntime.SessionOptions()
options.log_severity_level = 3
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
name = session.get_inputs()[0].name
print(json.dumps([session.run(None, {name: picture(path)})[0][0].tolist() for path in sys.argv[2:]]))
