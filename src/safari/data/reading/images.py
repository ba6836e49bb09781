"""Folders of images: one folder a class, or one a client with one folder a class in it."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from safari.data.reading.options import Options
from safari.data.samples import Samples, numbered
from safari.errors import InputError, check

IMAGES = (".png", ".jpg", ".jpeg")


def image_files(folder: Path) -> list[Path]:
    """The images that lie in a folder."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGES and path.name[0] != ".")


def folders_in(folder: Path) -> list[Path]:
    """The folders in a folder."""
    return sorted(path for path in folder.iterdir() if path.is_dir() and path.name[0] != ".")


def holds_images(folder: Path) -> bool:
    """Whether a folder holds one folder of images a class, or such folders of clients."""
    return any(image_files(inner) for inner in folders_in(folder)) or holds_clients(folder)


def holds_clients(folder: Path) -> bool:
    """Whether the folders in a folder are clients, each with one folder a class."""
    return any(image_files(inner) for client in folders_in(folder) for inner in folders_in(client))


def read_images(folder: Path, options: Options) -> Samples:
    """The samples in a folder of images, called by their folders."""
    by_client = holds_clients(folder)
    holders = folders_in(folder) if by_client else [folder]
    found = [
        (holder.name, kind.name, file)
        for holder in holders
        for kind in folders_in(holder)
        for file in image_files(kind)
    ]
    names = options.labels or numbered(list({kind for _, kind, _ in found}))
    for _, kind, file in found:
        hint = f"lies in a folder {kind}, which is none of labels: {', '.join(names)}"
        check(kind in names, options.key, str(file), hint)
    said = f'every image has the label "{names[0]}"; two classes are needed'
    check(options.extra or len(names) > 1, options.key, str(folder), said)
    x = stacked(_opened(file for *_, file in found), [str(file) for *_, file in found], options.key)
    place = {name: number for number, name in enumerate(names)}
    y = np.array([place[kind] for _, kind, _ in found], np.int32)
    samples = Samples(x, y, names, None, None, None, folder.name, folder.name)
    if by_client and options.client is not False:
        clients = numbered(list({client for client, *_ in found}))
        number = {name: place for place, name in enumerate(clients)}
        holder = np.array([number[client] for client, *_ in found], np.int32)
        samples = replace(samples, client=holder, clients=clients)
    return options.finish(samples)


def _opened(files: Iterable[Path]) -> Iterable[Any]:
    from PIL import Image

    for file in files:
        try:
            with Image.open(file) as image:
                yield image.convert("L" if image.mode in ("1", "L") else "RGB")
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            said = " ".join(str(error).split())[:120]
            raise InputError("source", str(file), f"cannot be read as an image ({said})") from None


def stacked(images: Iterable[Any], names: list[str], key: str) -> np.ndarray:
    """Pillow's images as one array of bytes, samples first and channels last; grey ones have one channel."""
    pixels: list[np.ndarray] = []
    for image, name in zip(images, names, strict=True):
        found = np.asarray(image if image.mode in ("L", "RGB") else image.convert("RGB"), np.uint8)
        found = found[..., None] if found.ndim == 2 else found
        first = pixels[0].shape if pixels else found.shape
        hint = f"is {found.shape[1]} x {found.shape[0]} pixels, the first image {first[1]} x {first[0]}"
        check(found.shape[:2] == first[:2], key, name, f"{hint}; all must be of one size")
        pixels.append(found)
    channels = max(one.shape[-1] for one in pixels)
    return np.stack([np.broadcast_to(one, (*one.shape[:2], channels)) for one in pixels])
