"""Tables of sales, and what their totals are."""

from collections import Counter

from warpbook_labs.lab.python.questions import Question

ITEMS = ("cable", "fan", "gpu", "rack")


def questions(rng):
    sales = [(rng.choice(ITEMS), rng.randint(1, 9)) for _ in range(rng.randint(5, 20))]
    return [
        Question("query", {"sales": sales}, "some sales"),
        Question("query", {"sales": [("gpu", 2), ("fan", 2)]}, "equal totals"),
        Question("query", {"sales": []}, "no sales"),
    ]


def judge(question, answer):
    totals = Counter()
    for item, amount in question.arguments["sales"]:
        totals[item] += amount
    right = sorted(totals.items(), key=lambda row: (-row[1], row[0]))
    if [tuple(row) for row in answer] == right:
        return ""
    return f"It gives {len(answer)} rows that are not the {len(right)} totals in order."
