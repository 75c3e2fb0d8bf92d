# A module whose forward gives codes, scales and result, with rows mapped by vmap.
import torch
from given import int8_matmul


def codes_of(row, outlier):
    kept = torch.where(outlier, 0.0, row.float())
    scale = kept.abs().amax()
    return torch.round(kept * (127 / torch.where(scale > 0, scale, 1.0))), scale


class Linear(torch.nn.Module):
    def __init__(self, rows, depth, columns):
        super().__init__()
        self.pads = rows, depth, columns
        self.quantized = torch.vmap(codes_of, in_dims=(0, None))

    def forward(self, x, weight, weight_scales, threshold):
        rows, depth, columns = self.pads
        outlier = x.abs().ge(threshold).any(dim=0)
        codes, scales = self.quantized(x, outlier)
        codes = codes.to(torch.int8)
        left = torch.nn.ConstantPad2d((0, depth, 0, rows), 0)(codes)
        right = torch.nn.ConstantPad2d((0, depth, 0, columns), 0)(weight)
        sums = int8_matmul(left, right.mT)[: len(x), : len(weight)]
        whole = torch.einsum("ij,i,j->ij", sums.float(), scales, weight_scales / 127**2)
        apart = torch.einsum(
            "ik,jk,k,j->ij",
            x.float(),
            weight.float(),
            outlier.float(),
            weight_scales / 127,
        )
        return codes, scales, whole + apart


def prepare(tokens, features, outputs):
    return Linear(max(17 - tokens, 0), -features % 8, -outputs % 8)


def run(layer, x, weight, weight_scales, threshold, codes, scales, out):
    found = layer(x, weight, weight_scales, threshold)
    for target, each in zip((codes, scales, out), found, strict=True):
        target.copy_(each)
