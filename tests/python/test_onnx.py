"""ONNX models: each operator, quantized graphs, whole networks and designs against onnxruntime, and
what is refused.
"""

import importlib.util
import re
from pathlib import Path

import numpy
import onnx
import onnx_cases
import onnxruntime
import pytest
import torch
from conftest import stc
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import case, ints, model_of, random, reals, whole_model

import streamtensor
from streamtensor import cli
from streamtensor.errors import Error
from streamtensor.onnx import model as onnx_model
from streamtensor.onnx import node as onnx_node

QUANTIZED = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
PLAIN = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


def session(model, level=PLAIN):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.graph_optimization_level = 4, level
    options.intra_op_num_threads = 1
    # sums of products of u8 and s8 do not saturate, on any processor
    options.add_session_config_entry("session.x64quantprecision", "1")
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    return onnxruntime.InferenceSession(source, options)


def expected(model, feeds: dict, level=PLAIN) -> list[numpy.ndarray]:
    return session(model, level).run(None, feeds or {"unused": numpy.zeros(1, numpy.float32)})


def saved(model, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def found(path: Path, feeds: dict, **options) -> list[numpy.ndarray]:
    made = onnx_model.load(path, **options)
    given = [torch.from_numpy(numpy.array(feeds.get(name, [0.0]))) for name in made.names]
    given = [x.float() if name not in feeds else x for name, x in zip(made.names, given)]
    return [each.numpy() for each in made.module(*given)]


def difference(wanted: numpy.ndarray, given: numpy.ndarray, tolerance: float) -> str:
    """What differs; empty: nothing."""
    if (wanted.dtype, wanted.shape) != (given.dtype, given.shape):
        return f"{wanted.dtype} {wanted.shape} is {given.dtype} {given.shape}"
    if wanted.dtype != numpy.float32:
        return "" if numpy.array_equal(wanted, given) else f"{wanted} is {given}"
    finite = numpy.isfinite(wanted)
    largest = float(numpy.abs(wanted[finite]).max()) if finite.any() else 0
    close = numpy.allclose(wanted, given, rtol=tolerance, atol=tolerance * largest, equal_nan=True)
    return "" if close else f"{numpy.nanmax(numpy.abs(wanted - given))} of {largest}"


def compared(made: onnx_cases.Case, constant: bool, folder: Path) -> str:
    model, feeds = model_of(made, constant)
    pairs = zip(expected(model, feeds), found(saved(model, folder), feeds))
    says = "; ".join(filter(None, (difference(*pair, made.tolerance) for pair in pairs)))
    return f"{made.label}{' of constants' if constant else ''}: {says}" if says else ""


GROUPS = {
    name.removeprefix("_of_"): getattr(onnx_cases, name)
    for name in dir(onnx_cases)
    if name.startswith("_of_")
}


@pytest.mark.parametrize("group", GROUPS)
def test_operators_give_what_onnxruntime_gives(group, tmp_path):
    """Computed from inputs, and folded where all of them are constants."""
    wrong = [
        compared(each, constant, tmp_path) for each in GROUPS[group]() for constant in (False, True)
    ]
    assert list(filter(None, wrong)) == []


def test_every_operator_has_a_case():
    seen = {f"{each.domain}:{each.op}".removeprefix(":") for each in onnx_cases.cases()}
    seen |= set(onnx_cases.QUANTIZED) | set(onnx_cases.UNTESTABLE)
    ours = {name for name in onnx_node.OPERATORS if not name.startswith("integer:")}
    assert ours - seen == set()


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(seed, tmp_path):
    model, feeds = onnx_cases.random_graph(seed)
    pairs = zip(expected(model, feeds), found(saved(model, tmp_path), feeds))
    assert [difference(*pair, 1e-5) for pair in pairs] == [""] * len(model.graph.output)


# --- quantized graphs ---


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("name", onnx_cases.QUANTIZED_NODES)
def test_quantized_nodes_are_bit_equal(name, kind, tmp_path):
    for seed in range(3):
        model, feeds = onnx_cases.quantized_node(name, kind, seed)
        path = saved(model, tmp_path)
        steps = onnx_model.load(path).module.operators()
        assert sum(each.endswith("QuantizeLinear") for each in steps) == len(feeds), steps
        (wanted,), (given,) = expected(model, feeds, QUANTIZED), found(path, feeds)
        assert numpy.array_equal(wanted, given), f"{(wanted != given).sum()} of {wanted.size}"


@pytest.fixture(scope="module")
def small_network(tmp_path_factory):
    """A network of strided, depthwise and plain convolutions with a residual and a gate."""
    path = tmp_path_factory.mktemp("onnx") / "small.onnx"
    onnx.save(onnx_cases.network(), path)
    return path


def quantized(path: Path, **options) -> Path:
    from onnxruntime import quantization

    class Images(quantization.CalibrationDataReader):
        def __init__(self):
            self._left = iter([{"x": random((1, 3, 16, 20), seed)} for seed in range(4)])

        def get_next(self):
            return next(self._left, None)

    made = path.with_name("quantized.onnx")
    form = quantization.QuantFormat.__members__[options.pop("form")]
    kind = quantization.QuantType.__members__[options.pop("kind")]
    quantization.quantize_static(
        path, made, Images(), quant_format=form, activation_type=kind, **options
    )
    return made


def with_integers_shown(path: Path):
    """The model with all its integers as results."""
    model = onnx.load(path)
    names = [
        node.output[0]
        for node in model.graph.node
        if re.fullmatch("QuantizeLinear|QLinear.*|QGemm", node.op_type)
    ]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return model


@pytest.mark.parametrize(
    ("form", "kind"), [("QDQ", "QUInt8"), ("QDQ", "QInt8"), ("QOperator", "QUInt8")]
)
@pytest.mark.parametrize("per_channel", [True, False])
def test_a_quantized_network_has_onnxruntimes_integers(
    form, kind, per_channel, small_network, tmp_path
):
    path = quantized(small_network, form=form, kind=kind, per_channel=per_channel)
    model, feeds = with_integers_shown(path), {"x": random((1, 3, 16, 20), 9)}
    wanted = expected(model, feeds, QUANTIZED)
    given = found(saved(model, tmp_path), feeds, shapes={"x": (1, 3, 16, 20)})
    apart = [abs(a.astype(int) - b) for a, b in zip(wanted, given, strict=True)]
    # onnxruntime has some convolutions of s8 in f32, whose sums are rounded
    most = 1 if kind == "QInt8" else 0
    assert max(each.max() for each in apart) <= most and sum(each.sum() for each in apart) <= most


def test_scales_found_at_run_time(small_network, tmp_path):
    """As onnxruntime's dynamic quantization writes them."""
    from onnxruntime import quantization

    for kind in ("QUInt8", "QInt8"):
        path, feeds = tmp_path / "dynamic.onnx", {"x": random((1, 3, 16, 20), 9)}
        # pairs of products of u8 and s8 saturate in onnxruntime on some processors
        options = dict(weight_type=quantization.QuantType.__members__[kind], reduce_range=True)
        quantization.quantize_dynamic(small_network, path, **options)
        names = {node.op_type for node in onnx.load(path).graph.node}
        assert {"DynamicQuantizeLinear", "ConvInteger", "MatMulInteger"} <= names
        wanted = expected(path, feeds)[0]
        given = found(path, feeds, shapes={"x": (1, 3, 16, 20)})[0]
        assert difference(wanted, given, 1e-5) == ""


@pytest.mark.parametrize("mode", ["ROUND", "FLOOR", "HALF_UP", "DOWN"])
@pytest.mark.parametrize(("bits", "signed", "narrow"), [(4, 1, 0), (4, 1, 1), (3, 0, 0), (1, 1, 1)])
def test_quant_of_qonnx(mode, bits, signed, narrow, tmp_path):
    scale = numpy.float32([[0.25], [0.5]])
    options = dict(signed=signed, narrow=narrow, rounding_mode=mode)
    quant = case("Quant", (2, 40), scale, reals(1), reals(bits), **options)
    quant.domain = "qonnx.custom_op.general"
    model, feeds = model_of(quant)
    feeds["x0"] = numpy.round(feeds["x0"] * 16) / 16  # with ties
    whole = feeds["x0"] / scale + 1
    if bits == 1:
        whole = numpy.where(whole >= 0, 1, -1)
    else:
        low = (narrow - 2 ** (bits - 1)) if signed else 0
        high = 2 ** (bits - signed) - 1
        half_up = numpy.sign(whole) * numpy.floor(abs(whole) + 0.5)
        whole = {
            "ROUND": numpy.rint(whole),
            "FLOOR": numpy.floor(whole),
            "HALF_UP": half_up,
            "DOWN": numpy.fix(whole),
        }[mode].clip(low, high)
    model.opset_import.append(helper.make_opsetid("qonnx.custom_op.general", 1))
    assert numpy.array_equal(found(saved(model, tmp_path), feeds)[0], (whole - 1) * scale)


# --- designs ---


def test_a_network_becomes_a_design(core_built, small_network, tmp_path):
    x = random((1, 3, 16, 20))
    numpy.save(tmp_path / "x.npy", x)
    command = ["compile", str(small_network), "--shape", "x=1x3x16x20", "--platform", "u55c"]
    assert cli.main([*command, "-o", str(tmp_path / "design")]) == 0
    given, made = f"x={tmp_path / 'x.npy'}", f"y={tmp_path / 'y.npy'}"
    done = stc("run", tmp_path / "design", "--in", given, "--out", made)
    assert done.returncode == 0, done.stderr
    wanted = expected(onnx.load(small_network), {"x": x})[0]
    assert difference(wanted, numpy.load(tmp_path / "y.npy"), 1e-5) == ""


def test_a_quantized_network_becomes_a_design(core_built, small_network):
    path = quantized(small_network, form="QDQ", kind="QUInt8", per_channel=True)
    x = torch.from_numpy(random((1, 3, 16, 20), 9))
    with streamtensor.compile(path, shapes={"x": (1, 3, 16, 20)}) as design:
        wanted = expected(path, {"x": x.numpy()}, QUANTIZED)[0]
        assert numpy.array_equal(design(x)[0].numpy(), wanted)


def test_a_float_network_is_quantized_as_a_module(core_built, small_network):
    """`quant="int8"` finds the layers of an ONNX model."""
    images = [torch.from_numpy(random((1, 3, 16, 20), seed)) for seed in range(4)]
    made = onnx_model.load(small_network, {"x": (1, 3, 16, 20)})
    exact = streamtensor.quantized(made.module, made.inputs, images)
    layers = [node.target.__name__ for node in exact.graph.nodes if node.op == "call_function"]
    assert layers.count("integer_convolution.default") == 6
    wanted, given = made.module(images[0])[0], exact(images[0])[0]
    assert float((wanted - given).abs().max() / wanted.abs().max()) < 0.05


def test_batch_norms_are_folded_into_convolutions(small_network):
    made = onnx_model.load(small_network, {"x": (1, 3, 16, 20)})
    assert "BatchNormalization" not in made.module.operators()
    x = random((1, 3, 16, 20), 5)
    given = made.module(torch.from_numpy(x))[0].numpy()
    assert difference(expected(small_network, {"x": x})[0], given, 1e-5) == ""


# --- what a graph decides while it is read ---


def graph_of(nodes, name: str, inputs=(), outputs=("out",)):
    infos = [onnx.ValueInfoProto(name=each) for each in inputs]
    return helper.make_graph(
        nodes, name, infos, [onnx.ValueInfoProto(name=each) for each in outputs]
    )


def of_input(nodes, results, constants=(), opset=17, shape=(2, 3)):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))
    made = [numpy_helper.from_array(value, name) for name, value in dict(constants).items()]
    return whole_model(nodes, [x], results, made, opset)


def check(model, tmp_path, feeds=None, **options):
    feeds = {"x": random((2, 3))} if feeds is None else feeds
    given = found(saved(model, tmp_path), feeds, **options)
    pairs = zip(expected(model, feeds), given, strict=True)
    assert [difference(*pair, 2e-6) for pair in pairs] == [""] * len(given)


def branches():
    node = helper.make_node
    return {
        "then_branch": graph_of([node("Relu", ["x"], ["out"])], "then"),
        "else_branch": graph_of([node("Neg", ["x"], ["out"])], "else"),
    }


@pytest.mark.parametrize("condition", [True, False])
def test_a_branch_that_is_known(condition, tmp_path):
    nodes = [helper.make_node("If", ["c"], ["y"], **branches())]
    check(of_input(nodes, ["y"], {"c": numpy.array(condition)}), tmp_path)


def test_a_branch_that_is_computed(tmp_path):
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], **branches()),
    ]
    model = of_input(nodes, ["y"], {"zero": numpy.float32(0).reshape(())})
    for seed in range(4):
        check(model, tmp_path, {"x": random((2, 3), seed)})


def test_a_loop_of_known_rounds(tmp_path):
    node = helper.make_node
    body = graph_of(
        [
            node("Cast", ["i"], ["f"], to=1),
            node("Mul", ["s", "half"], ["t"]),
            node("Add", ["t", "f"], ["next"]),
            node("Identity", ["c"], ["goes"]),
            node("Sub", ["next", "x"], ["row"]),
        ],
        "body",
        ["i", "c", "s"],
        ["goes", "next", "row"],
    )
    for info, kind, shape in zip(body.input, (7, 9, 1), ([], [], [2, 3])):
        info.CopyFrom(helper.make_tensor_value_info(info.name, kind, shape))
    nodes = [node("Loop", ["n", "", "x"], ["last", "rows"], body=body)]
    constants = {"n": ints(3).reshape(()), "half": reals(0.5)}
    check(of_input(nodes, ["last", "rows"], constants), tmp_path)


def test_what_shapes_say_is_known(tmp_path):
    node = helper.make_node
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "one"], ["w"]),
        node("Concat", ["minus", "w", "one"], ["wanted"], axis=0),
        node("Reshape", ["x", "wanted"], ["y"]),
    ]
    constants = {"one": ints(1), "minus": ints(-1)}
    check(of_input(nodes, ["y"], constants), tmp_path)


def test_a_function_of_the_model(tmp_path):
    node = helper.make_node
    opsets = [helper.make_opsetid("", 17)]
    nodes = [node("Relu", ["a"], ["t"]), node("Add", ["t", "b"], ["c"])]
    function = helper.make_function("mine", "ReluAdd", ["a", "b"], ["c"], nodes, opsets)
    model = of_input([node("ReluAdd", ["x", "x"], ["y"], domain="mine")], ["y"])
    model.opset_import.append(helper.make_opsetid("mine", 1))
    model.functions.append(function)
    check(model, tmp_path)


def test_values_of_inputs(tmp_path):
    model = model_of(case("Mul", (2, 3), (2, 3)))[0]
    path, x = saved(model, tmp_path), random((2, 3))
    (given,) = found(path, {"x0": x}, values={"x1": 2.0})
    assert numpy.array_equal(given, 2 * x)
    made = onnx_model.load_for(path, (torch.from_numpy(x), 2.0))
    assert made.names == ["x0"] and torch.equal(made.module(*made.inputs)[0], 2 * made.inputs[0])


def test_constants_in_a_file_beside_the_model(tmp_path):
    model = model_of(case("MatMul", (3, 40), random((40, 50))))[0]
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    feeds = {"x0": random((3, 40), 0)}
    given = found(path, feeds)[0]
    assert difference(expected(path, feeds)[0], given, 2e-6) == ""
    (tmp_path / "weights.bin").write_bytes(b"0" * 100)
    with pytest.raises(Error, match="'x1' is said to lie at byte 0 of weights.bin"):
        onnx_model.load(path)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(Error, match="'x1' lies in 'weights.bin', which is not there"):
        onnx_model.load(path)


@pytest.mark.parametrize("place", ["../secret", "/etc/passwd", "link", ""])
def test_no_file_outside_of_the_models_folder_is_read(place, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(8000))
    (folder / "link").symlink_to(tmp_path / "secret")
    model = model_of(case("MatMul", (3, 40), random((40, 50))))[0]
    constant = model.graph.initializer[0]
    constant.ClearField("raw_data")
    constant.data_location = TensorProto.EXTERNAL
    constant.external_data.add(key="location", value=place)
    with pytest.raises(Error, match="outside of the model's folder"):
        onnx_model.load(saved(model, folder))


# --- what is refused ---


def node_of(op: str, *inputs, **attributes):
    return model_of(case(op, *inputs, **attributes))[0]


def with_opset(version: int):
    model = node_of("Relu", (2, 3))
    model.opset_import[0].version = version
    return model


def with_extents(*extents):
    model = node_of("Relu", (2, 3))
    dims = model.graph.input[0].type.tensor_type.shape.dim
    for dim, extent in zip(dims, extents):
        dim.dim_param = extent
    return model


def with_scale(scale, zero=numpy.uint8(3)):
    zero = numpy.asarray(zero)
    return node_of("QuantizeLinear", (2, 3), numpy.asarray(scale, numpy.float32), zero)


def endless_loop():
    body = graph_of([], "body", ["i", "c", "s"], ["c", "s"])
    loop = helper.make_node("Loop", ["n", "", "x"], ["y"], name="the_node", body=body)
    return of_input([loop], ["y"], {"n": ints(10**6).reshape(())})


def named(name: str):
    model = node_of("Multinomial", (2, 3))
    model.graph.node[0].name = name
    return model


NODE = r"model.onnx: node 'the_node' "
REFUSED = {
    "operator": (lambda: node_of("Multinomial", (2, 3)), NODE + r"\(Multinomial, opset 17\) is an"),
    "domain": (lambda: node_of("Relu", (2, 3), domain="com.microsoft"), "of the domain com.micro"),
    "attribute": (lambda: node_of("Relu", (2, 3), slope=1), r"Relu, .* has the attribute slope"),
    "type": (lambda: node_of("LeakyRelu", (2, 3), alpha=1), "has the attribute alpha of type INT"),
    "choice": (lambda: node_of("Pad", (2, 3), ints(0, 0, 1, 1), mode="odd"), "has mode='odd'"),
    "antialias": (
        lambda: node_of(
            "Resize", (1, 1, 4, 4), None, reals(1, 1, 2, 2), mode="linear", antialias=1
        ),
        "has antialias=1",
    ),
    "axis": (lambda: node_of("Softmax", (2, 3), axis=2), "has the axis 2 of a tensor of 2 dims"),
    "shapes": (lambda: node_of("Add", (2, 3), (4,)), r"does not take inputs of float32 \[2, 3\]"),
    "groups": (lambda: node_of("Conv", (1, 3, 5, 5), random((4, 2, 3, 3))), "for 3 channels"),
    "index": (lambda: node_of("Gather", (2, 3), ints(0, 2)), "has the index 2 of 2 elements"),
    "computed": (lambda: node_of("Reshape", (2, 3), (2,)), "takes its shape from what"),
    "training": (lambda: node_of("Dropout", (2, 3), reals(0.5), numpy.array(True)), "training"),
    "old": (lambda: with_opset(10), "is of opset 10"),
    "new": (lambda: with_opset(999), "is of opset 999"),
    "extents": (lambda: with_extents("rows"), "input 'x0' has the extents rowsx3"),
    "huge": (lambda: node_of("Expand", (2, 3), ints(2**40, 2, 3)), "gives a tensor of"),
    "filled": (lambda: node_of("ConstantOfShape", ints(2**40)), "gives a tensor of"),
    "twice": (lambda: of_input(2 * [helper.make_node("Neg", ["x"], ["y"])], ["y"]), "two values"),
    "order": (
        lambda: of_input(
            [helper.make_node("Neg", ["a"], ["y"]), helper.make_node("Neg", ["x"], ["a"])], ["y"]
        ),
        "takes 'a', which nothing before it computes",
    ),
    "places": (lambda: node_of("Resize", (1, 1, 4, 4), None, None, ints(1, 1, 2**30, 4)), "leaves"),
    "rounds": (lambda: endless_loop(), "has 1000000 rounds"),
    "names": (lambda: named("a\x1b[31m\nb" * 50), r"node 'a\?\[31m\?ba"),
    "NaN": (lambda: with_scale(numpy.nan), "has a scale of nan"),
    "zero": (lambda: with_scale(0), "has a scale of 0"),
    "bits": (lambda: with_scale(1, numpy.uint16(3)), "gives integers of torch.int32"),
    "scales": (lambda: with_scale([1, 2], numpy.uint8([3, 4])), "for 3 channels"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name, tmp_path, capsys):
    make, says = REFUSED[name]
    path = saved(make(), tmp_path)
    assert cli.main(["compile", str(path), "--platform", "u55c", "-o", str(tmp_path / "d")]) == 1
    error = capsys.readouterr().err
    lines = [line for line in error.splitlines() if "error:" in line or "note:" in line]
    assert re.search(says, error) and len(lines) == 2 and "accepted" in lines[1], error
    assert not (tmp_path / "d").exists()


def test_messages_are_ours_alone(tmp_path):
    """PyTorch adds to the message of an error that passes through it."""
    model = model_of(case("TopK", (1, 1500), ints(3), outputs=2))[0]
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.elem_type = TensorProto.INT64
    path = saved(model, tmp_path)
    with pytest.raises(Error) as refused:
        streamtensor.compile(path)
    assert str(refused.value).startswith("the module sorts 1500 numbers\nnote: accepted")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--shape", "z=1x2"], "has no input 'z'"),
        (["--shape", "x0=2x4"], "accepted are extents of 2x3"),
        (["--shape", "x0=0"], "cannot be read"),
        (["--shape", "x0=2x3", "--shape", "x0=2x3"], "given twice"),
        (["--value", "x0"], "cannot be read"),
        (["--value", "x0=1"], "has no inputs"),
        (["--batch", "2"], "--batch has no effect"),
    ],
)
def test_options_that_do_not_fit(options, says, tmp_path, capsys):
    path = saved(node_of("Relu", (2, 3)), tmp_path)
    assert cli.main(["compile", str(path), *options, "-o", str(tmp_path / "d")]) == 1
    assert says in capsys.readouterr().err


def test_extents_with_one_name_are_equal(tmp_path):
    model = node_of("Concat", (2, 3), (2, 3), axis=1)
    for each in model.graph.input:
        each.type.tensor_type.shape.dim[0].dim_param = "rows"
    path = saved(model, tmp_path)
    made = onnx_model.load(path, {"x0": (4, 3)})
    assert [tuple(x.shape) for x in made.inputs] == [(4, 3), (4, 3)]
    with pytest.raises(Error, match="'x1' is given the shape 5x3"):
        onnx_model.load(path, {"x0": (4, 3), "x1": (5, 3)})


@pytest.mark.parametrize("count", [150, pytest.param(4000, marks=pytest.mark.long)])
def test_files_that_are_cut_off_or_changed(count, tmp_path):
    """Each is read, or refused with a message: nothing else is raised."""
    whole, path = onnx_cases.network().SerializeToString(), tmp_path / "model.onnx"
    generator, refused = numpy.random.default_rng(0), 0
    for at in range(count):
        data = bytearray(whole)
        if at % 3 == 0:
            data = data[: generator.integers(len(data))]
        for _ in range(at % 4 * 2):
            data[generator.integers(min(len(data), 1500))] = generator.integers(256)
        path.write_bytes(data)
        try:
            onnx_model.load(path, {"x": (1, 3, 16, 20)})
        except Error as error:
            refused += 1
            assert error.notes
    assert refused > count // 2


# --- trained networks ---


def packaged(name: str, file: str) -> Path:
    return Path(importlib.util.find_spec(name).origin).parent / file


@pytest.mark.parametrize(
    "file", ["silero_vad.onnx", "silero_vad_16k_op15.onnx", "silero_vad_op18_ifless.onnx"]
)
def test_a_voice_detector(file):
    path = packaged("silero_vad", f"data/{file}")
    feeds = {"input": random((1, 576)), "state": random((2, 1, 128))}
    shapes = {name: x.shape for name, x in feeds.items()}
    given = found(path, feeds, shapes=shapes, values={"sr": 16000})
    wanted = expected(path, feeds | {"sr": numpy.array(16000)})
    assert [difference(*pair, 1e-5) for pair in zip(wanted, given)] == ["", ""]


OCR = "models/ch_{}_infer.onnx"
TRAINED = {
    "classifier": ("rapidocr_onnxruntime", OCR.format("ppocr_mobile_v2.0_cls"), (1, 3, 48, 192)),
    "recognizer": ("rapidocr_onnxruntime", OCR.format("PP-OCRv4_rec"), (1, 3, 48, 320)),
    "detector": ("rapidocr_onnxruntime", OCR.format("PP-OCRv4_det"), (1, 3, 320, 320)),
    "file types": ("magika", "models/standard_v3_3/model.onnx", (1, 2048)),
}


@pytest.mark.parametrize("name", TRAINED)
def test_trained_networks(name):
    package, file, shape = TRAINED[name]
    made = onnx_model.load(packaged(package, file), {"x" if package[0] == "r" else "bytes": shape})
    floats = made.inputs[0].dtype.is_floating_point
    x = random(shape) if floats else numpy.arange(2048, dtype=numpy.int32).reshape(shape) % 257
    wanted = expected(packaged(package, file), {made.names[0]: x})[0]
    given = made.module(torch.from_numpy(x))[0].numpy()
    assert numpy.abs(wanted - given).max() < 1e-5


@pytest.mark.long
def test_a_trained_network_becomes_a_design(core_built):
    package, file, shape = TRAINED["classifier"]
    x = random(shape)
    with streamtensor.compile(packaged(package, file), shapes={"x": shape}) as design:
        wanted = expected(packaged(package, file), {"x": x})[0]
        assert difference(wanted, design(torch.from_numpy(x))[0].numpy(), 1e-5) == ""
