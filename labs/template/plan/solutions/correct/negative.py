def blocks(n, threads):
    return -(-n // threads)
