#!/usr/bin/env python3
"""Writes tests/reference/resized.txt: small pictures as Pillow resizes them to bytes and torchvision crops their middle.
Run by hand; needs Pillow, torchvision and numpy. tests/data/image_resize_test.cpp draws the same pictures.

    python3 tests/reference/make_resized.py > tests/reference/resized.txt
"""
import numpy
import PIL
import torchvision
from PIL import Image
from torchvision.transforms import CenterCrop, InterpolationMode, Resize

# Width, height, channels, shorter side (0: the picture becomes as small as the crop allows), crop's width and height.
CASES = [
    (37, 23, 1, 8, 5, 5), (37, 23, 1, 8, 3, 3), (37, 23, 3, 8, 5, 5), (23, 37, 3, 9, 7, 8),
    (7, 5, 1, 12, 11, 11), (7, 5, 3, 0, 10, 7), (7, 5, 1, 0, 4, 3),
    (1, 1, 3, 3, 3, 3), (1, 1, 1, 5, 4, 3), (2, 61, 3, 4, 4, 3), (90, 1, 1, 2, 2, 2),
    (24, 16, 1, 8, 7, 7), (24, 16, 3, 8, 8, 8), (20, 15, 3, 15, 9, 11), (13, 9, 3, 0, 13, 9),
    (200, 151, 3, 7, 5, 6), (64, 401, 1, 9, 8, 7), (31, 31, 3, 30, 8, 5), (33, 32, 3, 33, 6, 6),
]


def pattern(width, height, channels, hard):
    """Hard: black and white only, so that a cubic filter leaves the range of bytes."""
    y, x, c = numpy.mgrid[0:height, 0:width, 0:channels]
    values = (x * 37 + y * 91 + x * y * 53 + c * (101 + 7 * x)) % 256
    if hard:
        values = numpy.where(values > 127, 255, 0)
    return Image.fromarray(values.astype(numpy.uint8).squeeze(2) if channels == 1 else values.astype(numpy.uint8))


def resized(image, side, crop_width, crop_height, bicubic):
    if side > 0:
        mode = InterpolationMode.BICUBIC if bicubic else InterpolationMode.BILINEAR
        return Resize(side, mode)(image)
    width, height = image.size
    if crop_width * height >= crop_height * width:
        size = (crop_width, crop_width * height // width)
    else:
        size = (crop_height * width // height, crop_height)
    return image.resize(size, Image.Resampling.BICUBIC if bicubic else Image.Resampling.BILINEAR)


print(f"# By make_resized.py with Pillow {PIL.__version__} and torchvision {torchvision.__version__.split('+')[0]}: width, "
      "height and channels")
print("# of a picture, whether it is of two values, the filter, the shorter side, the crop's width and height, and its "
      "bytes.")
for width, height, channels, side, crop_width, crop_height in CASES:
    for hard in (0, 1):
        for bicubic in (False, True):
            image = resized(pattern(width, height, channels, hard), side, crop_width, crop_height, bicubic)
            crop = CenterCrop((crop_height, crop_width))(image)
            print(width, height, channels, hard, "bicubic" if bicubic else "bilinear", side, crop_width, crop_height,
                  numpy.asarray(crop).tobytes().hex())
