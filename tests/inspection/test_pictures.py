"""Pictures of nets' insides: what their artists hold."""

import numpy as np
import pytest

import convcore
from convcore import inspection, nn
from convcore.inspection import pictures

pytest.importorskip("matplotlib")


def images(figure):
    """Return the arrays of a figure's images, of all axes but colour bars."""
    return [np.asarray(image.get_array()) for ax in figure.axes for image in ax.images]


def test_feature_maps_are_the_first_images_channels():
    maps = convcore.rand(2, 5, 4, 3)
    figure = pictures.feature_maps(maps, most=3)
    assert np.array_equal(images(figure), maps[0, :3].numpy())
    assert [ax.get_title() for ax in figure.axes if ax.images] == ["0", "1", "2"]
    assert figure.get_suptitle() == "3 of 5 feature maps of 4 x 3"


def test_titles_say_whose_maps_and_kernels_they_are():
    maps = pictures.feature_maps(convcore.rand(2, 5, 4, 3), title="layer1")
    assert maps.get_suptitle() == "layer1: 5 of 5 feature maps of 4 x 3"
    for channels, end in ((3, "as colours; grey is 0"), (2, "input channel 0 of 2")):
        kernels = pictures.kernels(convcore.rand(4, channels, 3, 3), title="conv1")
        assert kernels.get_suptitle() == f"conv1: 4 of 4 kernels of 3 x 3, {end}"


def test_bfloat16_is_drawn_as_its_numbers():
    pytest.importorskip("ml_dtypes")
    maps = convcore.rand(1, 2, 4, 3).bfloat16()
    assert np.array_equal(images(pictures.feature_maps(maps)), maps[0].float().numpy())


def test_feature_maps_have_one_scale_or_each_its_own():
    maps = np.stack([np.arange(4.0).reshape(2, 2), 10 + np.arange(4.0).reshape(2, 2)])
    together = pictures.feature_maps(maps)
    assert {image.get_clim() for ax in together.axes for image in ax.images} == {(0, 13)}
    apart = pictures.feature_maps(maps, one_scale=False)
    assert [ax.images[0].get_clim() for ax in apart.axes if ax.images] == [(0, 3), (10, 13)]


def test_kernels_of_colours_are_colours_and_others_have_zero_in_the_middle():
    weight = convcore.randn(4, 3, 3, 3)
    shown = images(pictures.kernels(weight))
    largest = weight.abs().max().item()
    expected = 0.5 + weight.numpy().transpose(0, 2, 3, 1) / largest / 2
    np.testing.assert_allclose(shown, expected, rtol=1e-6)
    figure = pictures.kernels(convcore.arange(8.0).view(2, 2, 2, 1), channel=1)
    assert np.array_equal(np.stack(images(figure))[..., 0], [[2, 3], [6, 7]])
    assert figure.axes[0].images[0].get_clim() == (-7, 7)


def test_saliency_lies_over_the_image():
    image, shares = convcore.rand(1, 3, 4, 5), convcore.zeros(1, 3, 4, 5)
    shares[0, :, 1, 2] = 1
    figure = pictures.saliency_overlay(image, shares, opacity=0.5)
    shown, attribution, grey, over = images(figure)
    np.testing.assert_allclose(shown, image[0].permute(1, 2, 0).numpy())
    assert attribution[1, 2] == 3 and attribution.sum() == 3
    np.testing.assert_allclose(grey, image[0].mean(dim=0).numpy(), rtol=1e-6)
    alpha = figure.axes[2].images[1].get_alpha()
    assert alpha[1, 2] == 0.5 and alpha.sum() == 0.5 and np.array_equal(over, attribution)


def test_negative_attributions_get_a_scale_around_zero():
    figure = pictures.saliency_overlay(convcore.rand(1, 4, 4), np.linspace(-2, 1, 16).reshape(4, 4))
    least, most = figure.axes[1].images[0].get_clim()
    assert least == -most < 0


def test_gradient_flow_has_mean_largest_and_zeros_of_each_layer():
    grads = {"first": convcore.tensor([0.0, -4.0]), "last": convcore.tensor([1.0, 3.0])}
    upper, lower = pictures.gradient_flow(grads).axes
    found = {line.get_label(): list(line.get_ydata()) for line in upper.lines}
    assert found == {"largest": [4, 3], "mean": [2, 2]}
    assert [bar.get_height() for bar in lower.patches] == [50, 0]
    assert [label.get_text() for label in lower.get_xticklabels()] == ["first", "last"]


def test_gradient_flow_of_a_net_is_that_of_its_weights():
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
    with pytest.raises(ValueError, match=r"call backward\(\) first"):
        pictures.gradient_flow(net)
    net(convcore.rand(4, 3)).sum().backward()
    upper, _ = pictures.gradient_flow(net).axes
    largest = [net[k].weight.grad.abs().max().item() for k in (0, 2)]
    np.testing.assert_allclose(upper.lines[0].get_ydata(), largest)


@pytest.mark.parametrize("of", ["grad", ("output", "grad")])
def test_gradient_flow_of_a_capture_is_in_the_order_of_the_calls(of):
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
    with inspection.capture(net, "[0-9]", of=of) as found:
        net(convcore.rand(4, 3)).sum().backward()
    _, lower = pictures.gradient_flow(found).axes
    assert [label.get_text() for label in lower.get_xticklabels()] == ["0", "1", "2"]


def test_gradient_flow_marks_nan():
    grads = {"a": np.array([1.0, np.nan]), "b": np.array([0.0])}
    figure = pictures.gradient_flow(grads)
    assert list(figure.axes[0].lines[-1].get_xdata()) == [0]
    figure.canvas.draw()


def test_histograms_of_tensors_and_of_captured_statistics_agree():
    net = nn.Sequential(nn.Linear(4, 256), nn.ReLU())
    seen, values = [], []
    for step in range(3):
        with inspection.capture(net, "0", stats="histogram") as found:
            values.append(net(convcore.rand(8, 4) + step).detach() * 1)
        seen.append(found["0"])
    meshes = [pictures.histograms(one).axes[0].collections[0] for one in (seen, values)]
    shares = np.asarray(meshes[0].get_array()) ** 2
    assert shares.shape == (64, 3)
    np.testing.assert_allclose(shares.sum(axis=0), 1)


def test_histogram_columns_are_shares_and_the_line_is_the_median():
    steps = [np.linspace(0, 1, 641), np.linspace(1, 3, 641)]
    ax = pictures.histograms(steps, numbers=[10, 20]).axes[0]
    shares = np.asarray(ax.collections[0].get_array()) ** 2
    assert shares[:21, 0].sum() > 0.95 > 0.05 > shares[:21, 1].sum()
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.5, 2], atol=0.05)
    assert list(ax.lines[0].get_xdata()) == [10, 20]


def test_receptive_field_of_two_convolutions_is_five_pixels():
    net = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.Conv2d(2, 2, 3, padding=1))
    figure = pictures.receptive_field(net, convcore.rand(2, 1, 9, 11), "1")
    box = figure.axes[0].patches[0]
    assert (box.get_width(), box.get_height()) == (5, 5)
    assert (box.get_x(), box.get_y()) == (5 - 2.5, 4 - 2.5)
    assert "5 x 5 of 9 x 11 pixels" in figure.axes[0].get_title()
    assert all(parameter.grad is None for parameter in net.parameters())


@pytest.mark.parametrize("mode", [convcore.no_grad, convcore.inference_mode])
def test_receptive_fields_record_gradients_whatever_the_mode(mode):
    net, x = nn.Sequential(nn.Conv2d(1, 1, 3)), convcore.rand(1, 1, 9, 9)
    with mode():
        figure = pictures.receptive_field(net, x, "0")
    assert "3 x 3 of 9 x 9 pixels" in figure.axes[0].get_title()


def test_receptive_field_is_not_widened_by_winograd():
    """7 of the stem, 4 of its pooling, and 2 pixels 4 apart for each of four convolutions."""
    figure = pictures.receptive_field(
        convcore.models.resnet18(), convcore.rand(1, 3, 96, 96), "layer1"
    )
    box = figure.axes[0].patches[0]
    assert max(box.get_width(), box.get_height()) <= 7 + 4 + 4 * 2 * 4


def test_pictures_are_drawn_into_the_figure_that_is_given():
    from matplotlib.figure import Figure

    given = Figure()
    assert pictures.feature_maps(convcore.rand(2, 3, 3), figure=given) is given


@pytest.mark.parametrize(
    ("function", "arguments", "options", "words"),
    [
        (pictures.feature_maps, [np.ones((2, 2))], {}, "maps must have 3 or 4 axes"),
        (pictures.feature_maps, [np.ones((1, 2, 2))], {"most": 0}, "most must be above 0"),
        (pictures.feature_maps, [np.ones((1, 2, 2), complex)], {}, "of numbers, got complex128"),
        (pictures.kernels, [np.ones((2, 2, 3, 3))], {"channel": 2}, "from 0 to 1, got 2"),
        (pictures.saliency_overlay, [np.ones((3, 4, 4)), np.ones((3, 3))], {}, "image's size"),
        (pictures.saliency_overlay, [np.ones((2, 4, 4)), np.ones((4, 4))], {}, "1 or 3 channels"),
        (pictures.gradient_flow, [3], {}, "Capture or mapping, got int"),
        (pictures.gradient_flow, [{}], {}, "there are none"),
        (pictures.gradient_flow, [{"a": 1}], {}, r"gradients\['a'\] must be a tensor"),
        (pictures.histograms, [[]], {}, "there are none"),
        (pictures.histograms, [[np.ones(2)] * 2], {"numbers": [2, 1]}, "numbers that rise"),
    ],
)
def test_other_arguments_are_refused(function, arguments, options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        function(*arguments, **options)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'convcore\[view\]'"):
        pictures.feature_maps(convcore.rand(2, 3, 3))


@pytest.mark.parametrize(
    ("draw", "hint"),
    [(pictures.feature_maps, "inspection.capture"), (pictures.kernels, "net.conv1.weight")],
)
def test_a_net_in_the_place_of_values_is_told_what_to_give(draw, hint):
    with pytest.raises(TypeError, match="got Linear") as caught:
        draw(convcore.nn.Linear(1, 1))
    assert hint in str(caught.value)
