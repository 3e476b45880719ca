"""Programs of which some imports are still PyTorch's own: errors say so."""

import pytest

import convcore
from convcore import inspection, nn, optim

OWN = "is PyTorch's own, which is installed too"
CASES = {
    "input": lambda torch: nn.Linear(2, 2)(torch.ones(1, 2)),
    "target": lambda torch: nn.CrossEntropyLoss()(convcore.ones(1, 2), torch.tensor([0])),
    "element": lambda torch: convcore.stack([convcore.ones(2), torch.ones(2)]),
    "index": lambda torch: convcore.ones(2)[torch.tensor([0])],
    "dtype": lambda torch: convcore.zeros(2, dtype=torch.float64),
    "device": lambda torch: convcore.zeros(2, device=torch.device("cpu")),
    "layer": lambda torch: nn.Sequential(torch.nn.Linear(2, 2)),
    "class of layers": lambda torch: nn.Sequential(torch.nn.Linear),
    "parameter": lambda torch: setattr(nn.Linear(2, 2), "weight", torch.nn.Linear(2, 2).weight),
    "buffer": lambda torch: nn.Linear(2, 2).register_buffer("mean", torch.ones(2)),
    "parameters": lambda torch: optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1),
    "optimizer": lambda torch: optim.lr_scheduler.StepLR(
        torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1), 1
    ),
    "state": lambda torch: nn.Linear(2, 2).load_state_dict(torch.nn.Linear(2, 2).state_dict()),
    "net to optimize": lambda torch: convcore.optimize_for_inference(torch.nn.Linear(2, 2)),
    "net to look into": lambda torch: inspection.capture(torch.nn.Linear(2, 2), "0"),
    "net of a class": lambda torch: inspection.find_nan(type("Net", (torch.nn.Module,), {})()),
    "sample": lambda torch: next(iter(convcore.utils.data.DataLoader([torch.ones(2)]))),
}


@pytest.mark.parametrize("case", CASES)
def test_an_object_of_pytorchs_is_told_apart(torch, case):
    with pytest.raises((TypeError, IndexError, RuntimeError)) as caught:
        CASES[case](torch)
    hint = str(caught.value).partition("\nHint: ")[2]
    assert "Hint: " not in hint
    assert OWN in hint
    assert "from convcore import nn" in hint
    # Only what holds values becomes a tensor of convcore's.
    assert ("convcore.as_tensor(x)" in hint) == ("that Tensor" in hint)


def test_a_tensor_of_pytorchs_becomes_one_of_convcores(torch):
    assert convcore.as_tensor(torch.ones(2)).equal(convcore.ones(2))
