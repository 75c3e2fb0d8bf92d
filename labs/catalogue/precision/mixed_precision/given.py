"""What is trained: two layers, and a loss that counts for little."""

import torch


def predict(x, w1, w2):
    """Two layers, with tanh between them."""
    return torch.tanh(x @ w1.T) @ w2.T


def loss_of(prediction, target, weight):
    """One of several losses: its small weight makes its gradients small, too."""
    apart = prediction.float() - target
    return weight * (apart * apart).sum()
