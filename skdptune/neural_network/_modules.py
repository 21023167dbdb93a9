"""Ready modules whose input and output sizes are found by the net that trains them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from skdptune._validation import check_integer, check_real

Shape = int | Sequence[int]


class TemperedSigmoid(nn.Module):
    """The activation ``scale * sigmoid(temperature * x) - offset``; (2, 2, 1) is tanh."""

    def __init__(self, scale: float = 2.0, temperature: float = 2.0, offset: float = 1.0) -> None:
        super().__init__()
        self.scale = check_real(scale, name="scale", lower=0.0, lower_open=True)
        self.temperature = check_real(temperature, name="temperature", lower=0.0, lower_open=True)
        self.offset = check_real(offset, name="offset")

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the activation of each number."""
        return self.scale * torch.sigmoid(self.temperature * inputs) - self.offset


class SizedModule(nn.Module):
    """A module that is built when its sizes are known: at once, or by the net at its fit."""

    def __init__(self, input_shape: Shape | None, n_outputs: int | None, **settings: Any) -> None:
        super().__init__()
        self.settings = settings
        self.input_shape = input_shape
        self.n_outputs = n_outputs
        self.layers: nn.Sequential | None = None
        self._check(**settings)
        if input_shape is not None and n_outputs is not None:
            outputs = check_integer(n_outputs, name="n_outputs", lower=1)
            self.layers = nn.Sequential(*self._layers(_checked_shape(input_shape), outputs))

    def sized(self, input_shape: Shape, n_outputs: int) -> SizedModule:
        """Return a new module of the same settings; sizes given earlier stay."""
        shape = input_shape if self.input_shape is None else self.input_shape
        outputs = n_outputs if self.n_outputs is None else self.n_outputs
        return type(self)(**self.settings, input_shape=shape, n_outputs=outputs)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return one row of outputs for each record."""
        if self.layers is None:
            raise ValueError(
                "input_shape and n_outputs must be given to use the module by itself; got none. "
                "A net finds them when it is fitted."
            )
        return self.layers(inputs)

    def _check(self, **settings: Any) -> None:
        """Refuse bad settings."""

    def _layers(self, shape: tuple[int, ...], outputs: int) -> list[nn.Module]:
        raise NotImplementedError


class MLP(SizedModule):
    """Fully connected layers with tempered sigmoid activations between them.

    Parameters
    ----------
    hidden : sequence of int, default=(120,)
        Widths of the hidden layers.
    scale, temperature, offset : float, default=(2, 2, 1)
        The activation ``scale * sigmoid(temperature * x) - offset``; by default tanh.
    input_shape : int or sequence of int, optional
        Shape of one record; found by the net.
    n_outputs : int, optional
        Number of classes, or of targets; found by the net.

    Notes
    -----
    Bounded activations keep gradients small, so that clipping distorts them less (Papernot,
    Thakurta, Song, Chien and Erlingsson 2020, arXiv:2007.14191).

    Examples
    --------
    >>> import torch
    >>> from skdptune.neural_network import MLP
    >>> MLP(hidden=(8,), input_shape=4, n_outputs=3)(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        hidden: Sequence[int] = (120,),
        *,
        scale: float = 2.0,
        temperature: float = 2.0,
        offset: float = 1.0,
        input_shape: Shape | None = None,
        n_outputs: int | None = None,
    ) -> None:
        super().__init__(
            input_shape,
            n_outputs,
            hidden=hidden,
            scale=scale,
            temperature=temperature,
            offset=offset,
        )

    def _check(self, hidden: Sequence[int], **activation: float) -> None:
        if isinstance(hidden, int):
            raise TypeError(f"hidden must be a sequence of widths; got {hidden}. Try ({hidden},).")
        for width in hidden:
            check_integer(width, name="hidden's widths", lower=1)
        TemperedSigmoid(**activation)

    def _layers(self, shape: tuple[int, ...], outputs: int) -> list[nn.Module]:
        activation = {name: value for name, value in self.settings.items() if name != "hidden"}
        widths = [math.prod(shape), *self.settings["hidden"]]
        layers: list[nn.Module] = [nn.Flatten()]
        for fan_in, fan_out in zip(widths[:-1], widths[1:], strict=True):
            layers += [nn.Linear(fan_in, fan_out), TemperedSigmoid(**activation)]
        return [*layers, nn.Linear(widths[-1], outputs)]


class LogisticHead(SizedModule):
    """One linear layer: logistic regression, or linear regression.

    Parameters
    ----------
    bias : bool, default=True
        Whether outputs have an intercept.
    input_shape : int or sequence of int, optional
        Shape of one record; found by the net.
    n_outputs : int, optional
        Number of classes, or of targets; found by the net.

    Examples
    --------
    >>> import torch
    >>> from skdptune.neural_network import LogisticHead
    >>> LogisticHead(input_shape=4, n_outputs=3)(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self, *, bias: bool = True, input_shape: Shape | None = None, n_outputs: int | None = None
    ) -> None:
        super().__init__(input_shape, n_outputs, bias=bias)

    def _layers(self, shape: tuple[int, ...], outputs: int) -> list[nn.Module]:
        return [nn.Flatten(), nn.Linear(math.prod(shape), outputs, bias=self.settings["bias"])]


class SmallCNN(SizedModule):
    """Two convolutions and two linear layers for small images, with tempered sigmoids.

    Parameters
    ----------
    channels : (int, int), default=(16, 32)
        Numbers of filters.
    hidden : int, default=32
        Width of the linear layer.
    scale, temperature, offset : float, default=(2, 2, 1)
        The activation ``scale * sigmoid(temperature * x) - offset``; by default tanh.
    input_shape : int or sequence of int, optional
        Shape of one record: (channels, height, width), (height, width) for grey images, or the
        number of pixels of a square grey image. Found by the net.
    n_outputs : int, optional
        Number of classes, or of targets; found by the net.

    Notes
    -----
    The network for MNIST and Fashion-MNIST of Papernot, Thakurta, Song, Chien and Erlingsson
    (2020, arXiv:2007.14191): filters of 8x8 and 4x4 pixels at stride 2, each followed by a
    maximum over 2x2 pixels at stride 1. The second convolution is padded only where an image
    smaller than theirs would leave it nothing.

    Examples
    --------
    >>> import torch
    >>> from skdptune.neural_network import SmallCNN
    >>> SmallCNN(input_shape=(1, 28, 28), n_outputs=10)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        channels: Sequence[int] = (16, 32),
        *,
        hidden: int = 32,
        scale: float = 2.0,
        temperature: float = 2.0,
        offset: float = 1.0,
        input_shape: Shape | None = None,
        n_outputs: int | None = None,
    ) -> None:
        super().__init__(
            input_shape,
            n_outputs,
            channels=channels,
            hidden=hidden,
            scale=scale,
            temperature=temperature,
            offset=offset,
        )

    def _check(self, channels: Sequence[int], hidden: int, **activation: float) -> None:
        if len(channels) != 2:
            raise ValueError(f"channels must be two numbers; got {len(channels)}.")
        for count in (*channels, hidden):
            check_integer(count, name="channels and hidden", lower=1)
        TemperedSigmoid(**activation)

    def _layers(self, shape: tuple[int, ...], outputs: int) -> list[nn.Module]:
        activation = TemperedSigmoid(
            self.settings["scale"], self.settings["temperature"], self.settings["offset"]
        )
        first, second = self.settings["channels"]
        image = _image_shape(shape)
        padding = 0 if _second_size(min(image[1:]), 0) >= 1 else 2
        if _second_size(min(image[1:]), padding) < 1:
            raise ValueError(f"input_shape must have at least 6 pixels a side; got {image[1:]}.")
        features = second * math.prod(_second_size(side, padding) for side in image[1:])
        hidden = self.settings["hidden"]
        return [
            ToImages(image),
            nn.Conv2d(image[0], first, 8, stride=2, padding=3),
            activation,
            nn.MaxPool2d(2, stride=1),
            nn.Conv2d(first, second, 4, stride=2, padding=padding),
            activation,
            nn.MaxPool2d(2, stride=1),
            nn.Flatten(),
            nn.Linear(features, hidden),
            activation,
            nn.Linear(hidden, outputs),
        ]


class ToImages(nn.Module):
    """Reshape each record to an image."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs.reshape(len(inputs), *self.shape)


def _checked_shape(shape: Shape) -> tuple[int, ...]:
    sides = (shape,) if isinstance(shape, int) else tuple(shape)
    if not sides:
        raise ValueError("input_shape must have at least one size; got none.")
    return tuple(check_integer(side, name="input_shape", lower=1) for side in sides)


def _image_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return channels, height and width of the images that records of a shape stand for."""
    if len(shape) == 3:
        return shape[0], shape[1], shape[2]
    if len(shape) == 2:
        return 1, shape[0], shape[1]
    side = math.isqrt(shape[0])
    if len(shape) != 1 or side * side != shape[0]:
        raise ValueError(
            "input_shape must be (channels, height, width), (height, width) or a square number of "
            f"pixels; got {shape}. module__input_shape says how rows are to be read."
        )
    return 1, side, side


def _second_size(side: int, padding: int) -> int:
    """Return the side of an image after both convolutions and maxima."""
    after_first = (side + 6 - 8) // 2 + 1 - 1
    return (after_first + 2 * padding - 4) // 2 + 1 - 1
