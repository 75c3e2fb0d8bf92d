def blocks(n, threads):
    return max(1, round(n / threads))
