"""captum: attributions of inputs, layers and neurons."""

from __future__ import annotations

import captum.attr
import captum.metrics
import torch

from tests.clients.networks import made_weights, ramp
from tests.clients.stages import Client, stage

GRADIENTS = "IntegratedGradients Saliency InputXGradient DeepLift GuidedBackprop Deconvolution".split()
ABLATIONS = "FeatureAblation Occlusion ShapleyValueSampling FeaturePermutation".split()


class Classifier(torch.nn.Module):
    """A convolution and a layer, with the weights that every process gives them."""

    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(1, 4, 3, padding=1)
        self.active = torch.nn.ReLU()
        self.pool = torch.nn.MaxPool2d(2)
        self.flatten = torch.nn.Flatten()
        self.linear = torch.nn.Linear(16, 3)
        self.load_state_dict(made_weights(self))

    def forward(self, value):
        return self.linear(self.flatten(self.pool(self.active(self.convolution(value)))))


def image():
    return ramp(2, 1, 4, 4)


class Inputs(Client):
    name = "inputs"

    def attribute(self, kind, **options):
        torch.manual_seed(1)
        return getattr(captum.attr, kind)(Classifier().eval()).attribute(image(), target=1, **options).detach()

    @stage
    def GradientShap(self):
        torch.manual_seed(1)
        told = captum.attr.GradientShap(Classifier().eval()).attribute(image(), baselines=torch.zeros(1, 1, 4, 4), target=1)
        return list(told.shape)

    @stage
    def NoiseTunnel(self):
        tunnel = captum.attr.NoiseTunnel(captum.attr.Saliency(Classifier().eval()))
        torch.manual_seed(1)
        return list(tunnel.attribute(image(), target=1, nt_samples=4).shape)

    @stage
    def LRP(self):
        module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).eval()
        module.load_state_dict(made_weights(module))
        return captum.attr.LRP(module).attribute(ramp(2, 4), target=1).detach()

    @stage
    def KernelShap(self):
        return list(self.attribute("KernelShap", n_samples=8).shape)

    @stage
    def Lime(self):
        return list(self.attribute("Lime", n_samples=8).shape)


def _of_kind(kind):
    def attribute(self):
        options = dict(sliding_window_shapes=(1, 2, 2)) if kind == "Occlusion" else {}
        told = self.attribute(kind, **options)
        return list(told.shape) if kind in ("ShapleyValueSampling", "FeaturePermutation") else told

    return stage(attribute)


for _kind in GRADIENTS + ABLATIONS:
    setattr(Inputs, _kind, _of_kind(_kind))


class Layers(Client):
    name = "layers and neurons"

    def attribute(self, kind):
        module = Classifier().eval()
        return getattr(captum.attr, kind)(module, module.convolution).attribute(image(), target=1).detach()

    @stage
    def layer_conductance(self):
        return self.attribute("LayerConductance")

    @stage
    def layer_grad_cam(self):
        return self.attribute("LayerGradCam")

    @stage
    def layer_integrated_gradients(self):
        return self.attribute("LayerIntegratedGradients")

    @stage
    def layer_deep_lift(self):
        return self.attribute("LayerDeepLift")

    @stage
    def layer_activation(self):
        module = Classifier().eval()
        return captum.attr.LayerActivation(module, module.pool).attribute(image()).detach()

    @stage
    def internal_influence(self):
        return self.attribute("InternalInfluence")

    @stage
    def guided_grad_cam(self):
        return self.attribute("GuidedGradCam")

    @stage
    def neuron_gradient(self):
        module = Classifier().eval()
        return captum.attr.NeuronGradient(module, module.convolution).attribute(image(), (0, 1, 1)).detach()

    @stage
    def neuron_conductance(self):
        module = Classifier().eval()
        return captum.attr.NeuronConductance(module, module.convolution).attribute(image(), (0, 1, 1), target=1).detach()


class Measures(Client):
    name = "measures"

    @stage
    def convergence(self):
        attribution = captum.attr.IntegratedGradients(Classifier().eval())
        return attribution.attribute(image(), target=1, return_convergence_delta=True)[1].detach()

    @stage
    def infidelity(self):
        def disturb(value):
            noise = 0.1 * ramp(*value.shape)
            return noise, value - noise

        module = Classifier().eval()
        told = captum.attr.Saliency(module).attribute(image(), target=1)
        return captum.metrics.infidelity(module, disturb, image(), told, target=1).detach()
