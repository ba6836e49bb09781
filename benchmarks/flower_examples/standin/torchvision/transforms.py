"""Stands in for the three transforms of torchvision that an example uses."""

import numpy as np
import torch


class Compose:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, image):
        for step in self.steps:
            image = step(image)
        return image


class ToTensor:
    def __call__(self, image):
        return torch.from_numpy(np.asarray(image, np.float32) / 255).permute(2, 0, 1)


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = (torch.tensor(part).view(-1, 1, 1) for part in (mean, std))

    def __call__(self, image):
        return (image - self.mean) / self.std
