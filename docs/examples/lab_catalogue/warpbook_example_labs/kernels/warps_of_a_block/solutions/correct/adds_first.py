"""Right: it adds before it divides."""


def warps(threads):
    return (threads + 31) // 32
