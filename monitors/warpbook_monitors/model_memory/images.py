"""Layers of images; letters and `e` as in `layer.py`."""

from __future__ import annotations

from warpbook_monitors.model_memory.layer import Few, Layer, Needs, Pass, Size, divided


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
        """As of He et al. 2015: kernel²·inputs·outputs / groups, norm 2·outputs."""
        count = self.kernel**2 * (self.inputs // self.groups) * self.outputs
        return count + self.outputs * (self.bias + 2 * self.norm)

    def needs(self, on: Pass) -> Needs:
        """Keep its output once for the norm that reads it, once what the ReLU gives.

        What the convolution itself keeps is its input: the output of the ReLU before
        (Rota Bulò et al. 2018, arXiv:1712.02616). The backward pass has the gradients
        of output and input; what cuDNN needs is not known. A forward pass has a
        residual of the output's size, too.
        """
        side = divided(on.side, self.scale)
        pixel = on.element_bytes * on.batch
        reads = pixel * self.inputs * (side * self.stride) ** 2
        gives = pixel * self.outputs * side**2
        kept = gives * (self.norm + self.relu) + reads * self.reads_image
        return Needs(reads, kept, 0, 0, gives + reads, 2 * gives + reads)


class Pool(Layer, frozen=True, tag="pool"):
    """A max pooling; kept are (e + 8) of each output: itself, and its int64 index.

    That is PyTorch's `max_pool2d_with_indices`.
    """

    channels: Size
    scale: Few

    def parameters(self, tensor: int = 1) -> int:
        return 0

    def needs(self, on: Pass) -> Needs:
        outputs = on.batch * self.channels * divided(on.side, self.scale) ** 2
        return Needs(whole_bytes=outputs * (on.element_bytes + 8))
