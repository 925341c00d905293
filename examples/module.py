"""Compiles a PyTorch module into a design and calls the design in its place."""

import sys

import torch

import streamtensor


class Block(torch.nn.Module):
    """The feed-forward half of a transformer layer."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


torch.manual_seed(0)
block, example = Block(64).eval(), torch.randn(8, 64)

with streamtensor.compile(block, (example,), platform="u55c") as design, torch.no_grad():
    x = torch.randn(8, 64)
    expected, found = block(x), design(x)

difference = float((found - expected).abs().max() / expected.abs().max())
print(f"largest difference {difference:.0e} of the largest value")
sys.exit(difference > 1e-4)
