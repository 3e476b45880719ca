"""Regular expressions of RE2's syntax, in a time linear in the text."""

import random
import time

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from onnx import TensorProto, helper  # noqa: E402

from convcore.onnx import OnnxError, load  # noqa: E402
from convcore.onnx.operators.regular_expressions import RegularExpression  # noqa: E402

SLOW = {
    "(a|a)+$": "a" * 1000 + "b",
    "(a*)*b": "a" * 1000,
    "(a|aa)+": "a" * 1000 + "b",
    "(.*)(.*)(.*)(.*)(.*)x": "a" * 1000,
    "(a?){60}a{60}": "a" * 60,
    "(x+x+)+y": "x" * 1000,
}


@pytest.mark.parametrize("pattern", SLOW)
def test_no_pattern_takes_more_than_linear_time(pattern):
    begin = time.process_time()
    assert RegularExpression(pattern).full_match(SLOW[pattern]) is (pattern == "(a?){60}a{60}")
    assert time.process_time() - begin < 2


MATCHES = [
    (r"\d+", "123", True),
    (r"\d+", "\u0661", False),  # of ASCII alone
    (r"a$", "a\n", False),  # the end of the text, not of its last line
    (r"(?m)a$\n", "a\n", True),
    (r"a.b", "a\nb", False),
    (r"(?s)a.b", "a\nb", True),
    (r"(?i)straSSE", "STRASSE", True),
    (r"[[:alpha:]]+[^[:digit:]]", "ab_", True),
    (r"\pL\p{Lu}\PN", "\u00e9\u00c9-", True),
    (r"[\]\-a-c]+", "]-b", True),
    (r"a{,2}", "a{,2}", True),
    (r"a{2,3}", "aaaa", False),
    (r"\Qa.b\E+", "a.bb", True),
    (r"\bfoo\b.*\Bx", "foo axx", True),
    (r"\x41\x{1F600}\101\t", "A\U0001f600A\t", True),
    (r"(?P<year>\d{4})-(?:\d\d)|", "2024-05", True),
    ("", "", True),
]


@pytest.mark.parametrize(("pattern", "text", "is_match"), MATCHES)
def test_the_syntax_is_re2s(pattern, text, is_match):
    assert RegularExpression(pattern).full_match(text) is is_match


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", ")", "[", "[b-a]", "*a", "a**", "a{1001}", "a{3,2}", "\\", r"\1", r"(?=a)", r"\Z"),
        *("(?P<>a)", "(?P<n", r"\q", r"\p{Greek}", r"\x{110000}", "[[:no:]]", "(?x)a", r"\C"),
        "((a{1000}){1000}){1000}",
        "(" * 100_000,
    ],
    ids=lambda pattern: pattern[:20],
)
def test_other_patterns_are_refused(pattern):
    with pytest.raises(OnnxError, match="regular expression"):
        RegularExpression(pattern)


def test_the_operator_names_its_node():
    infos = [helper.make_tensor_value_info(n, k, [None]) for n, k in (("x", 8), ("y", 9))]
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], "match", pattern="(a")
    graph = helper.make_graph([node], "g", infos[:1], infos[1:])
    net = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    with pytest.raises(
        OnnxError, match=r"RegexFullMatch of opset 20 in node 'match': .*missing \)"
    ):
        net(np.array(["a"], object))


ATOMS = (
    *(
        "a",
        "b",
        ".",
        r"\d",
        r"\w",
        "[ab]",
        "[^a]",
        "[[:alpha:]]",
        r"\.",
        "(a|b)",
        "(?:ab)",
        "(?i)a",
    ),
    *(
        "^",
        "$",
        r"\b",
        r"\B",
        r"\n",
        r"\x41",
        r"\pL",
        "|",
        "[]a]",
        "[a-]",
        "(?s).",
        "(?m)^",
        "(?m)$",
    ),
)
COUNTS = ("", "", "", "*", "+", "?", "*?", "{2}", "{1,}", "{0,2}", "{,2}")


def test_random_patterns_match_as_in_onnx_runtime(seed):
    runtime = pytest.importorskip("onnxruntime")
    draw = random.Random(seed)
    for _ in range(150):
        pattern = "".join(
            draw.choice(ATOMS) + draw.choice(COUNTS) for _ in range(draw.randint(1, 4))
        )
        try:
            expression = RegularExpression(pattern)
        except OnnxError:  # a repetition of nothing
            continue
        texts = ["".join(draw.choices("abAB1 \n_.-", k=draw.randint(0, 4))) for _ in range(20)]
        node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
        infos = [
            helper.make_tensor_value_info("x", TensorProto.STRING, [None]),
            helper.make_tensor_value_info("y", TensorProto.BOOL, [None]),
        ]
        graph = helper.make_graph([node], "g", infos[:1], infos[1:])
        opsets = [helper.make_opsetid("", 20)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        session = runtime.InferenceSession(model.SerializeToString())
        (expected,) = session.run(None, {"x": np.array(texts, object)})
        found = [expression.full_match(text) for text in texts]
        assert dict(zip(texts, found, strict=True)) == dict(
            zip(texts, expected.tolist(), strict=True)
        ), pattern
