"""hub: models and weights from local folders and the cache; downloads are refused."""

import pytest

import convcore
from convcore import hub

HUBCONF = '''
import helper_of_the_repository

def net(width, bias=True):
    """A linear layer."""
    return helper_of_the_repository.layer(width, bias)
'''


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "hubconf.py").write_text(HUBCONF)
    (folder / "helper_of_the_repository.py").write_text(
        "import convcore\ndef layer(width, bias): return convcore.nn.Linear(width, 2, bias)\n"
    )
    return folder


@pytest.fixture
def cache(tmp_path):
    before = hub.get_dir()
    hub.set_dir(tmp_path / "cache")
    yield tmp_path / "cache"
    hub.set_dir(before)


def test_a_local_folder(repository):
    net = hub.load(str(repository), "net", 3, source="local", bias=False, trust_repo=True)
    assert net.weight.shape == (2, 3) and net.bias is None
    assert hub.list(str(repository)) == ["net"]
    assert hub.help(str(repository), "net") == "A linear layer."
    with pytest.raises(RuntimeError, match="Cannot find callable no_net in hubconf"):
        hub.load(str(repository), "no_net")


def test_a_repository_in_the_cache(repository, cache):
    cache.mkdir()
    repository.rename(cache / "owner_name_main")
    assert hub.load("owner/name", "net", 4, source="github").in_features == 4
    with pytest.raises(RuntimeError, match="convcore downloads nothing"):
        hub.load("owner/other", "net", source="github")
    with pytest.raises(ValueError, match="'local' or 'github'"):
        hub.load("owner/other", "net", source="ftp")


def test_a_net_of_convcores_is_named_in_place_of_a_download(cache):
    with pytest.raises(RuntimeError, match="downloads nothing") as caught:
        hub.load("pytorch/vision:v0.10.0", "resnet18", pretrained=True)
    assert "convcore.models.resnet18()" in str(caught.value)
    with pytest.raises(RuntimeError, match="downloads nothing") as caught:
        hub.load("owner/name", "net")
    assert "Hint: " not in str(caught.value)


def test_weights_by_address(cache):
    (cache / "checkpoints").mkdir(parents=True)
    state = {"weight": convcore.arange(3.0)}
    convcore.save(state, cache / "checkpoints" / "net-1234.pth")
    address = "https://example.org/models/net-1234.pth"
    loaded = hub.load_state_dict_from_url(address, progress=False, map_location="cpu")
    assert loaded["weight"].tolist() == [0, 1, 2]
    file = (cache / "checkpoints" / "net-1234.pth").as_uri()
    assert hub.load_state_dict_from_url(file)["weight"].tolist() == [0, 1, 2]
    with pytest.raises(
        RuntimeError, match=r"convcore downloads nothing: get .*other.pth.* save it"
    ):
        hub.load_state_dict_from_url("https://example.org/other.pth")
    with pytest.raises(RuntimeError, match="convcore downloads nothing"):
        hub.download_url_to_file(address, "net.pth")


def test_the_cache_folder_is_pytorchs(monkeypatch):
    monkeypatch.setattr(hub, "_folder", None)
    monkeypatch.setenv("TORCH_HOME", "/a/b")
    assert hub.get_dir() == "/a/b/hub"
