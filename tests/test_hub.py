"""hub: weights from local files and the cache; downloads are refused."""

import pytest

import convcore
from convcore import hub


@pytest.fixture
def cache(tmp_path):
    before = hub.get_dir()
    hub.set_dir(tmp_path / "cache")
    yield tmp_path / "cache"
    hub.set_dir(before)


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
