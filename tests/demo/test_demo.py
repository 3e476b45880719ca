"""The demos: what they compute, and their pictures."""

import numpy as np
import pytest

from convcore import cli


def test_demo_refuses_a_format_that_cannot_be_written(tmp_path, capsys):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    assert cli.main(["demo", "digits", "--output", str(tmp_path / "digits.txt")]) == 2
    assert "not supported" in capsys.readouterr().err


# Digits


@pytest.fixture
def digits():
    """Scikit-learn's digits, through convcore's eyes."""
    pytest.importorskip("sklearn")
    from convcore.demo import digits

    return digits


def test_digits_are_split_into_parts_without_overlap(digits):
    train, test = digits.load_digits(seed=0)
    assert (len(test), len(train)) == (359, 1438)  # a fifth of 1,797 is held out
    images = train.tensors[0]
    assert images.shape == (len(train), 1, 8, 8)
    assert images.min() == 0 and images.max() == 1
    other = digits.load_digits(seed=1)
    assert not np.array_equal(test.tensors[0].numpy(), other[1].tensors[0].numpy())
    every = np.concatenate([part.tensors[0].numpy() for part in (train, test)])
    again = np.concatenate([part.tensors[0].numpy() for part in other])
    assert every.sum() == pytest.approx(again.sum())


def test_net_learns_to_read_digits(digits):
    import convcore
    from convcore.demo import training

    convcore.manual_seed(0)
    task, net = training.digits_task(seed=0), digits.Reader()
    before = training.tested_on(net, *task.test.tensors)[0]
    *_, last = training.train(net, task, epochs=5)
    # Five epochs of the demo's thirty, which reach 97 %.
    assert before < 0.5 and last.accuracy > 0.85 and last.epoch == 5


def test_hooks_see_the_maps_and_the_gradient(digits):
    import convcore

    convcore.manual_seed(0)
    net, (_, test) = digits.Reader(), digits.load_digits(seed=0)
    image, label = test.tensors[0][0], int(test.tensors[1][0])
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


# The maps of a net


def test_hooks_see_what_each_convolution_is_given():
    import convcore
    from convcore.demo import maps

    net = convcore.models.resnet18()
    photograph = np.random.default_rng(0).random((3, 64, 96), dtype=np.float32)
    found = maps.see(net, photograph, imagenet=True)
    assert len(found.inputs) == 20
    first, second = found.inputs[:2]
    assert (first.name, first.shape) == ("conv1", (3, 64, 96))
    assert (second.name, second.shape) == ("layer1.0.conv1", (64, 16, 24))
    assert second.maps.shape == (4, 16, 24)
    assert found.inputs[-1].shape == (512, 2, 3)
    assert all((one.maps >= 0).all() for one in found.inputs[1:])  # each follows a ReLU
    # In the units of the checkpoints: the mean photograph is 0.
    np.testing.assert_allclose(
        *(first.maps[2], (photograph[2] - 0.406) / 0.225), rtol=1e-5, atol=1e-5
    )
    assert not any(module._forward_pre_hooks for module in net.modules())  # it tidied up


def test_maps_demo_draws_the_net_of_a_checkpoint(tmp_path, capsys):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    import convcore
    from convcore.demo import maps

    file, weights = tmp_path / "maps.png", tmp_path / "weights.pth"
    state = convcore.models.resnet18().state_dict()
    state["conv1.weight"].zero_()
    convcore.save(state, weights)
    arguments = ["demo", "maps", "--output", str(file), "--weights"]
    assert cli.main([*arguments, str(weights)]) == 0
    assert "11,689,512 parameters, looked at 640 x 427 pixels" in capsys.readouterr().out
    picture = imread(file)
    assert picture.shape[0] > 1000 and picture[..., :3].std() > 0.1
    assert not maps.load_net(weights).conv1.weight.any()
    plain = maps.see(maps.load_net(weights), np.full((3, 32, 32), 0.5, np.float32))
    assert (plain.inputs[0].maps == 0.5).all()
    convcore.save({"weight": convcore.ones(2)}, weights)
    assert cli.main([*arguments, str(weights)]) == 2
    assert "--weights: " in capsys.readouterr().err


def test_maps_demo_says_what_it_trained_and_how_long_it_takes(
    training, tmp_path, capsys, monkeypatch
):
    pytest.importorskip("matplotlib")
    pytest.importorskip("rich")
    monkeypatch.setattr(training, "patches_task", training.patches)
    from matplotlib.image import imread

    file = tmp_path / "maps.png"
    assert cli.main(["demo", "maps", "--scale", "one", "--output", str(file)]) == 0
    assert imread(file)[..., :3].std() > 0.1
    said = capsys.readouterr()
    assert "2 epochs over 64 patches" in said.out and "ResNet-8, trained to tell 3" in said.out
    assert "9 convolutions" in said.out and "random" not in said.out
    assert said.err.startswith("maps: a ResNet-8 is trained first; about 10 seconds")


# Training


@pytest.fixture
def training():
    """The demo that trains, and an easy task: which of three bars a small picture has."""
    pytest.importorskip("sklearn")
    import convcore
    from convcore.demo import training
    from convcore.utils.data import TensorDataset

    def bars(n):
        labels = np.random.default_rng(n).integers(0, 3, n)
        images = np.random.default_rng(n).random((n, 1, 8, 8), dtype=np.float32) / 4
        images[np.arange(n), 0, 2 * labels + 1] = 1
        return TensorDataset(convcore.from_numpy(images), convcore.from_numpy(labels))

    def patches():
        images = np.random.default_rng(0).random((64, 3, 32, 32), dtype=np.float32)
        part = TensorDataset(convcore.from_numpy(images), convcore.arange(64) % 3)
        return training.Task("patches", tuple("abc"), part, part, training.mirrored, 2)

    training.patches = patches
    training.easy = training.Task("bars", tuple("abc"), bars(96), bars(40), training.mirrored, 3)
    return training


def test_patches_are_cut_from_places_that_do_not_overlap(training):
    pixels = np.arange(64 * 80 * 3, dtype=np.float32).reshape(64, 80, 3)
    patches = training.cut(pixels)
    assert patches.shape == (3 * 4, 3, 32, 32)
    assert np.array_equal(patches[5], pixels[16:48, 16:48].transpose(2, 0, 1))
    pytest.importorskip("matplotlib")
    task = training.patches_task()
    assert task.classes == ("china", "flower", "portrait")
    for part in (task.train, task.test):
        images, labels = part.tensors
        assert images.shape[1:] == (3, 32, 32) and labels.unique().tolist() == [0, 1, 2]
        assert images.min() >= 0 and images.max() <= 1
    assert len(task.train) > 3 * len(task.test) > 1000


def test_a_net_learns_in_shards(training):
    import convcore

    convcore.manual_seed(0)
    convcore.distributed.init_process_group()
    try:
        net = training.make_net(training.easy)
        steps = list(training.train(net, training.easy, 8, shards=4))
    finally:
        convcore.distributed.destroy_process_group()
    assert steps[-1].loss < steps[0].loss and steps[-1].accuracy > 0.6


def test_residual_net_learns_an_easy_task(training):
    import convcore

    convcore.manual_seed(0)
    net = training.make_net(training.easy)
    steps = list(training.train(net, training.easy, 8))
    assert [step.number for step in steps] == list(range(1, 25))
    assert [step.epoch for step in steps if step.accuracy is not None] == list(range(1, 9))
    assert max(step.lr for step in steps) == pytest.approx(0.1, rel=0.05)
    assert steps[-1].accuracy > 0.9 and steps[-1].loss < steps[0].loss / 2
    images, labels = training.easy.test.tensors
    right = np.mean(np.array(training.answers(net, images)) == labels.numpy())
    assert right == pytest.approx(steps[-1].accuracy)
    assert [step.test_loss is None for step in steps] == [step.accuracy is None for step in steps]
    with convcore.no_grad():
        loss = convcore.nn.functional.cross_entropy(net(images), labels).item()
    assert steps[-1].test_loss == pytest.approx(loss, rel=1e-5)


def test_training_demo_draws_its_curves(training, tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    pytest.importorskip("rich")
    from matplotlib.image import imread

    monkeypatch.setattr(training, "digits_task", lambda seed: training.easy)
    monkeypatch.setattr(training, "patches_task", lambda: training.easy)
    file = tmp_path / "curves.png"
    assert cli.main(["demo", "training", "--epochs", "1", "--output", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "bars: 3 batches from 96 images" in printed and str(file) in printed
    picture = imread(file)
    assert picture.shape[0] > 800 and picture.shape[1] > 1400
    for half in np.array_split(picture[..., :3], 2):
        assert all(part.std() > 0.1 for part in np.array_split(half, 3, axis=1))


def test_wrong_answers_are_drawn_with_the_truth(training):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from convcore.demo import training_picture

    images = training.easy.test.tensors[0][:3].numpy()
    run = training_picture.Run(training.easy, [], images, labels=[0, 1, 2], answers=[0, 2, 2])
    figure = Figure()
    training_picture._draw_images(figure, run)
    drawn = [(ax.get_title(), ax.title.get_color()) for ax in figure.axes[:4]]
    assert drawn == [("a", "black"), ("c, not b", "red"), ("c", "black"), ("", "black")]
