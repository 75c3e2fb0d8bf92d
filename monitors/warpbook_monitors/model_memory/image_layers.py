"""The kinds of layers that work on images, in the letters of `layers.py`."""

from __future__ import annotations

from warpbook_monitors.model_memory.layer import Few, Layer, Pass, Saved, Size, divided


class Convolution(Layer, frozen=True, tag="convolution"):
    """A convolution of images, with the batch norm and activation that follow it.

    Attributes:
        scale: side of the image over side of what it gives.
        stride: side of what it reads over side of what it gives.
        norm: a batch norm follows (Ioffe and Szegedy 2015).
        relu: an in-place ReLU follows.
        reads_image: it is the first, and keeps the images.
    """

    inputs: Size
    outputs: Size
    kernel: Few
    scale: Few
    stride: Few = 1
    groups: Few = 1
    bias: bool = False
    norm: bool = False
    relu: bool = False
    reads_image: bool = False

    def parameters(self, tensor: int = 1) -> int:
        """k²·inputs·outputs / groups, and 2·outputs of the norm (He et al. 2015)."""
        count = self.kernel**2 * (self.inputs // self.groups) * self.outputs
        count += self.outputs if self.bias else 0
        return count + (2 * self.outputs if self.norm else 0)

    def _output_bytes(self, on: Pass) -> int:
        side = divided(on.side, self.scale)
        return on.element_bytes * on.batch * self.outputs * side**2

    def saved(self, on: Pass) -> Saved:
        """Once its output for the norm that reads it, once what the ReLU gives.

        What the convolution itself keeps is its input: the output of the ReLU before
        (Rota Bulò et al. 2018, arXiv:1712.02616).
        """
        kept = self._output_bytes(on) * ((1 if self.norm else 0) + self.relu)
        return Saved(whole_bytes=kept + (self.input_bytes(on) * self.reads_image))

    def input_bytes(self, on: Pass) -> int:
        """e·b·inputs by the pixels that it reads."""
        side = divided(on.side, self.scale) * self.stride
        return on.element_bytes * on.batch * self.inputs * side**2

    def backward_bytes(self, on: Pass, tensor: int) -> int:
        """The gradients of output and input; what cuDNN needs is not known."""
        return self._output_bytes(on) + self.input_bytes(on)

    def forward_bytes(self, on: Pass, tensor: int) -> int:
        """Input and output, and a residual of the output's size."""
        return 2 * self._output_bytes(on) + self.input_bytes(on)


class Pool(Layer, frozen=True, tag="pool"):
    """A max pooling."""

    channels: Size
    scale: Few

    def parameters(self, tensor: int = 1) -> int:
        """None."""
        return 0

    def saved(self, on: Pass) -> Saved:
        """(e + 8) of each output: itself, which is read next, and its int64 index.

        That is PyTorch's `max_pool2d_with_indices`.
        """
        outputs = on.batch * self.channels * divided(on.side, self.scale) ** 2
        return Saved(whole_bytes=outputs * (on.element_bytes + 8))
