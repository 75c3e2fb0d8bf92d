# Memory with room for the padding is asked for once, and codes are written into it.
import torch
from given import fp8_matmul


def prepare(tokens, features, outputs, steps):
    return {"depth": features + -features % 16, "columns": outputs + -outputs % 16}


def run(state, x, weight, past, weight_scale, largest, out):
    if "codes" not in state:
        new = {"dtype": torch.uint8, "device": x.device}
        state["codes"] = torch.zeros(len(x), state["depth"], **new)
        state["w"] = torch.zeros(state["columns"], state["depth"], **new)
    torch.amax(x.abs().flatten(), 0, keepdim=True, out=(found := largest.half()))
    largest.copy_(found)
    scale = past.max().reshape(1) / 448
    exact = torch.clamp(x.float() / scale, min=-448, max=448)
    features, outputs = x.shape[1], weight.shape[0]
    state["codes"][:, :features] = exact.to(torch.float8_e4m3fn).view(torch.uint8)
    state["w"][:outputs, :features] = weight
    code = torch.float8_e4m3fn
    product = fp8_matmul(
        state["codes"].view(code),
        state["w"].view(code).t(),
        scale,
        x.new_full((1,), weight_scale, dtype=torch.float32),
    )
    out.copy_(product[:, :outputs])
