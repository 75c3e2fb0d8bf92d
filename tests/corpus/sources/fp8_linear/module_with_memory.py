# A module with buffers for codes and both scales, which out= and in-place operations fill.
import torch
from given import fp8_matmul


class Linear(torch.nn.Module):
    def __init__(self, tokens, features, outputs):
        super().__init__()
        self.sides = tokens, features, outputs
        self.is_ready = False

    def make_ready(self, device):
        tokens, features, outputs = self.sides
        depth, wide = features + -features % 16, outputs + -outputs % 16
        codes = torch.zeros(tokens, depth, dtype=torch.float8_e4m3fn, device=device)
        self.register_buffer("codes", codes)
        held = torch.zeros(wide, depth, dtype=torch.uint8, device=device)
        self.register_buffer("held", held)
        # cuBLAS reads scales at multiples of 16 bytes
        self.register_buffer("scales", torch.empty(2, 4, device=device))
        self.is_ready = True

    def forward(self, x, weight, past, weight_scale):
        if not self.is_ready:
            self.make_ready(x.device)
        tokens, features, outputs = self.sides
        of_x, of_weight = self.scales[:, :1].unbind()
        torch.amax(past, 0, keepdim=True, out=of_x)
        of_x /= 448
        of_weight.fill_(weight_scale)
        self.held[:outputs, :features] = weight
        exact = torch.true_divide(x, of_x)
        torch.clamp(exact, -448, 448, out=exact)
        self.codes[:, :features].copy_(exact)
        weights = self.held.view(torch.float8_e4m3fn).t()
        return fp8_matmul(self.codes, weights, of_x, of_weight)[:, :outputs]


def prepare(tokens, features, outputs, steps):
    return Linear(tokens, features, outputs)


@torch.inference_mode()
def run(linear, x, weight, past, weight_scale, largest, out):
    largest.copy_(torch.maximum(x.max(), x.min().neg()))
    out[...] = linear(x, weight, past, weight_scale)
