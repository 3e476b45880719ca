"""Reports on nets: what stands in the page, that nothing else is loaded, and how it looks."""

import base64
import hashlib
import importlib.util
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

import convcore
from convcore import inspection, models, nn
from convcore.inspection.profiling import ProfileRow
from convcore.inspection.reporting import _charts
from convcore.inspection.reporting._boxes import boxes_of
from convcore.inspection.reporting._calls import INPUT, calls_of
from convcore.inspection.reporting._facts import times_of

SITE_IN_BROWSER = Path(__file__).parents[1] / "docs" / "site_in_browser.py"
VOID = {"meta", "link", "img"}


class Page(HTMLParser):
    """The tags of a page, each closed as it was opened."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.links, self.images, self.open = set(), [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.add(tag)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if tag == "a" else []
        self.images += [found] if tag == "img" else []
        assert not [name for name in found if name.startswith("on") or name == "style"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def small():
    convcore.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))


@pytest.fixture
def written(tmp_path):
    """Write a report; return its text."""

    def write(model, *given, **options):
        file = inspection.report(model, given, tmp_path / "net.html", **options)
        return file.read_text(encoding="utf-8")

    return write


@pytest.fixture
def image():
    convcore.manual_seed(1)
    return convcore.rand(1, 3, 8, 8)


def rows(text):
    """Return the cells of the table of layers, by name."""
    body = re.search(r'id="table".*?<tbody>(.*?)</tbody>', text, re.DOTALL)[1]
    found = {}
    for row in body.split("</tr>")[:-1]:
        cells = [re.sub("<[^>]*>", "", cell).strip("\xa0") for cell in row.split("</td>")]
        found[cells[0]] = cells[1:]
    return found


def test_page_is_whole_and_its_links_lead_somewhere(written, image):
    page = Page(written(small(), image))
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert {link for link in page.links if link.removeprefix("#") not in page.ids} == set()
    assert page.tags.isdisjoint({"script", "iframe", "object", "form"})


def test_policy_allows_the_style_of_the_page_and_nothing_else(written, image):
    text = written(small(), image)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert "default-src 'none'" in policy and f"style-src 'sha256-{digest}'" in policy
    assert "script-src" not in policy and "unsafe" not in policy
    text = re.sub(r"data:image/png;base64,[\w+/=]*", "", text)
    assert not re.search(r"https?:|//[a-z]|url\(|@import", text)


def test_same_net_and_input_make_the_same_bytes(tmp_path, image):
    net = small()
    first = inspection.report(net, image, tmp_path / "a.html").read_bytes()
    assert inspection.report(net, image, tmp_path / "b.html").read_bytes() == first


def test_table_has_the_costs_and_statistics_of_every_call(written, image):
    net = small()
    found = rows(written(net, image))
    assert list(found) == ["(the net)", "0", "1", "2", "3"]
    # 4 * 6 * 6 outputs of 27 products; 5 outputs of 144
    assert found["0"][1:4] == [" \N{MULTIPLICATION SIGN} ".join("1466"), "112", "3,888"]
    assert found["(the net)"][3] == "4,608"
    zeros = (net[:2](image) == 0).numpy().mean()
    assert found["1"][8] == f"{zeros:.0%}"


def test_net_and_its_gradients_stay_as_they_were(tmp_path, image):
    net = small().train()
    inspection.report(net, image.requires_grad_(), tmp_path / "net.html", times=True)
    assert net.training and image.grad is None
    assert all(parameter.grad is None for parameter in net.parameters())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())


def test_names_and_titles_are_text(written, image):
    net = nn.Sequential()
    evil = "<script>alert(1)</script>&\"'"
    net.add_module(evil.replace(".", ""), nn.Conv2d(3, 2, 3))
    text = written(net, image, title=evil)
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert Page(text).open == []


def test_gradients_have_the_names_of_few_layers(written, image):
    text = written(small(), image)
    chart = re.search(r'aria-label="Gradients of the weights">(.*?)</svg>', text)[1]
    assert re.findall(r'text-anchor="middle">(\w+)<', chart) == ["0", "3"]


class Sequences(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.attention = nn.LSTM(3, 4), nn.MultiheadAttention(4, 2)
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        x, _ = self.lstm(x)
        x, _ = self.attention(x, x, x)
        return self.last(x[-1])


def test_gradients_are_of_every_weight_of_a_layer(written):
    text = written(Sequences(), convcore.rand(5, 2, 3))
    chart = re.search(r'aria-label="Gradients of the weights">(.*?)</svg>', text)[1]
    assert [name.split(":")[0] for name in re.findall(r"<title>([^<]*)<", chart)] == [
        *("lstm.weight_ih_l0", "lstm.weight_hh_l0", "attention.in_proj_weight"),
        *("attention.out_proj.weight", "last.weight"),
    ]


def test_the_verdict_names_the_mode(written, image):
    text = written(small().train(), image)
    assert "No NaN and no infinity, forward or backward, in evaluation mode" in text


@pytest.mark.parametrize("mode", [convcore.no_grad, convcore.inference_mode])
def test_a_report_records_gradients_whatever_the_mode(written, image, mode):
    net = small()
    with mode():
        text = written(net, image, times=True)
    assert "Gradients of the weights" in text


def test_first_nan_is_marked_with_what_made_it(written, image):
    class Log(nn.Module):
        def forward(self, x):
            return (x - 2).log()

    net = nn.Sequential(nn.Conv2d(3, 4, 3), Log(), nn.ReLU())
    text = written(net, image)
    verdict = re.search(r'<div class="verdict bad">(.*?)</div>', text, re.DOTALL)[1]
    assert "<code>1.log</code>" in verdict and "made NaN" in verdict
    assert "red: NaN or infinite" in text


def test_infinite_weights_and_inputs_are_reported_too(written, image):
    net = small()
    net[0].weight.data[0, 0, 0, 0] = float("inf")
    assert 'class="verdict bad"' in written(net, image)
    image[0, 0, 0, 0] = float("nan")
    assert 'class="verdict bad"' in written(small(), image)


def test_times_are_there_only_when_asked_for(written, image):
    assert "Flame graph" not in written(small(), image)
    text = written(small(), image, times=True)
    assert 'aria-label="Flame graph"' in text and re.search(r"[\d.]+ m?s forward", text)


@pytest.mark.parametrize("net", [small, lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())])
def test_times_are_of_the_net_alone(net, image):
    model = net()
    measured, _, _ = times_of(model, (image,), lambda: model(image))
    assert [row.type for row in measured.rows.children] == ["Sequential"]


def test_slivers_of_a_flame_graph_are_one_bar_and_named():
    def row(name, seconds, *children):
        return ProfileRow(name, "", True, forward=seconds, children=list(children))

    thin = [row("a", 0.002), row("b", 0.003)]
    text = _charts.flame(row("", 1.0, row("wide", 0.5), *thin, row("other", 0.4), row("c", 0.004)))
    titles = re.findall("<title>(.*?):", text)
    assert titles == ["both passes", "wide", "a, b", "other", "c"]
    assert re.search(r"a, b: together 5 ms forward", text)
    lefts = [float(one) for one in re.findall(r'<rect x="([\d.]+)"', text)]
    assert lefts == [0, 0, 500, 505, 905]


def test_kernels_are_large_enough_to_be_seen(written):
    [image] = re.findall(
        r'width="(\d+)" height="\d+" alt="Kernels',
        written(nn.Conv2d(4, 8, 3), convcore.rand(1, 4, 8, 8)),
    )
    assert int(image) >= 300  # eight kernels of three columns


def test_saliency_is_shown_where_the_net_ends_in_class_scores(written, image):
    assert "Saliency" in written(small(), image)
    assert "Saliency" not in written(small()[:2], image)


def test_nets_of_other_inputs_get_a_report(written):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(7, 4)
            self.lstm = nn.LSTM(4, 3)

        def forward(self, words, extra):
            return {"found": self.lstm(self.words(words) + extra)}

    text = written(Both(), convcore.tensor([[1, 2]]), convcore.zeros(4))
    assert {"words", "add", "lstm"} < set(rows(text))
    for parameter in (frozen := small()).parameters():
        parameter.requires_grad_(False)
    assert "Gradients of the weights" not in written(frozen, convcore.rand(2, 3, 8, 8))


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.Conv2d(3, 2, 3), (1, 3, 9, 9)),
        (lambda: nn.Sequential(nn.Conv1d(2, 3, 3), nn.ConvTranspose1d(3, 2, 3)), (1, 2, 9)),
        (lambda: nn.Sequential(nn.Conv3d(1, 2, 3)), (1, 1, 5, 5, 5)),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (1, 5, 8)),
    ],
)
def test_nets_of_other_layers_get_a_report(written, make, shape):
    page = Page(text := written(make(), convcore.rand(shape), times=True))
    assert page.open == [] and 'class="verdict"' in text


def test_link_of_a_box_is_reached_and_followed_without_a_mouse(written, image):
    """Boxes are links; what opens is a summary: both take the keyboard's focus by themselves."""
    text = written(small(), image)
    graph = text[text.index('<section id="graph">') : text.index('<section id="gradients">')]
    assert [f"#c{k}" for k in range(1, 5)] == Page(graph).links
    assert text.count("<details") == text.count("<summary>") == 5


def test_a_net_in_bfloat16_gets_statistics_pictures_and_its_nan(written, image):
    pytest.importorskip("ml_dtypes")
    net = small().bfloat16()
    page = written(net, image.bfloat16())
    assert "Feature maps" in page and "Kernels" in page and "its gradient" in page
    net[0].weight.data[0] = float("nan")
    assert "0.conv2d gets NaN: its parameter 0.weight" in written(net, image.bfloat16())


@pytest.mark.parametrize("called", [False, True])
def test_optimized_net_is_refused_whose_costs_are_not_known(written, image, tmp_path, called):
    fast = convcore.optimize_for_inference(small().eval(), *[image] * called)
    with pytest.raises(RuntimeError, match=r"report cannot tell .*: give it the model that it was"):
        written(fast, image)
    assert not any(tmp_path.iterdir())


def test_mobilenet_is_below_a_megabyte(written):
    convcore.manual_seed(0)
    text = written(models.mobilenet_v2(), convcore.rand(1, 3, 224, 224))
    assert len(text.encode()) < 1_000_000


def test_resnet18_is_below_a_megabyte(written):
    convcore.manual_seed(0)
    net = models.resnet18()
    text = written(net, convcore.rand(1, 3, 224, 224))
    assert len(text.encode()) < 1_000_000
    found = rows(text)
    sums, second_relus, flatten = 8, 8, 1
    assert len(found) == len(list(net.modules())) + sums + second_relus + flatten
    assert found["(the net)"][3] == "1.81 G"


@pytest.mark.parametrize(
    ("channels", "caption"),
    [(1, "The result: black is"), (2, "The result: channels 0 to 1 of 2, row by row; dark")],
)
def test_result_that_is_an_image_is_shown_beside_the_input(written, image, channels, caption):
    text = written(models.unet(out_channels=channels, init_features=2, depth=1), image)
    answer = text[text.index('id="answer"') : text.index('id="graph"')]
    assert caption in answer and "The input: black is" in answer
    classes = written(small(), image)
    assert "The result:" not in classes and "Largest class scores" in classes


def test_gradients_say_what_they_are_of(written, image):
    assert "gradient of the largest class score with respect to that" in written(small(), image)
    maps = nn.Sequential(nn.Conv2d(3, 2, 1))
    assert "gradient of the result's sum with respect to that" in written(maps, image)


def test_flow_of_a_residual_block_has_its_shortcut():
    net = models.resnet8().eval()
    calls = calls_of(net, lambda: net(convcore.rand(1, 3, 16, 16)))
    by_name = {call.name: call for call in calls}
    found = {calls[one].name for one in by_name["layer2.0.add"].inputs}
    assert found == {"layer2.0.bn2", "layer2.0.downsample.1"}
    assert by_name["conv1"].inputs == [INPUT]


def test_blocks_that_repeat_are_one_box_and_others_are_not():
    def block(channels):
        return nn.Sequential(nn.Conv2d(channels, channels, 1), nn.ReLU())

    net = nn.Sequential(block(2), block(2), nn.Conv2d(2, 3, 1), block(3))
    calls = calls_of(net, lambda: net(convcore.rand(1, 2, 4, 4)))
    names = [[calls[one].name for one in box.calls] for box in boxes_of(calls, 0)]
    assert names == [["0", "1"], ["2"], ["3"]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((3, convcore.ones(1)), "model must be a Module"), ((nn.ReLU(), 3), "input must be a Tensor")],
)
def test_other_arguments_are_refused(tmp_path, arguments, words):
    with pytest.raises(TypeError, match=words):
        inspection.report(*arguments, tmp_path / "net.html")
    assert not any(tmp_path.iterdir())


@pytest.mark.subprocess
def test_page_in_a_browser(tmp_path):
    """No complaint, no overflow; a link to a layer opens it."""
    spec = importlib.util.spec_from_file_location("site_in_browser", SITE_IN_BROWSER)
    site = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site)
    program = next(filter(None, map(shutil.which, site.BROWSERS)), None)
    if program is None:
        pytest.skip("Chromium is not here")
    net = models.resnet8()
    inspection.report(net, convcore.rand(1, 3, 32, 32), tmp_path / "net.html", times=True)
    assert list(site.faults_of_links(tmp_path)) == []
    assert list(site.faults_in_browser(program, tmp_path, "", None)) == []
    browser = site.started(program, str(tmp_path / "profile"))
    if browser is None:
        pytest.skip("Chromium does not start")
    browser.open((tmp_path / "net.html").as_uri() + "#c3")
    assert browser.value("document.querySelector('#c3').closest('details').open") is True
    assert browser.value("document.querySelectorAll('details[open]').length") == 1
    browser.close()


def test_a_path_in_the_place_of_the_input_is_named(tmp_path):
    file = tmp_path / "net.html"
    with pytest.raises(TypeError, match="path must be a file's name, got Tensor") as caught:
        inspection.report(nn.ReLU(), file, convcore.ones(1))
    assert "report(model, input, path)" in str(caught.value)
    with pytest.raises(TypeError, match="path must be a file's name, got int") as caught:
        inspection.report(nn.ReLU(), convcore.ones(1), 3)
    assert "Hint: " not in str(caught.value)


@pytest.mark.parametrize("name", ["net.pdf", "net.PNG"])
def test_a_file_of_another_format_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"path must end in \.html or \.htm, got .*net"):
        inspection.report(nn.ReLU(), convcore.ones(1), tmp_path / name)
    assert not (tmp_path / name).exists()


def test_calls_in_pytorchs_place_are_those_of_convcore(monkeypatch):
    for kind in (nn.Conv2d, nn.ReLU):  # as compat/door.py names them
        monkeypatch.setattr(kind, "__module__", kind.__module__.replace("convcore", "torch"))
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3))
    calls = calls_of(net, lambda: net(convcore.rand(1, 3, 8, 8)))
    assert [(call.name, call.inputs) for call in calls[1:]] == [
        ("0", [INPUT]),
        ("1", [1]),
        ("2", [2]),
    ]


def test_functions_between_the_layers_of_a_transformer_are_shown():
    net = nn.TransformerEncoderLayer(4, 1, 8, batch_first=True).eval()
    calls = {call.name: call for call in calls_of(net, lambda: net(convcore.rand(1, 3, 4)))}
    made_by = {name: [] if -1 in call.inputs else call.inputs for name, call in calls.items()}
    assert made_by["relu"] == [calls["linear1"].number]
    assert made_by["dropout"] == [calls["relu"].number]
    assert made_by["add:2"] == [calls["norm1"].number, calls["dropout2"].number]
    assert made_by["norm2"] == [calls["add:2"].number]


class ChannelsLast(nn.Module):
    """A net of images (N, H, W, 3) that gives probabilities, as Keras' do."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4, 3)

    def forward(self, x):
        maps = self.conv(x.permute(0, 3, 1, 2)).relu()
        return self.head(maps.mean((2, 3))).softmax(1)


def test_images_whose_channels_are_last_are_shown_with_their_probabilities(written):
    x = convcore.rand(1, 24, 20, 3)
    net = ChannelsLast()
    text = written(net, x)
    answer = text[text.index('id="answer"') : text.index('id="graph"')]
    assert "The input: black is" in answer and "Probability" in answer and "Softmax" not in answer
    assert f"{net(x).max().item():.1%}" in answer
    maps = inspection.attribution.grad_cam(net, x, "conv")
    assert maps.shape == (1, 1, 24, 20)
