"""torchmetrics of classes, of numbers, of images and of texts, over two batches each."""

import torch
import torchmetrics as metrics
from torchmetrics import image, text

torch.manual_seed(0)
scores, classes = torch.rand(64, 5).softmax(-1), torch.randint(0, 5, (64,))
x, y = torch.randn(64), torch.randn(64)


def show(metric, *batch):
    metric.update(*batch)
    metric.update(*(part.flip(0) for part in batch))
    found = metric.compute()
    values = found if isinstance(found, (tuple, list)) else [found]
    numbers = [number for value in values for number in value.flatten().tolist()]
    print(type(metric).__name__, *(f"{number:.4f}" for number in numbers))


for name in (
    *("Accuracy", "F1Score", "Precision", "AUROC", "AveragePrecision", "CalibrationError"),
    *("CohenKappa", "ConfusionMatrix", "JaccardIndex", "MatthewsCorrCoef", "Specificity"),
):
    show(getattr(metrics, name)(task="multiclass", num_classes=5), scores, classes)
for name in ("ROC", "PrecisionRecallCurve"):
    show(getattr(metrics, name)(task="binary", thresholds=5), scores[:, 0] * 2, classes % 2)
for name in (
    *("MeanSquaredError", "MeanAbsoluteError", "R2Score", "PearsonCorrCoef", "SpearmanCorrCoef"),
    *("ExplainedVariance", "KendallRankCorrCoef", "ConcordanceCorrCoef", "LogCoshError"),
):
    show(getattr(metrics, name)(), x, y)
pictures = torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32)
for name in ("PeakSignalNoiseRatio", "StructuralSimilarityIndexMeasure"):
    show(getattr(image, name)(data_range=1.0), *pictures)
both = metrics.MetricCollection([metrics.MeanMetric(), metrics.MaxMetric()])
both.update(x)
print({name: f"{value:.5f}" for name, value in both.compute().items()})
print(f"{text.BLEUScore(n_gram=2)(['the cat is on it'], [['a cat is on it']]):.5f}")
