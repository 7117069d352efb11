#!/usr/bin/env python3
"""Writes tests/reference/images: one small picture in every form that is read, drawn and encoded by Pillow, and
beside each what Pillow decodes it to (NAME.ppm, upright, without alpha). Run by hand; needs Pillow with AVIF and
numpy, and for HEIC the programs heif-enc and heif-convert of libheif.

    python3 tests/reference/draw_images.py tests/reference/images
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

WIDTH, HEIGHT = 36, 24
folder = Path(sys.argv[1])
y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
rgb = np.stack([255 * x / WIDTH, 255 * y / HEIGHT, 128 + 100 * np.sin(x / 5) * np.cos(y / 4)], -1).astype(np.uint8)
color = Image.fromarray(rgb)
gray = color.convert("L")
alpha = Image.fromarray(np.dstack([rgb, (x * 7 % 256).astype(np.uint8)]))


def plain(image):
    if image.mode.startswith("I;16") or image.mode == "I":
        values = np.asarray(image).astype(np.float64)
        return Image.fromarray(np.rint(values * 255 / 65535).astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "P", "PA"):
        return Image.fromarray(np.asarray(image.convert("RGBA"))[:, :, :3].copy())
    return image.convert("RGB")


def write(name, image, **options):
    image.save(folder / name, **options)
    stored = Image.open(folder / name)
    plain(ImageOps.exif_transpose(stored)).save(folder / (name + ".ppm"))


write("baseline_444.jpg", color, quality=95, subsampling=0)
write("baseline_422.jpg", color, quality=95, subsampling=1)
write("baseline_420.jpg", color, quality=95, subsampling=2)
write("optimized.jpg", color, quality=60, optimize=True)
write("progressive.jpg", color, quality=90, progressive=True)
write("restarts.jpg", color, quality=90, restart_marker_rows=1)
write("gray.jpg", gray, quality=95)
write("gray_progressive.jpg", gray, quality=95, progressive=True)
write("cmyk.jpg", color.convert("CMYK"), quality=95)
for orientation in range(1, 9):
    exif = Image.Exif()
    exif[0x0112] = orientation
    write(f"turned_{orientation}.jpg", color, quality=95, subsampling=0, exif=exif)
write("color.png", color)
write("gray.png", gray)
write("gray16.png", Image.fromarray((np.asarray(gray).astype(np.uint16) * 257)))
write("bits.png", gray.convert("1"))
write("palette.png", color.quantize(16))
write("palette_transparent.png", color.quantize(16), transparency=3)
write("alpha.png", alpha)
write("gray_alpha.png", alpha.convert("LA"))
write("color.bmp", color)
write("gray.bmp", gray)
write("bits.bmp", gray.convert("1"))
write("palette.bmp", color.quantize(64))
write("plain.tif", color)
write("lzw.tif", color, compression="tiff_lzw")
write("deflate.tiff", color, compression="tiff_adobe_deflate")
write("gray.tif", gray)
write("lossy.webp", color, quality=90)
write("lossless.webp", color, lossless=True)
write("alpha.webp", alpha, lossless=True, exact=True)
write("palette.gif", color.quantize(64), interlace=0)
write("interlaced.gif", color.quantize(64), interlace=1)
write("animated.gif", color.quantize(64), save_all=True, append_images=[gray.quantize(16)], duration=50)
write("color.avif", color, quality=90, subsampling="4:4:4")
subprocess.run(["heif-enc", "-q", "95", "-p", "chroma=444", "-o", folder / "color.heic", folder / "color.png"], check=True)
with tempfile.TemporaryDirectory() as here:
    subprocess.run(["heif-convert", folder / "color.heic", here + "/color.png"], check=True)
    Image.open(here + "/color.png").convert("RGB").save(folder / "color.heic.ppm")
write("color.ppm", color)
write("gray.pgm", gray)
write("bits.pbm", gray.convert("1"))
