"""The photograph demo: its filters, its gradient, its picture."""

from __future__ import annotations

import numpy as np
import pytest

from convcore import cli, engine
from convcore.demo.filters import SIZE, gabor, make_bank, sobel
from convcore.demo.photo import Photographs, respond


@pytest.fixture
def small():
    """Two small noise pictures in place of photographs."""
    pixels = np.random.default_rng(0).random((2, 20, 24, 3), dtype=np.float32)
    return Photographs(("first", "second"), pixels.transpose(0, 3, 1, 2))


def test_filters_do_not_answer_to_even_light():
    bank = make_bank()
    assert bank.weight.shape == (len(bank.titles), 3, SIZE, SIZE)
    assert bank.weight.dtype == np.float32
    assert np.abs(bank.weight.sum(axis=(2, 3))).max() < 1e-6


def test_gabor_turns_with_its_angle():
    # Counter-clockwise, as np.rot90 turns.
    assert np.allclose(gabor(90), np.rot90(gabor(0)))
    assert np.allclose(gabor(180), -gabor(0))
    # At 0 degrees the wave runs along x, rising from the middle to the right.
    middle = SIZE // 2
    assert gabor(0)[middle, middle + 1] > 0 > gabor(0)[middle, middle - 1]


def test_sobel_is_a_slope():
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    assert np.vdot(sobel(vertical=False), x) > 0 == round(np.vdot(sobel(vertical=False), y), 9)
    # Upwards, and rows are counted downwards.
    assert np.vdot(sobel(vertical=True), y) < 0


def test_gradient_is_the_derivative_of_the_energy(small):
    found = respond(small)
    assert found.responses.shape == (2, 6, 20, 24)
    assert found.gradient.shape == small.pixels.shape
    # The energy is quadratic: a central difference along any direction is exact but for rounding.
    direction = np.random.default_rng(1).standard_normal(small.pixels.shape)

    def energy(step):
        moved = small.pixels.astype(np.float64) + step * direction
        weight = found.bank.weight.astype(np.float64)
        return 0.5 * np.square(engine.conv_forward(moved, weight, padding=SIZE // 2)).sum()

    slope = (energy(0.5) - energy(-0.5)) / 1.0
    assert (found.gradient * direction).sum() == pytest.approx(slope, rel=1e-4)
    assert found.energy == pytest.approx(energy(0.0), rel=1e-5)


def test_demo_draws_photographs_responses_and_gradients(tmp_path, capsys):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    file = tmp_path / "photo.png"
    assert cli.main(["demo", "photo", "--output", str(file)]) == 0
    printed = capsys.readouterr().out
    assert str(file) in printed
    assert "china, flower" in printed
    picture = imread(file)
    assert picture.shape[0] > 1000 and picture.shape[1] > 1500
    # Neither blank nor nearly so, in any quarter.
    for half in np.array_split(picture[..., :3], 2):
        for quarter in np.array_split(half, 2, axis=1):
            assert quarter.std() > 0.1


def test_places_without_a_panel_stay_blank(small, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    from convcore.demo import picture

    # 16 panels in rows of 5: the last row has one, and four places are left over.
    monkeypatch.setattr(picture, "_COLUMNS", 5)
    picture.save_picture(respond(small), tmp_path / "photo.png")
    drawn = imread(tmp_path / "photo.png")
    height, width = drawn.shape[:2]
    assert (drawn[-height // 6 :, -width // 2 :] == 1).all()
    assert not (drawn[-height // 6 :, : width // 5] == 1).all()


def test_demo_refuses_a_format_that_cannot_be_written(tmp_path, capsys):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    assert cli.main(["demo", "photo", "--output", str(tmp_path / "photo.txt")]) == 2
    assert "not supported" in capsys.readouterr().err


# Digits


@pytest.fixture
def digits():
    """Scikit-learn's digits, through convcore's eyes."""
    pytest.importorskip("sklearn")
    from convcore.demo import digits

    return digits


def test_digits_are_split_into_parts_without_overlap(digits):
    data = digits.load_digits(seed=0)
    n_test, n_train = len(data.test_labels), len(data.train_labels)
    assert (n_test, n_train) == (359, 1438)  # a fifth of 1,797 is held out
    assert data.train_images.shape == (n_train, 1, 8, 8)
    assert data.train_images.min() == 0 and data.train_images.max() == 1
    other = digits.load_digits(seed=1)
    assert not np.array_equal(data.test_images.numpy(), other.test_images.numpy())
    every = np.concatenate([data.train_images.numpy(), data.test_images.numpy()])
    again = np.concatenate([other.train_images.numpy(), other.test_images.numpy()])
    assert every.sum() == pytest.approx(again.sum())


def test_net_learns_to_read_digits(digits):
    import convcore

    convcore.manual_seed(0)
    data, net = digits.load_digits(seed=0), digits.Reader()
    before = digits.accuracy(net, data.test_images, data.test_labels)
    *_, last = digits.train(net, data, epochs=5)
    # Five epochs of the demo's thirty, which reach 98 %.
    assert before < 0.5 and last.accuracy > 0.85 and last.number == 5


def test_hooks_see_the_maps_and_the_gradient(digits):
    import convcore

    convcore.manual_seed(0)
    data, net = digits.load_digits(seed=0), digits.Reader()
    image, label = data.test_images[0], int(data.test_labels[0])
    found = digits.look(net, image, label)
    assert found.maps.shape == (16, 8, 8) and found.gradient.shape == (8, 8)
    with convcore.no_grad():
        expected = net.conv1(image.unsqueeze(0))[0]
    assert np.array_equal(found.maps, expected.numpy())
    net.double().eval()
    step = np.zeros((1, 1, 8, 8))
    step[0, 0, 3, 4] = 1e-4

    def score(shift):
        return net(convcore.from_numpy(image.numpy()[None] + shift))[0, label].item()

    slope = (score(step) - score(-step)) / 2e-4
    assert found.gradient[3, 4] == pytest.approx(slope, rel=1e-3, abs=1e-5)
    assert not net.conv1._forward_hooks and not net._backward_hooks  # it tidied up


def test_digits_demo_draws_what_the_hooks_saw(digits, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    pytest.importorskip("rich")
    from matplotlib.image import imread

    file = tmp_path / "seen.png"
    assert cli.main(["demo", "digits", "--epochs", "1", "--output", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "1 epoch over 1438 digits" in printed and str(file) in printed
    picture = imread(file)
    assert picture.shape[1] > 1000 and picture[..., :3].std() > 0.1
