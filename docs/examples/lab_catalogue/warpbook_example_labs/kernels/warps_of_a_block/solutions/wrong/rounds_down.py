"""Wrong: a warp that is filled in part is left out."""


def warps(threads):
    return threads // 32
