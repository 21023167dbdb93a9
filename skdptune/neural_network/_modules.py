"""Modules for common uses, which take their input and output sizes from the data at `fit`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from skdptune._formatting import shown
from skdptune._validation import check_flag, check_integer, check_real
from skdptune.base._shared import arguments_of

Shape = int | Sequence[int]


class TemperedSigmoid(nn.Module):
    """Apply the activation ``scale * sigmoid(temperature * x) - offset``; (2, 2, 1) is tanh."""

    def __init__(self, scale: float = 2.0, temperature: float = 2.0, offset: float = 1.0) -> None:
        super().__init__()
        self.scale = check_real(scale, name="scale", lower=0.0, lower_open=True)
        self.temperature = check_real(temperature, name="temperature", lower=0.0, lower_open=True)
        self.offset = check_real(offset, name="offset")

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the activations."""
        if (self.scale, self.temperature, self.offset) == (2.0, 2.0, 1.0):
            return torch.tanh(inputs)
        return self.scale * torch.sigmoid(self.temperature * inputs) - self.offset


class SizedModule(nn.Module):
    """A module that builds its layers once its sizes are known, in `fit` at the latest."""

    def __init__(self, input_shape: Shape | None, n_outputs: int | None, **settings: Any) -> None:
        super().__init__()
        self.settings = settings
        self.input_shape = input_shape
        self.n_outputs = n_outputs
        self.layers: nn.Sequential | None = None
        self._check()
        if input_shape is not None and n_outputs is not None:
            outputs = check_integer(n_outputs, name="n_outputs", lower=1)
            self.layers = nn.Sequential(*self._layers(_checked_shape(input_shape), outputs))

    def sized(self, input_shape: Shape, n_outputs: int) -> SizedModule:
        """Return a new module with the same settings; previously given sizes are kept."""
        shape = input_shape if self.input_shape is None else self.input_shape
        outputs = n_outputs if self.n_outputs is None else self.n_outputs
        return type(self)(**self.settings, input_shape=shape, n_outputs=outputs)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return one row of outputs for each record."""
        if self.layers is None:
            raise ValueError(
                "input_shape and n_outputs must be given to use the module separately; got none. "
                "A net sets them in fit."
            )
        return self.layers(inputs)

    def _check(self) -> None:
        """Validate the settings."""

    def _activation(self) -> TemperedSigmoid:
        names = ("scale", "temperature", "offset")
        return TemperedSigmoid(**{name: self.settings[name] for name in names})

    def _layers(self, shape: tuple[int, ...], outputs: int) -> list[nn.Module]:
        raise NotImplementedError


class MLP(SizedModule):
    """Fully connected network with tempered sigmoid activations.

    Use it for records that are vectors; other records are flattened.

    Parameters
    ----------
    hidden : sequence of int, default=(120,)
        Widths of the hidden layers.
    scale, temperature, offset : float, default=(2, 2, 1)
        The activation ``scale * sigmoid(temperature * x) - offset``; by default tanh.
    input_shape : int or sequence of int, optional
        Shape of one record; by default taken from the data.
    n_outputs : int, optional
        Number of classes, or of targets; by default taken from the data.

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
        super().__init__(**arguments_of(locals()))

    def _check(self) -> None:
        hidden = self.settings["hidden"]
        if isinstance(hidden, int):
            raise TypeError(
                f"hidden must be a sequence of widths; got {hidden:d}. Try ({hidden:d},)."
            )
        for width in hidden:
            check_integer(width, name="each of hidden", lower=1, is_entry=True)
        self._activation()

    def _layers(self, shape: tuple[int, ...], outputs: int) -> list[nn.Module]:
        widths = [math.prod(shape), *self.settings["hidden"]]
        layers: list[nn.Module] = [nn.Flatten()]
        for fan_in, fan_out in zip(widths[:-1], widths[1:], strict=True):
            layers += [nn.Linear(fan_in, fan_out), self._activation()]
        return [*layers, nn.Linear(widths[-1], outputs)]


class LogisticHead(SizedModule):
    """A single linear layer: logistic regression, or linear regression.

    Use it as a linear model that is trained like the other nets; `skdptune.linear_model` has other
    solvers.

    Parameters
    ----------
    bias : bool, default=True
        Whether outputs have an intercept.
    input_shape : int or sequence of int, optional
        Shape of one record; by default taken from the data.
    n_outputs : int, optional
        Number of classes, or of targets; by default taken from the data.

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
        super().__init__(**arguments_of(locals()))

    def _check(self) -> None:
        check_flag(self.settings["bias"], name="bias")

    def _layers(self, shape: tuple[int, ...], outputs: int) -> list[nn.Module]:
        return [nn.Flatten(), nn.Linear(math.prod(shape), outputs, bias=self.settings["bias"])]


class SmallCNN(SizedModule):
    """Convolutional network for small images: two convolutions and two linear layers.

    Use it for images of up to some 32 pixels a side, such as MNIST.

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
        number of pixels of a square grey image. By default taken from the data.
    n_outputs : int, optional
        Number of classes, or of targets; by default taken from the data.

    Notes
    -----
    The network for MNIST and Fashion-MNIST of Papernot, Thakurta, Song, Chien and Erlingsson
    (2020, arXiv:2007.14191): filters of 8x8 and 4x4 pixels at stride 2, each followed by a
    maximum over 2x2 pixels at stride 1, and tempered sigmoid activations. The second convolution
    is padded only if an image is so small that nothing would be left.

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
        super().__init__(**arguments_of(locals()))

    def _check(self) -> None:
        channels, hidden = self.settings["channels"], self.settings["hidden"]
        if not isinstance(channels, Sequence) or len(channels) != 2:
            raise ValueError(f"channels must be two numbers; got {shown(channels)}.")
        for count in channels:
            check_integer(count, name="each of channels", lower=1, is_entry=True)
        check_integer(hidden, name="hidden", lower=1)
        self._activation()

    def _layers(self, shape: tuple[int, ...], outputs: int) -> list[nn.Module]:
        activation = self._activation()
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
        """Return the images."""
        return inputs.reshape(len(inputs), *self.shape)


def _checked_shape(shape: Shape) -> tuple[int, ...]:
    sides = (shape,) if isinstance(shape, int) else tuple(shape)
    if not sides:
        raise ValueError("input_shape must have at least one size; got none.")
    return tuple(
        check_integer(side, name="each size of input_shape", lower=1, is_entry=True)
        for side in sides
    )


def _image_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return channels, height and width of the images that records of a shape represent."""
    if len(shape) == 3:
        return shape[0], shape[1], shape[2]
    if len(shape) == 2:
        return 1, shape[0], shape[1]
    side = math.isqrt(shape[0])
    if len(shape) != 1 or side * side != shape[0]:
        raise ValueError(
            "input_shape must be (channels, height, width), (height, width) or a square number of "
            f"pixels; got {shape}. Set module__input_shape to reshape rows."
        )
    return 1, side, side


def _second_size(side: int, padding: int) -> int:
    """Return the side of an image after both convolutions and maxima."""
    after_first = (side + 6 - 8) // 2 + 1 - 1
    return (after_first + 2 * padding - 4) // 2 + 1 - 1
