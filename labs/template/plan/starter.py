def blocks(n, threads):
    # How many threads do so many blocks have, and is it enough?
    return n // threads
