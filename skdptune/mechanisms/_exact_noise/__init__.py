"""Noise that is drawn, added and rounded as with real numbers, on grids independent of data."""

from skdptune.mechanisms._exact_noise._releases import (
    NoiseOfSeveral,
    NormalNoise,
    add_gaussian,
    add_laplace,
    add_spherical,
    draw_images,
    grid_of,
    spherical_spread,
)
