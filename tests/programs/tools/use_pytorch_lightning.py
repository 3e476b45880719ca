"""Lightning's Trainer: a module is fitted, saved, tested, loaded and trained further."""

import logging
import tempfile

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


class Net(pl.LightningModule):
    def __init__(self, lr=0.01):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))

    def forward(self, x):
        return self.net(x)

    def _loss(self, batch, name):
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.log(name, loss, on_epoch=True)
        return loss

    def training_step(self, batch, index):
        return self._loss(batch, "train")

    def validation_step(self, batch, index):
        self._loss(batch, "val")

    def test_step(self, batch, index):
        self._loss(batch, "test")

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


def show(trainer):
    print({name: f"{value:.4f}" for name, value in trainer.callback_metrics.items()})


pl.seed_everything(1)
x = torch.rand(48, 1, 8, 8)
data = TensorDataset(x, (x.mean((1, 2, 3)) > 0.5).long())
loaders = DataLoader(data, batch_size=8, shuffle=True), DataLoader(data, batch_size=8)
quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
with tempfile.TemporaryDirectory() as folder:
    best = ModelCheckpoint(folder, monitor="val")
    trainer = pl.Trainer(
        max_epochs=2, accelerator="cpu", callbacks=[best, EarlyStopping("val")], **quiet
    )
    net = Net()
    trainer.fit(net, *loaders)
    show(trainer)
    trainer.test(net, loaders[1], verbose=False)
    show(trainer)
    print(dict(Net.load_from_checkpoint(best.best_model_path).hparams))
    longer = pl.Trainer(
        max_epochs=3, accelerator="cpu", gradient_clip_val=0.5, enable_checkpointing=False, **quiet
    )
    longer.fit(net, *loaders, ckpt_path=best.best_model_path)
    show(longer)
