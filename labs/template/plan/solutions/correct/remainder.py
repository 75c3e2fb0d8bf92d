def blocks(n, threads):
    full, left = divmod(n, threads)
    return full + bool(left)
