"""`python -m warpbook_hub.similarity`: ranks the pairs of a question on stdin."""

from warpbook_hub.similarity.process import main

if __name__ == "__main__":
    main()
