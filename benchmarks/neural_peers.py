"""What `neural.py` compares with: Opacus as its tutorials use it, in a bare loop and in skorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from skorch import NeuralNetClassifier
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from skdptune.neural_network import MLP, SmallCNN

NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "width-120": lambda **sizes: MLP(hidden=(120, 120), **sizes),
    "CNN": SmallCNN,
}


def sized(name: str, X: np.ndarray) -> nn.Module:
    """Return a network that knows its sizes, as a user without skdptune has to write it."""
    return NETWORKS[name](input_shape=X.shape[1], n_outputs=10)


def attached(
    module: nn.Module, loader: DataLoader, settings: dict[str, Any], **more: Any
) -> tuple[nn.Module, torch.optim.Optimizer, Any, DataLoader]:
    """Return module, optimizer, criterion and loader as Opacus' tutorials make them."""
    optimizer = torch.optim.SGD(module.parameters(), lr=settings["lr"])
    criterion = nn.CrossEntropyLoss()
    mode = settings.get("grad_sample_mode", "hooks")
    made = PrivacyEngine().make_private(
        module=module,
        optimizer=optimizer,
        criterion=criterion,
        data_loader=loader,
        noise_multiplier=settings["noise_multiplier"],
        max_grad_norm=settings["max_grad_norm"],
        grad_sample_mode=mode,
        **more,
    )
    return made if mode == "ghost" else (made[0], made[1], criterion, made[2])


def loader_of(X: np.ndarray, y: np.ndarray, batch_size: int) -> DataLoader:
    """Return a loader of the records."""
    return DataLoader(TensorDataset(torch.from_numpy(X), torch.from_numpy(y)), batch_size)


def take_steps(
    module: nn.Module, optimizer: Any, criterion: Any, batches: Any, device: str
) -> nn.Module:
    """Train as in Opacus' tutorials."""
    module.train()
    for inputs, targets in batches:
        optimizer.zero_grad()
        criterion(module(inputs.to(device)), targets.to(device)).backward()
        optimizer.step()
    return module


class OpacusInSkorch(NeuralNetClassifier):
    """A skorch net with Opacus attached, as users without skdptune write it."""

    def __init__(self, *arguments: Any, private: dict[str, Any], **parameters: Any) -> None:
        super().__init__(*arguments, **parameters)
        self.private = private

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **others: Any) -> None:
        """Attach Opacus, with Poisson sampling."""
        super().on_train_begin(net, X=X, y=y, **others)
        loader = super().get_iterator(self.get_dataset(X, y), training=True)
        settings = {"lr": self.lr, **self.private}
        made = attached(self.module_, loader, settings)
        self.module_, self.optimizer_, self.criterion_, self._loader = made

    def get_iterator(self, dataset: Any, training: bool = False) -> Any:
        """Return Opacus' loader for training."""
        return self._loader if training else super().get_iterator(dataset, training=training)
