"""torchmetrics: metrics that add up batches, and their states."""

from __future__ import annotations

import pickle

import torch
import torchmetrics
from torchmetrics import classification, functional, regression

from tests.clients.networks import ramp
from tests.clients.stages import Client, stage

LABELS = (torch.arange(20) * 7) % 3


def scores():
    return ramp(20, 3).softmax(1)


def over(metric, *batches):
    """A metric's value after two halves of the batches."""
    for half in (slice(0, 10), slice(10, 20)):
        metric.update(*(batch[half] for batch in batches))
    return metric.compute()


class Classification(Client):
    name = "classification"

    @stage
    def accuracy(self):
        return over(classification.MulticlassAccuracy(3), scores(), LABELS)

    @stage
    def precision_recall_f1(self):
        kinds = (classification.MulticlassPrecision, classification.MulticlassRecall, classification.MulticlassF1Score)
        return [over(kind(3, average=None), scores(), LABELS) for kind in kinds]

    @stage
    def confusion_matrix(self):
        return over(classification.MulticlassConfusionMatrix(3), scores(), LABELS)

    @stage
    def curves(self):
        return [
            over(classification.MulticlassAUROC(3), scores(), LABELS),
            over(classification.MulticlassROC(3, thresholds=5), scores(), LABELS),
        ]

    @stage
    def average_precision(self):
        return over(classification.BinaryAveragePrecision(), scores()[:, 0], LABELS % 2)

    @stage
    def calibration(self):
        return over(classification.MulticlassCalibrationError(3, n_bins=5), scores(), LABELS)

    @stage
    def kappa_and_matthews(self):
        return [
            over(kind(3), scores(), LABELS)
            for kind in (classification.MulticlassCohenKappa, classification.MulticlassMatthewsCorrCoef)
        ]


class Regression(Client):
    name = "regression"

    @stage
    def errors(self):
        kinds = (regression.MeanSquaredError, regression.MeanAbsoluteError, regression.R2Score, regression.ExplainedVariance)
        return [over(kind(), ramp(20), ramp(20).flip(0)) for kind in kinds]

    @stage
    def correlations(self):
        kinds = (regression.PearsonCorrCoef, regression.SpearmanCorrCoef, regression.KendallRankCorrCoef)
        return [over(kind(), ramp(20), ramp(20).roll(1)) for kind in kinds]

    @stage
    def cosine(self):
        return functional.cosine_similarity(ramp(4, 5), ramp(4, 5).flip(1), reduction="mean")


class Others(Client):
    name = "images, text, sound"

    @stage
    def images(self):
        first, second = ramp(2, 3, 32, 32, low=0.0), ramp(2, 3, 32, 32, low=0.0).flip(3)
        metrics = (
            torchmetrics.image.PeakSignalNoiseRatio(1.0),
            torchmetrics.image.StructuralSimilarityIndexMeasure(data_range=1.0),
        )
        return [metric(first, second) for metric in metrics]

    @stage
    def text(self):
        said, meant = ["the cat sat on the mat"], ["the cat lay on the mat"]
        text = functional.text
        return [text.bleu_score(said, [meant], n_gram=2), text.word_error_rate(said, meant), text.char_error_rate(said, meant)]

    @stage
    def perplexity(self):
        return torchmetrics.text.Perplexity()(ramp(2, 8, 5), torch.arange(16).reshape(2, 8) % 5)

    @stage
    def sound(self):
        audio = torchmetrics.functional.audio
        return [
            audio.signal_noise_ratio(ramp(100), ramp(100) * 0.9),
            audio.scale_invariant_signal_distortion_ratio(ramp(100), ramp(100).roll(1)),
        ]

    @stage
    def retrieval(self):
        group = torch.arange(20) // 5
        kinds = (
            torchmetrics.retrieval.RetrievalMAP,
            torchmetrics.retrieval.RetrievalMRR,
            torchmetrics.retrieval.RetrievalNormalizedDCG,
        )
        return [kind()(scores()[:, 0], LABELS % 2, indexes=group) for kind in kinds]

    @stage
    def clustering(self):
        from torchmetrics.clustering import MutualInfoScore

        return MutualInfoScore()(LABELS, (LABELS + torch.arange(20)) % 3)


class States(Client):
    name = "states"

    @stage
    def collection(self):
        metrics = torchmetrics.MetricCollection(
            [classification.MulticlassAccuracy(3), classification.MulticlassF1Score(3), classification.MulticlassRecall(3)]
        )
        return over(metrics, scores(), LABELS)

    @stage
    def forward(self):
        metric = classification.MulticlassAccuracy(3)
        return [metric(scores()[:10], LABELS[:10]), metric(scores()[10:], LABELS[10:]), metric.compute()]

    @stage
    def mean_and_sum(self):
        return [over(kind(), ramp(20)) for kind in (torchmetrics.MeanMetric, torchmetrics.SumMetric, torchmetrics.MaxMetric)]

    @stage
    def save_and_load(self):
        metric, again = classification.MulticlassAccuracy(3), classification.MulticlassAccuracy(3)
        metric.persistent(True)
        again.persistent(True)
        metric.update(scores(), LABELS)
        again.load_state_dict(metric.state_dict())
        return [again.compute(), pickle.loads(pickle.dumps(metric)).compute()]

    @stage
    def tracker(self):
        tracker = torchmetrics.MetricTracker(classification.MulticlassAccuracy(3), maximize=True)
        for half in (slice(0, 10), slice(10, 20)):
            tracker.increment()
            tracker.update(scores()[half], LABELS[half])
        return [tracker.compute_all(), tracker.best_metric()]

    @stage
    def bootstrap(self):
        torch.manual_seed(1)
        metric = torchmetrics.BootStrapper(regression.MeanSquaredError(), num_bootstraps=4)
        metric.update(ramp(20), ramp(20).flip(0))
        return bool(metric.compute()["mean"].isfinite())

    @stage
    def arithmetic(self):
        both = classification.MulticlassAccuracy(3) + classification.MulticlassRecall(3)
        both.update(scores(), LABELS)
        return both.compute()
