"""The emitted C++ against the vendor's own, older stream and integer headers, which the hls4ml
package carries (Apache-2.0).

Those headers know no depth as a template argument and no blocks: the depths are taken out of the
text, and vectors and blocks come from ours. What is left is checked by the vendor's declarations:
every read, write and stream parameter, and a dataflow body that is plain calls.
"""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

from streamtensor import core

ROOT = Path(__file__).resolve().parents[2]
MODULES = ["mlp", "layers", "narrow", "chunk"]  # the last has counters of nests

MLP = """func.func @main(%x: tensor<4x24xf32>, %w: tensor<24x32xf32>) -> tensor<4x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32xf32>) -> tensor<4x32xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x24xf32>, tensor<24x32xf32>) outs(%z : \
tensor<4x32xf32>) -> tensor<4x32xf32>
  %t = linalg.exp ins(%y : tensor<4x32xf32>) outs(%e : tensor<4x32xf32>) -> tensor<4x32xf32>
  return %t : tensor<4x32xf32>
}"""

NARROW = """func.func @main(%x: tensor<2x128xi8>, %w: tensor<32x2x128xi4>, %s: tensor<32x2xf16>) \
-> tensor<32x2xf32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<32x2xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<32x2xi32>) -> tensor<32x2xi32>
  %d = linalg.generic {indexing_maps = [affine_map<(n, g, k) -> (g, k)>, affine_map<(n, g, k) -> \
(n, g, k)>, affine_map<(n, g, k) -> (n, g)>],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<2x128xi8>, \
tensor<32x2x128xi4>) outs(%f : tensor<32x2xi32>) {
  ^bb0(%a: i8, %b: i4, %acc: i32):
    %p = arith.extsi %a : i8 to i32
    %q = arith.extsi %b : i4 to i32
    %m = arith.muli %p, %q : i32
    %r = arith.addi %acc, %m : i32
    linalg.yield %r : i32
  } -> tensor<32x2xi32>
  %o = tensor.empty() : tensor<32x2xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, g) -> (n, g)>, affine_map<(n, g) -> (n, \
g)>, affine_map<(n, g) -> (n, g)>],
      iterator_types = ["parallel", "parallel"]} ins(%d, %s : tensor<32x2xi32>, tensor<32x2xf16>) \
outs(%o : tensor<32x2xf32>) {
  ^bb0(%a: i32, %b: f16, %old: f32):
    %p = arith.sitofp %a : i32 to f32
    %q = arith.extf %b : f16 to f32
    %m = arith.mulf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<32x2xf32>
  return %y : tensor<32x2xf32>
}"""


def vendor_headers():
    package = importlib.util.find_spec("hls4ml")  # found, not imported: only its headers are wanted
    assert package, "tools/setup.sh installs hls4ml for its headers"
    return Path(package.origin).parent / "templates/vivado/ap_types"


def layers():
    """Three equal layers: a ring, converters, several readers."""
    text = [
        "func.func @main(%h0: tensor<8x16xf32>"
        + "".join(f", %w{i}: tensor<16x16xf32>" for i in range(3))
        + ") -> tensor<8x16xf32> {",
        "  %zero = arith.constant 0.0 : f32",
        "  %e = tensor.empty() : tensor<8x16xf32>",
        "  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>",
    ]
    shape = "tensor<8x16xf32>"
    for i in range(3):
        text += [
            f"  %m{i} = linalg.matmul ins(%h{i}, %w{i} : {shape}, tensor<16x16xf32>) outs(%z "
            f": {shape}) -> {shape}",
            f"  %h{i + 1} = linalg.add ins(%m{i}, %h{i} : {shape}, {shape}) outs(%e : "
            f"{shape}) -> {shape}",
        ]
    return "\n".join(text + [f"  return %h3 : {shape}", "}"])


@pytest.mark.parametrize("name", MODULES)
def test_compiles_with_vendor_headers(name, tmp_path):
    source = tmp_path / f"{name}.mlir"
    chunk = (ROOT / "tests/models/chunk.mlir").read_text()
    source.write_text({"mlp": MLP, "narrow": NARROW, "chunk": chunk}.get(name) or layers())
    subprocess.run(
        [core.find_file(core.COMPILER), "compile", source, "-o", tmp_path / "design"],
        check=True,
        capture_output=True,
    )
    (emitted,) = (tmp_path / "design/hls").glob("*.cpp")
    text, streams = re.subn(r"(hls::stream<[\w:<>]+), \d+>", r"\1>", emitted.read_text())
    assert streams > 0 and "ST_PROCESS(" in text
    assert name != "chunk" or re.search(r"\bap_uint<\d> ", text)
    text = text.replace(
        "#ifndef ST_PROCESS", "#undef ST_PROCESS\n#undef ST_REGION_END\n#ifndef ST_PROCESS"
    )
    (tmp_path / "vendor.cpp").write_text(text)
    command = [
        "g++",
        "-std=c++17",
        "-fsyntax-only",
        "-Wno-unknown-pragmas",
        "-I",
        vendor_headers(),
        "-I",
        emitted.parent,
        "-I",
        emitted.parent / "csim",
        tmp_path / "vendor.cpp",
    ]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    # and it is a check: a call that the vendor lacks fails
    (tmp_path / "vendor.cpp").write_text(text.replace(".write(", ".put(", 1))
    assert subprocess.run(command, capture_output=True).returncode != 0
