"""ignite's engines, metrics and handlers: a net is trained, measured, averaged and saved."""

import os
import tempfile

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import (
    EMAHandler,
    ModelCheckpoint,
    TerminateOnNan,
    create_lr_scheduler_with_warmup,
)
from ignite.metrics import SSIM, Accuracy, ConfusionMatrix, IoU, Loss, Precision, RunningAverage
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.rand(64, 10)
data = DataLoader(TensorDataset(x, (x.sum(1) > 5).long()), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
loss = nn.CrossEntropyLoss()
trainer = create_supervised_trainer(net, optimizer, loss)
measures = {"acc": Accuracy(), "loss": Loss(loss), "precision": Precision(average=True)}
measures["iou"] = IoU(ConfusionMatrix(2))
evaluator = create_supervised_evaluator(net, metrics=measures)


@trainer.on(Events.EPOCH_COMPLETED)
def measure(engine):
    found = evaluator.run(data).metrics
    iou = [round(value, 4) for value in found.pop("iou").tolist()]
    print(engine.state.epoch, {name: f"{value:.4f}" for name, value in found.items()}, iou)


@trainer.on(Events.ITERATION_COMPLETED(every=3))
def tell(engine):
    print(engine.state.iteration, f"{engine.state.output:.4f}", optimizer.param_groups[0]["lr"])


step = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
warm = create_lr_scheduler_with_warmup(
    step, warmup_start_value=0.0, warmup_end_value=0.1, warmup_duration=3
)
trainer.add_event_handler(Events.ITERATION_STARTED, warm)
trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
averaged = EMAHandler(net, 0.01)
averaged.attach(trainer, event=Events.ITERATION_COMPLETED)
RunningAverage(output_transform=lambda output: output).attach(trainer, "running")
with tempfile.TemporaryDirectory() as folder:
    keeper = ModelCheckpoint(folder, "net", n_saved=1)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, keeper, {"net": net, "optimizer": optimizer})
    trainer.run(data, max_epochs=3)
    print(sorted(os.listdir(folder)))
    net.load_state_dict(torch.load(keeper.last_checkpoint)["net"])
print(f"{trainer.state.metrics['running']:.4f}")
print(f"{sum(p.abs().sum() for p in averaged.ema_model.parameters()):.4f}")
likeness = SSIM(data_range=1.0)
likeness.update((torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32)))
print(f"{likeness.compute():.4f}")
