"""Operators of ONNX with attributes, as `test_onnx` compares them with onnxruntime.

A case is the operator, its inputs (a shape, or an array for a constant; None: left out), its
attributes, and the opset.
"""

from dataclasses import dataclass, field

import numpy
from onnx import TensorProto, helper, numpy_helper

NEWEST = 22  # that onnxruntime has kernels for everywhere


@dataclass
class Case:
    op: str
    inputs: list
    attributes: dict = field(default_factory=dict)
    opset: int = 17
    outputs: int = 1
    domain: str = ""
    tolerance: float = 2e-6

    @property
    def label(self) -> str:
        said = "-".join(f"{key}={value}" for key, value in self.attributes.items())
        shapes = [
            "none" if x is None else "x".join(map(str, x if isinstance(x, tuple) else x.shape))
            for x in self.inputs
        ]
        return f"{self.op}-{self.opset}-{'_'.join(shapes)}-{said}".replace(" ", "")


def ints(*values) -> numpy.ndarray:
    return numpy.array(values, numpy.int64)


def reals(*values) -> numpy.ndarray:
    return numpy.array(values, numpy.float32)


def random(shape, seed: int = 1) -> numpy.ndarray:
    return numpy.random.default_rng(seed).normal(size=shape).astype(numpy.float32)


def case(op, *inputs, opset=17, outputs=1, domain="", tolerance=2e-6, **attributes) -> Case:
    return Case(op, list(inputs), attributes, opset, outputs, domain, tolerance)


def model_of(made: Case, all_constant: bool = False):
    """The model of one node; and what its inputs are."""
    names, constants, inputs, feeds = [], [], [], {}
    for at, each in enumerate(made.inputs):
        names.append("" if each is None else f"x{at}")
        if each is None:
            continue
        given = random(each, at) if isinstance(each, tuple) else numpy.asarray(each)
        if isinstance(each, tuple) and not all_constant:
            inputs.append(helper.make_tensor_value_info(f"x{at}", TensorProto.FLOAT, list(each)))
            feeds[f"x{at}"] = given
        else:
            constants.append(numpy_helper.from_array(given, f"x{at}"))
    results = [f"y{at}" for at in range(made.outputs)]
    attributes = dict(made.attributes)
    if "Softmax" in made.op and made.domain:
        attributes["opset"] = 13
    node = helper.make_node(
        made.op, names, results, name="the_node", domain=made.domain, **attributes
    )
    return whole_model([node], inputs, results, constants, made.opset), feeds


def whole_model(nodes, inputs, results, constants, opset: int):
    kind = helper.make_tensor_type_proto
    outputs = [helper.make_value_info(name, kind(TensorProto.UNDEFINED, None)) for name in results]
    for each in outputs:
        each.ClearField("type")
    if not inputs:
        inputs = [helper.make_tensor_value_info("unused", TensorProto.FLOAT, [1])]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


_ONE = (
    "Abs Neg Exp Sigmoid Tanh Relu Erf Floor Ceil Round Sign Softplus Softsign Sin Cos Atan Tan "
    "Sinh Cosh Asinh"
)
_TWO = "Add Sub Mul Div Pow"
IMAGE = (2, 3, 7, 10)


def _of_elements() -> list[Case]:
    found = [case(op, (2, 5)) for op in _ONE.split()]
    found += [case(op, numpy.abs(random((3, 4))) + 0.5) for op in ("Log", "Sqrt", "Reciprocal")]
    part = numpy.abs(random((3, 4))) / 4
    found += [case(op, part) for op in ("Asin", "Acos", "Atanh")] + [case("Acosh", part + 1.5)]
    found.append(case("HardSwish", (2, 5)))
    some, other = (numpy.array(each, numpy.uint8) for each in ([1, 6, 255], [2, 3, 1]))
    found += [case("BitwiseNot", some, opset=18)]
    found += [case(f"Bitwise{op}", some, other, opset=18) for op in ("And", "Or", "Xor")]
    found += [case("BitShift", some, other, direction=each) for each in ("LEFT", "RIGHT")]
    found.append(case("CastLike", (2, 3), ints(0)))
    found.append(case("Mish", (2, 5), opset=18))
    for op in _TWO.split()[:4]:
        found += [
            case(op, (2, 3, 4), (3, 1)),
            case(op, (4,), (2, 1, 4)),
            case(op, (3,), reals(2.5)),
        ]
        found.append(case(op, reals(0.7), (2, 3)))
        found.append(case(op, (2, 3), numpy.float32(0.3).reshape(())))
        found.append(case(op, (3,), random((1, 1, 1))))
    found += [case("Pow", (2, 3), reals(2.0)), case("Pow", (2, 3), reals(3.0))]
    found += [case("Pow", reals(2.0), (2, 3)), case("Pow", numpy.abs(random((4,))), reals(0.5))]
    found.append(case("Div", ints(7, -7, 8), ints(2, 2, -3)))
    found.append(case("Mod", ints(7, -7, 8), ints(3, 3, -3)))
    found += [case("Mod", (3, 4), (4,), fmod=1), case("Mod", ints(7, -7), ints(-3, 3), fmod=1)]
    for op in ("Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"):
        found += [case(op, (2, 3), (3,)), case(op, (2, 3), reals(0.1))]
    for op in ("Min", "Max", "Sum", "Mean"):
        found += [case(op, (2, 3), (3,), (2, 1)), case(op, (4,))]
    found += [
        case("Clip", (3, 5), reals(-0.5).reshape(()), reals(0.7).reshape(()), opset=o)
        for o in (11, 12, 13)
    ]
    found += [case("Clip", (3, 5), None, reals(0.7).reshape(())), case("Clip", (3, 5))]
    found.append(case("Clip", (3, 5), reals(0).reshape(())))
    found.append(case("Clip", (3, 5), reals(2).reshape(()), reals(-1).reshape(())))
    found += [case("LeakyRelu", (3, 5), alpha=0.3), case("LeakyRelu", (3, 5))]
    found += [case("Elu", (3, 5), alpha=0.7), case("Celu", (3, 5), alpha=0.7), case("Selu", (3, 5))]
    found += [
        case("Selu", (3, 5), alpha=1.5, gamma=0.7),
        case("ThresholdedRelu", (3, 5), alpha=0.4),
    ]
    found += [case("HardSigmoid", (3, 5)), case("HardSigmoid", (3, 5), alpha=0.4, beta=0.2)]
    found += [case("PRelu", (2, 3, 4), random((3, 1))), case("Shrink", (3, 5), lambd=0.4, bias=0.2)]
    found += [case("Gelu", (3, 5), opset=20), case("Gelu", (3, 5), opset=20, approximate="tanh")]
    found += [case("Gelu", (3, 5), domain="com.microsoft")]
    found += [case("QuickGelu", (3, 5), domain="com.microsoft", alpha=1.3)]
    found.append(case("Where", numpy.array([[True], [False]]), (2, 3), (3,)))
    found.append(case("IsNaN", reals(1, numpy.nan)))
    found.append(case("IsInf", reals(1, numpy.inf, -numpy.inf), detect_negative=0))
    found += [case("Cast", (3, 4), to=each) for each in (6, 7, 9, 11, 10)]
    found += [case("Identity", (2, 3)), case("Dropout", (2, 3), opset=13)]
    found.append(case("Not", numpy.array([True, False])))
    found += [
        case(op, numpy.array([[True], [False]]), numpy.array([True, False]))
        for op in ("And", "Or", "Xor")
    ]
    return found


def _of_moves() -> list[Case]:
    found = [case("Reshape", (2, 3, 4), ints(0, -1)), case("Reshape", (2, 3, 4), ints(4, 0, 2))]
    found += [case("Reshape", (2, 3), ints(-1))]
    found += [case("Flatten", (2, 3, 4), axis=a) for a in (0, 1, 2, 3, -1)] + [
        case("Flatten", (2, 3, 4))
    ]
    found += [case("Transpose", (2, 3, 4)), case("Transpose", (2, 3, 4), perm=[1, 2, 0])]
    found += [
        case("Squeeze", (1, 3, 1, 2), axes=[0], opset=11),
        case("Squeeze", (1, 3, 1, 2), axes=[-2], opset=11),
    ]
    found += [case("Squeeze", (1, 3, 1, 2)), case("Squeeze", (1, 3, 1, 2), ints(2, -4))]
    found += [
        case("Unsqueeze", (2, 3), axes=[0, 3], opset=11),
        case("Unsqueeze", (2, 3), axes=[-1], opset=11),
    ]
    found += [case("Unsqueeze", (2, 3), ints(3, 0)), case("Unsqueeze", (2, 3), ints(-1, 1))]
    found += [
        case("Expand", (3, 1), ints(2, 1, 4)),
        case(
            "Expand",
            (3, 4),
            ints(
                1,
            ),
        ),
        case("Expand", (3, 1), ints(3, 4)),
    ]
    found += [case("Tile", (2, 3), ints(2, 3)), case("Concat", (2, 3), (2, 1), (2, 2), axis=-1)]
    found += [case("Concat", (2, 3), (1, 3), axis=0, opset=11), case("Concat", (2, 3), axis=1)]
    found += [case("Split", (2, 7), axis=1, split=[2, 5], outputs=2, opset=11)]
    found += [
        case("Split", (2, 6), axis=-1, outputs=3, opset=11),
        case("Split", (2, 6), axis=1, outputs=2, opset=13),
    ]
    found += [
        case("Split", (2, 7), ints(3, 4), axis=1, outputs=2),
        case("Split", (2, 7), axis=1, outputs=3, opset=18, num_outputs=3),
    ]
    found += [case("Split", (5, 2), ints(1, 4), outputs=2, opset=18)]
    long = numpy.iinfo(numpy.int64).max
    found += [
        case("Slice", (4, 7), ints(1), ints(-1), opset=11),
        case("Slice", (4, 7), ints(1, 2), ints(3, 100)),
    ]
    found += [case("Slice", (4, 7), ints(-5), ints(long), ints(-1), ints(2))]
    found += [case("Slice", (4, 7), ints(-1), ints(-long), ints(1), ints(-2))]
    found += [case("Slice", (4, 7), ints(5), ints(1), ints(1), ints(-3))]
    found += [case("Slice", (4, 7), ints(5, 0), ints(1, 2), ints(1, 0), ints(-1, 1))]
    found += [
        case("Gather", (4, 5), ints(1, -1, 0)),
        case("Gather", (4, 5), ints(3).reshape(()), axis=1),
    ]
    found += [case("Gather", (4, 5), numpy.array([[0, -2], [3, 1]], numpy.int32), axis=-1)]
    found += [case("GatherElements", (3, 4), ints(0, -1, 2, 1).reshape(1, 4))]
    found += [case("GatherElements", (3, 4), ints(0, -1, 2).reshape(3, 1), axis=1)]
    found += [
        case("GatherND", (3, 4), ints(0, 1, -1, 2).reshape(2, 2)),
        case("GatherND", (3, 4), ints(0, 2).reshape(2, 1)),
    ]
    found += [
        case("Pad", (3, 5), ints(0, 1, 2, 3)),
        case("Pad", (3, 5), ints(0, 1, 2, 3), reals(1.5).reshape(()), opset=11),
    ]
    found += [
        case("Pad", (3, 5), ints(0, -1, 2, -2)),
        case("Pad", (4, 5), ints(1, 2, 3, 0), mode="reflect"),
    ]
    found += [
        case("Pad", (3, 5), ints(1, 6, 0, 2), mode="edge"),
        case("Pad", (3, 5), ints(1, 2, 3, 4), opset=19, mode="wrap"),
    ]
    found += [
        case("Pad", (2, 3, 5), ints(1, 2), None, ints(-1), opset=18),
        case("Pad", (2, 3, 5), ints(1, 2, 0, 3), reals(2).reshape(()), ints(2, 0), opset=19),
    ]
    for mode in ("DCR", "CRD"):
        found += [
            case("DepthToSpace", (2, 12, 3, 5), blocksize=2, mode=mode),
            case("DepthToSpace", (1, 18, 2, 3), blocksize=3, mode=mode),
        ]
    found += [
        case("SpaceToDepth", (2, 3, 4, 6), blocksize=2),
        case("DepthToSpace", (2, 8, 3, 5), blocksize=2),
    ]
    found += [case("Trilu", (4, 5)), case("Trilu", (4, 5), ints(-1).reshape(()), upper=0)]
    found += [
        case("OneHot", ints(1, -2, 0), ints(4).reshape(()), reals(0.5, 2)),
        case("OneHot", ints(1, 2, 0), ints(4), reals(0, 1), axis=0),
    ]
    found += [
        case("CumSum", (3, 4), ints(1).reshape(())),
        case("CumSum", (3, 4), ints(0).reshape(()), reverse=1),
        case("CumSum", (3, 4), ints(-1).reshape(()), exclusive=1, reverse=1),
    ]
    found += [
        case("ConstantOfShape", ints(2, 3)),
        case("ConstantOfShape", ints(2), value=numpy_helper.from_array(ints(7))),
    ]
    found += [case("Range", ints(2).reshape(()), ints(11).reshape(()), ints(3).reshape(()))]
    found += [case("Range", reals(5).reshape(()), reals(0).reshape(()), reals(-0.75).reshape(()))]
    found += [case("EyeLike", (3, 5), k=1), case("EyeLike", (3, 4), k=-1, dtype=7)]
    found += [
        case("Shape", (2, 3, 4)),
        case("Shape", (2, 3, 4), start=1, end=-1),
        case("Shape", (2, 3, 4), start=-2),
        case("Size", (2, 3, 4)),
    ]
    return found


def _of_windows() -> list[Case]:
    w, b = random((4, 3, 3, 2)), random((4,))
    found = [case("Conv", IMAGE, w, b), case("Conv", IMAGE, w, pads=[1, 0, 2, 1], strides=[2, 1])]
    found += [case("Conv", IMAGE, w, dilations=[2, 3], pads=[1, 1, 1, 1], kernel_shape=[3, 2])]
    found += [
        case("Conv", IMAGE, w, b, auto_pad=a, strides=[2, 3])
        for a in ("SAME_UPPER", "SAME_LOWER", "VALID")
    ]
    found += [
        case("Conv", (2, 6, 5, 7), random((4, 3, 3, 3)), b, group=2),
        case("Conv", (1, 3, 5, 7), random((6, 1, 3, 3)), group=3),
    ]
    found += [
        case("Conv", (2, 3, 9), random((4, 3, 3)), b, strides=[2], pads=[2, 1]),
        case("Conv", (1, 2, 4, 5, 6), random((3, 2, 2, 3, 2)), pads=[0, 1, 0, 1, 1, 1]),
    ]
    found += [case("Conv", IMAGE, (4, 3, 3, 2), (4,))]
    t = random((3, 4, 3, 2))
    found += [
        case("ConvTranspose", IMAGE, t, b),
        case("ConvTranspose", IMAGE, t, strides=[2, 3], pads=[1, 0, 1, 0]),
    ]
    found += [
        case("ConvTranspose", IMAGE, t, b, strides=[2, 3], pads=[0, 1, 2, 0], output_padding=[1, 2])
    ]
    found += [case("ConvTranspose", IMAGE, t, strides=[2, 2], output_shape=[15, 20])]
    found += [
        case("ConvTranspose", IMAGE, t, strides=[2, 2], auto_pad=a)
        for a in ("SAME_UPPER", "SAME_LOWER")
    ]
    found += [
        case("ConvTranspose", (1, 4, 3, 5), random((4, 3, 2, 2)), group=2, strides=[2, 2]),
        case("ConvTranspose", IMAGE, t, dilations=[2, 1]),
    ]
    found += [case("ConvTranspose", (1, 2, 5), random((2, 3, 4)), strides=[3], output_padding=[2])]
    k = dict(kernel_shape=[3, 2])
    for op in ("MaxPool", "AveragePool"):
        for opset in (11, 19, 22):
            found += [
                case(op, IMAGE, **k, opset=opset),
                case(op, IMAGE, **k, strides=[2, 3], ceil_mode=1, opset=opset),
            ]
            found += [
                case(op, IMAGE, **k, strides=[2, 2], pads=[1, 0, 2, 1], ceil_mode=1, opset=opset)
            ]
            found += [
                case(
                    op,
                    IMAGE,
                    kernel_shape=[3, 3],
                    strides=[3, 3],
                    pads=[1, 1, 1, 1],
                    ceil_mode=1,
                    opset=opset,
                )
            ]
        found += [case(op, IMAGE, **k, pads=[1, 1, 0, 0]), case(op, IMAGE, **k, pads=[2, 1, 2, 1])]
        found += [
            case(op, IMAGE, **k, auto_pad=a, strides=[2, 3])
            for a in ("SAME_UPPER", "SAME_LOWER", "VALID")
        ]
        found += [
            case(op, (2, 3, 9), kernel_shape=[4], strides=[2], pads=[1, 2]),
            case(op, (1, 2, 4, 5, 6), kernel_shape=[2, 3, 2]),
        ]
        found += [case(op, IMAGE, **k, dilations=[2, 3], pads=[1, 1, 1, 1], opset=19)]
    found += [case("AveragePool", IMAGE, **k, pads=[1, 0, 2, 1], count_include_pad=1)]
    found += [
        case(
            "AveragePool",
            IMAGE,
            kernel_shape=[3, 3],
            pads=[1, 1, 1, 1],
            count_include_pad=1,
            strides=[2, 2],
        )
    ]
    found += [
        case(
            "AveragePool",
            IMAGE,
            kernel_shape=[3, 3],
            pads=[1, 1, 1, 1],
            count_include_pad=1,
            strides=[2, 2],
            ceil_mode=1,
            opset=o,
        )
        for o in (11, 19, 22)
    ]
    found += [
        case(
            "AveragePool",
            IMAGE,
            kernel_shape=[4, 4],
            pads=[1, 0, 1, 1],
            count_include_pad=1,
            strides=[3, 3],
            ceil_mode=1,
            opset=22,
        )
    ]
    found += [case(op, IMAGE) for op in ("GlobalAveragePool", "GlobalMaxPool")]
    return found


def _of_matrices() -> list[Case]:
    found = [
        case("MatMul", (3, 4), random((4, 5))),
        case("MatMul", (2, 3, 4), random((4, 5))),
        case("MatMul", (2, 3, 4), (2, 4, 5)),
        case("MatMul", (4,), (4, 5)),
        case("MatMul", (3, 4), (4,)),
        case("MatMul", (2, 1, 3, 4), (5, 4, 2)),
    ]
    found += [
        case("Gemm", (3, 4), random((4, 5)), random((5,))),
        case(
            "Gemm", (4, 3), random((5, 4)), random((3, 1)), transA=1, transB=1, alpha=0.5, beta=2.0
        ),
    ]
    found += [
        case("Gemm", (3, 4), random((5, 4)), transB=1),
        case("Gemm", (3, 4), (4, 5), random((1,)), beta=0.5),
        case("Gemm", (3, 4), random((4, 5)), random((3, 5))),
    ]
    found += [
        case("Gemm", (3, 4), random((5, 4)), random((1, 5)), transB=1),
        case("Gemm", (3, 4), random((4, 5)), random((1,)).reshape(())),
    ]
    v = numpy.abs(random((3,), 5)) + 0.2
    found += [
        case(
            "BatchNormalization",
            IMAGE,
            random((3,)),
            random((3,), 2),
            random((3,), 3),
            v,
            opset=o,
            epsilon=1e-3,
        )
        for o in (11, 14, 15)
    ]
    found += [
        case(
            "BatchNormalization",
            (2, 3),
            random((3,)),
            random((3,), 2),
            random((3,), 3),
            v,
            opset=9 + 5,
        )
    ]
    found += [
        case(
            "InstanceNormalization",
            IMAGE,
            random((3,)),
            random((3,), 2),
            epsilon=1e-3,
            tolerance=1e-5,
        )
    ]
    found += [
        case("LayerNormalization", IMAGE, random((10,)), random((10,), 2)),
        case("LayerNormalization", IMAGE, random((7, 10)), axis=-2, epsilon=1e-3),
        case("LayerNormalization", (2, 3, 4), random((4,)), axis=2),
        case("RMSNormalization", (2, 3, 4), random((4,)), opset=23, epsilon=1e-3),
    ]
    found += [
        case(
            "GroupNormalization",
            (2, 6, 5),
            random((6,)),
            random((6,), 2),
            num_groups=3,
            opset=21,
            tolerance=1e-5,
        )
    ]
    found += [case("LRN", (2, 7, 3, 4), size=s, alpha=0.1, beta=0.6, bias=1.5) for s in (3, 5)]
    found += [
        case("LpNormalization", (3, 4), axis=0, p=1),
        case("LpNormalization", (3, 4)),
        case("MeanVarianceNormalization", IMAGE),
    ]
    for op in (
        "ReduceMean",
        "ReduceMax",
        "ReduceMin",
        "ReduceL1",
        "ReduceL2",
        "ReduceSumSquare",
        "ReduceProd",
        "ReduceLogSumExp",
    ):
        found += [
            case(op, (2, 3, 4), axes=[-1, 0], opset=13),
            case(op, (2, 3, 4), keepdims=0, axes=[1], opset=11),
            case(op, (2, 3, 4), opset=13),
        ]
        found += [
            case(op, (2, 3, 4), ints(1, -1), opset=18),
            case(op, (2, 3, 4), opset=18, keepdims=0),
        ]
    found += [
        case("ReduceSum", (2, 3, 4), axes=[1], opset=11),
        case("ReduceSum", (2, 3, 4), ints(-1), keepdims=0, opset=13),
        case("ReduceSum", (2, 3, 4), opset=13),
    ]
    found += [
        case("ReduceSum", (2, 3), ints(), noop_with_empty_axes=1, opset=13),
        case("ReduceSum", (2, 3), None, noop_with_empty_axes=1, opset=13),
        case("ReduceLogSum", numpy.abs(random((3, 4))), axes=[0], opset=13),
    ]
    for op in ("ArgMax", "ArgMin"):
        found += [
            case(op, (3, 4)),
            case(op, (3, 4), axis=-1, keepdims=0),
            case(op, reals(1, 3, 3, 1, 1), select_last_index=1),
            case(op, reals(1, 3, 3, 1, 1)),
        ]
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        found += [
            case(op, (2, 3, 4), opset=11),
            case(op, (2, 3, 4), axis=0, opset=11),
            case(op, (2, 3, 4), axis=-1, opset=11),
            case(op, (2, 3, 4), opset=13),
            case(op, (2, 3, 4), axis=1, opset=13),
        ]
    found += [
        case("TopK", (3, 7), ints(3), outputs=2),
        case("TopK", (3, 7), ints(2), axis=0, largest=0, outputs=2),
    ]
    found += [case("Einsum", (2, 3, 4), (2, 4, 5), equation="bij,bjk->bik")]
    return found


def _of_resizes() -> list[Case]:
    up, down, odd = reals(1, 1, 2, 3), reals(1, 1, 0.5, 0.6), reals(1, 1, 1.7, 0.8)
    found = []
    for places in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
        for scales in (up, down, odd):
            for mode in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
                found.append(
                    case(
                        "Resize",
                        IMAGE,
                        None,
                        scales,
                        mode="nearest",
                        coordinate_transformation_mode=places,
                        nearest_mode=mode,
                        opset=13,
                    )
                )
            for mode in ("linear", "cubic"):
                found.append(
                    case(
                        "Resize",
                        IMAGE,
                        None,
                        scales,
                        mode=mode,
                        coordinate_transformation_mode=places,
                        opset=13,
                        tolerance=1e-5,
                    )
                )
    sizes = ints(2, 3, 5, 14)
    found += [
        case("Resize", IMAGE, None, None, sizes, mode=m, tolerance=1e-5)
        for m in ("nearest", "linear", "cubic")
    ]
    found += [
        case(
            "Resize",
            IMAGE,
            None,
            None,
            ints(2, 3, 1, 1),
            mode="linear",
            coordinate_transformation_mode=p,
            tolerance=1e-5,
        )
        for p in ("pytorch_half_pixel", "align_corners", "half_pixel")
    ]
    found += [
        case(
            "Resize",
            IMAGE,
            None,
            odd,
            mode="linear",
            coordinate_transformation_mode="half_pixel_symmetric",
            opset=19,
            tolerance=1e-5,
        )
    ]
    found += [
        case(
            "Resize",
            IMAGE,
            None,
            odd,
            mode="cubic",
            cubic_coeff_a=-0.5,
            exclude_outside=1,
            tolerance=1e-5,
        )
    ]
    found += [
        case(
            "Resize",
            IMAGE,
            None,
            None,
            ints(9, 9),
            axes=[2, 3],
            keep_aspect_ratio_policy=p,
            mode="linear",
            opset=18,
            tolerance=1e-5,
        )
        for p in ("not_larger", "not_smaller")
    ]
    found += [
        case(
            "Resize",
            IMAGE,
            reals(),
            up,
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
            opset=11,
        )
    ]
    return found


def _of_recurrences() -> list[Case]:
    """5 rows of 2 sequences of 3 numbers; 4 in a state."""
    found, x, h = [], (5, 2, 3), (1, 2, 4)
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        states = [h, h] if op == "LSTM" else [h]
        more = {"linear_before_reset": 1} if op == "GRU" else {}
        w, r, b = random((1, gates * 4, 3)), random((1, gates * 4, 4), 2), random((1, gates * 8), 3)
        count = len(states) + 1
        found += [case(op, x, w, r, hidden_size=4, outputs=count, **more)]
        found += [case(op, x, w, r, b, None, *states, hidden_size=4, outputs=count, **more)]
        found += [case(op, x, w, r, b, direction="reverse", hidden_size=4, outputs=count, **more)]
        w, r, b = (numpy.concatenate([each, each[::-1, ::-1]]) for each in (w, r, b))
        both = [(2, 2, 4) for _ in states]
        found += [
            case(
                op,
                x,
                w,
                r,
                b,
                None,
                *both,
                direction="bidirectional",
                hidden_size=4,
                outputs=count,
                **more,
            )
        ]
    return found


def _of_bytes() -> list[Case]:
    """Operators of onnxruntime on integers, which it computes with real numbers."""
    every = numpy.arange(-128, 128, dtype=numpy.int8).reshape(1, 4, 8, 8)
    scale, zero = reals(0.04).reshape(()), numpy.array(-9, numpy.int8)
    whole, point = every.view(numpy.uint8), numpy.array(100, numpy.uint8)
    found = []
    for value, at in ((every, zero), (whole, point)):
        own = [value, scale, at]
        made = [reals(0.013).reshape(()), at]
        ours = dict(domain="com.microsoft")
        found += [case("QLinearSigmoid", *own, *made, **ours)]
        found += [case("QLinearLeakyRelu", *own, *made, alpha=0.2, **ours)]
        found += [
            case("QLinearAveragePool", *own, *made, kernel_shape=[3, 2], pads=[1, 0, 1, 1], **ours)
        ]
        found += [case("QLinearConcat", *made, *own, value, *made, axis=1, **ours)]
        found += [case("QLinearSoftmax", *own, *made, axis=-1, **ours)]
    return found


def cases() -> list[Case]:
    groups = (
        _of_elements,
        _of_moves,
        _of_windows,
        _of_matrices,
        _of_resizes,
        _of_recurrences,
        _of_bytes,
    )
    return [each for group in groups for each in group()]


# compared as nodes of quantized graphs
QUANTIZED = [
    "QuantizeLinear",
    "DequantizeLinear",
    "QLinearConv",
    "QLinearMatMul",
    *(f"com.microsoft:QLinear{name}" for name in "Add Mul GlobalAveragePool Sigmoid".split()),
    "com.microsoft:QGemm",
    "DynamicQuantizeLinear",
    "ConvInteger",
    "MatMulInteger",
    *(
        f"{domain}:{name}"
        for domain in ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
        for name in ("Quant", "IntQuant")
    ),
]
# without a kernel of onnxruntime, or other names of what has a case
UNTESTABLE = [
    "Swish",
    "SimplifiedLayerNormalization",
    "com.microsoft:QuantizeLinear",
    "com.microsoft:DequantizeLinear",
]


def random_graph(seed: int):
    """Operators on images and their sums, in a random order with random attributes."""
    generator = numpy.random.default_rng(seed)
    node, nodes, constants = helper.make_node, [], []
    shape = [int(each) for each in generator.integers(2, 5, 2)] + [9, 12]

    def constant(value) -> str:
        name = f"c{len(constants)}"
        constants.append(numpy_helper.from_array(numpy.asarray(value), name))
        return name

    def convolution(x):
        weight = random((shape[1], shape[1], 3, 2), int(generator.integers(99))) / 3
        return ["Conv", [x, constant(weight)], {"pads": [1, 0, 1, 1]}]

    choices = [
        lambda x: convolution(x),
        lambda x: ["AveragePool", [x], dict(kernel_shape=[2, 3], pads=[0, 1, 1, 1])],
        lambda x: ["MaxPool", [x], dict(kernel_shape=[3, 3], auto_pad="SAME_UPPER")],
        lambda x: ["Mul", [x, constant(random((shape[1], 1, 1)))], {}],
        lambda x: ["Softmax", [x], dict(axis=int(generator.integers(-4, 4)))],
        lambda x: ["HardSigmoid", [x], dict(alpha=float(generator.uniform(0.1, 0.5)))],
        lambda x: ["Clip", [x, constant(numpy.float32(-0.4)), ""], {}],
        lambda x: ["Add", [x, earlier()], {}],
        lambda x: ["LayerNormalization", [x, constant(random((12,)))], {}],
    ]
    values = ["x"]

    def earlier() -> str:
        return values[int(generator.integers(len(values)))]

    for at in range(8):
        op, inputs, attributes = choices[int(generator.integers(len(choices)))](values[-1])
        nodes.append(node(op, inputs, [f"v{at}"], **attributes))
        values.append(f"v{at}")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    return whole_model(nodes, [x], values[-2:], constants, 17), {"x": random(shape, seed)}


# --- quantized ---


class _Quantized:
    """A graph under construction, whose values are integers between its operators."""

    def __init__(self, kind: str, seed: int):
        self.kind, self.generator = numpy.dtype(kind), numpy.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.feeds = [], [], [], {}

    def constant(self, name: str, value) -> str:
        self.constants.append(numpy_helper.from_array(numpy.asarray(value), name))
        return name

    def format(self, name: str, zero: int | None = None) -> list[str]:
        """Scale and zero point."""
        least = -40 if self.kind == numpy.int8 else 60
        zero = self.generator.integers(least, least + 100) if zero is None else zero
        scale = numpy.float32(self.generator.uniform(0.01, 0.05))
        names = [f"{name}_scale", f"{name}_zero"]
        self.constant(names[0], scale)
        self.constant(names[1], self.kind.type(zero))
        return names

    def rounded(self, name: str, form: list[str]) -> str:
        """The number as its integer has it."""
        make = helper.make_node
        self.nodes.append(make("QuantizeLinear", [name, *form], [f"{name}_q"]))
        self.nodes.append(make("DequantizeLinear", [f"{name}_q", *form], [f"{name}_d"]))
        return f"{name}_d"

    def input(self, shape) -> tuple[str, list[str]]:
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))
        self.feeds[name] = self.generator.normal(size=shape).astype(numpy.float32)
        form = self.format(name)
        return self.rounded(name, form), form

    def weight(self, shape, axis: int, x: list[str], bias: bool, unsigned: bool) -> list[str]:
        """The numbers of a weight with a scale for each channel, and of a bias."""
        count, make = shape[axis], helper.make_node
        scales = self.generator.uniform(0.002, 0.01, count).astype(numpy.float32)
        low, kind = (0, numpy.uint8) if unsigned else (-127, numpy.int8)
        whole = self.generator.integers(low, low + 255, shape).astype(kind)
        zeros = numpy.full(count, 90 if unsigned else 0, kind)
        self.constant("w", whole), self.constant("ws", scales), self.constant("wz", zeros)
        self.nodes.append(make("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=axis))
        if not bias:
            return ["wd"]
        scale = next(each for each in self.constants if each.name == x[0])
        whole = self.generator.integers(-3000, 3000, count).astype(numpy.int32)
        self.constant("b", whole)
        self.constant("bs", numpy_helper.to_array(scale) * scales)
        self.nodes.append(make("DequantizeLinear", ["b", "bs"], ["bd"], axis=0))
        return ["wd", "bd"]

    def model(self, op: str, takes: list[str], result: list[str] | None, relu: bool, attributes):
        make = helper.make_node
        self.nodes.append(make(op, takes, ["t"], **attributes))
        if relu:
            self.nodes.append(make("Relu", ["t"], ["y"]))
            result = self.format("y", numpy.iinfo(self.kind).min)
        elif result is None:
            result = self.format("t")
        last = self.rounded("y" if relu else "t", result)
        return whole_model(self.nodes, self.inputs, [last], self.constants, 17), self.feeds


_IMAGES = (2, 6, 9, 11)
# the operator, shapes of inputs, shape of a weight with the dim of its channels, bias, attributes
QUANTIZED_NODES = {
    "convolution": (
        "Conv",
        [_IMAGES],
        ((8, 6, 3, 2), 0),
        True,
        dict(pads=[1, 0, 2, 1], strides=[2, 1]),
    ),
    "grouped": ("Conv", [_IMAGES], ((8, 3, 3, 3), 0), True, dict(pads=[1, 1, 1, 1], group=2)),
    "depthwise": ("Conv", [_IMAGES], ((6, 1, 3, 3), 0), False, dict(pads=[1, 1, 1, 1], group=6)),
    "bounded": ("Conv", [_IMAGES], ((8, 6, 3, 3), 0), True, {}),
    "one dim": ("Conv", [(2, 6, 19)], ((8, 6, 3), 0), True, dict(strides=[2])),
    "unsigned weights": (
        "Conv",
        [_IMAGES],
        ((8, 3, 3, 3), 0),
        True,
        dict(pads=[1, 1, 1, 1], group=2),
    ),
    "linear": ("Gemm", [(3, 50)], ((7, 50), 0), True, dict(transB=1)),
    "product with a matrix": ("Gemm", [(3, 50)], ((50, 7), 1), True, {}),
    "product": ("MatMul", [(2, 3, 50)], ((50, 7), 1), False, {}),
    "product of two": ("MatMul", [(2, 3, 20), (2, 20, 5)], None, False, {}),
    "sum": ("Add", [(2, 30, 40), (2, 30, 40)], None, False, {}),
    "sum with channels": ("Add", [(2, 3, 40), (1, 3, 1)], None, False, {}),
    "product of values": ("Mul", [(2, 3, 4, 5), (2, 3, 1, 1)], None, False, {}),
    "average": ("GlobalAveragePool", [(2, 30, 7, 5)], None, False, {}),
    "largest": (
        "MaxPool",
        [(2, 3, 9, 8)],
        None,
        False,
        dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
    ),
    "transposed": ("Transpose", [(2, 3, 5)], None, False, dict(perm=[2, 0, 1])),
}


def quantized_node(name: str, kind: str, seed: int):
    op, shapes, weight, bias, attributes = QUANTIZED_NODES[name]
    made = _Quantized(kind, seed)
    pairs = [made.input(shape) for shape in shapes]
    takes, form = [value for value, _ in pairs], pairs[0][1]
    if weight:
        takes += made.weight(*weight, form, bias, name == "unsigned weights")
    moves = op in ("MaxPool", "Transpose")
    return made.model(op, takes, form if moves else None, name == "bounded", attributes)


def network():
    """Of images 3x16x20."""
    node, nodes, constants = helper.make_node, [], []

    def constant(name: str, value) -> str:
        constants.append(numpy_helper.from_array(value.astype(numpy.float32), name))
        return name

    def convolution(x, shape, name, act="Relu", **attributes):
        seed = len(nodes)
        scale = 1.4 / numpy.sqrt(numpy.prod(shape[1:]))
        weight = constant(f"{name}.weight", random(shape, seed) * scale)
        bias = constant(f"{name}.bias", random(shape[:1], seed + 50) / 10)
        nodes.append(node("Conv", [x, weight, bias], [f"{name}_sums"], name=name, **attributes))
        if not act:
            return f"{name}_sums"
        nodes.append(node(act, [f"{name}_sums"], [name]))
        return name

    wide = dict(pads=[1, 1, 1, 1])
    stem = convolution("x", (16, 3, 3, 3), "stem", strides=[2, 2], **wide)
    deep = convolution(stem, (16, 1, 3, 3), "depthwise", None, group=16, **wide)
    numbers = [random((16,), 80), random((16,), 81), random((16,), 82), random((16,), 83) ** 2]
    names = [constant(f"norm.{at}", value) for at, value in enumerate(numbers)]
    nodes.append(node("BatchNormalization", [deep, *names], ["normed"], epsilon=1e-3))
    nodes.append(node("Relu", ["normed"], ["deep"]))
    point = convolution("deep", (16, 16, 1, 1), "pointwise", None)
    nodes.append(node("Add", [stem, point], ["sum"]))
    nodes.append(node("Relu", ["sum"], ["bounded"]))
    nodes.append(node("MaxPool", ["bounded"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]))
    nodes.append(node("GlobalAveragePool", ["pooled"], ["mean"]))
    gate = convolution("mean", (16, 16, 1, 1), "gate", "Sigmoid")
    nodes.append(node("Mul", ["pooled", gate], ["gated"]))
    last = convolution("gated", (32, 16, 3, 3), "last", **wide)
    nodes.append(node("GlobalAveragePool", [last], ["features"]))
    nodes.append(node("Flatten", ["features"], ["flat"]))
    weight, bias = (
        constant("head.weight", random((32, 10)) / 6),
        constant("head.bias", random((10,))),
    )
    nodes.append(node("Gemm", ["flat", weight, bias], ["y"], name="head"))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["images", 3, 16, 20])
    return whole_model(nodes, [x], ["y"], constants, 17)
