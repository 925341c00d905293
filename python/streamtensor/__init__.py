"""StreamTensor: compiles PyTorch models into stream dataflow accelerators.

>>> import torch, streamtensor
>>> network = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
>>> network, x = network.eval().requires_grad_(False), torch.ones(2, 16)
>>> design = streamtensor.compile(network, (x,), max_dsp="50%")
>>> torch.allclose(design(x), network(x), atol=1e-5)
True
>>> design.report.cycles_source, design.report.clock_mhz, design.report.deadlock
('simulated', 300, False)
>>> design.simulate(launches=2)["cycles"] > design.report.cycles
True
>>> design.compare(x).first_below(snr_db=100)
>>> slower = design.set(clock=200)
>>> slower.report.latency_ms > design.report.latency_ms
True
>>> found = streamtensor.sensitivity(network, x, "w8a8")
>>> sorted(each.layer for each in found.layers)
['0', '2']
>>> streamtensor.compile(network, (x,), quant=found.without(1)).report.quant
'w8a8,2=fp32'
"""

from typing import TYPE_CHECKING

from .errors import Error

if TYPE_CHECKING:  # else they are imported on first use
    from .api import Exported, compile, export
    from .design import Design, load
    from .dynamo import backend, last_design
    from .exploration.explore import explore
    from .layer_costs import sensitivity
    from .quantization.static_quantization import quantized

__version__ = "0.1.0"
__all__ = [
    "Design",
    "Error",
    "Exported",
    "__version__",
    "backend",
    "compile",
    "explore",
    "export",
    "last_design",
    "load",
    "quantized",
    "sensitivity",
]


def __getattr__(name):
    """Imports the rest on first use, because it imports PyTorch, which `--help` does not need."""
    if name in ("Design", "Exported", "compile", "export"):
        from . import api

        return getattr(api, name)
    if name == "load":
        from .design import load

        return load
    if name == "explore":
        from .exploration.explore import explore

        return explore
    if name == "quantized":
        from .quantization.static_quantization import quantized

        return quantized
    if name == "sensitivity":
        from .layer_costs import sensitivity

        return sensitivity
    if name in ("backend", "last_design"):
        from . import dynamo

        return getattr(dynamo, name)
    raise AttributeError(f"module 'streamtensor' has no attribute '{name}'")
