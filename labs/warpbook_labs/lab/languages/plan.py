"""Functions that answer questions."""

from __future__ import annotations

from warpbook_labs.errors import BadLab
from warpbook_labs.lab.languages.language import FUNCTIONS, Language
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.spec import Lab


class PlanLanguage(Language):
    """Plain Python, asked questions with data of their own."""

    name = "plan"
    source_name = "answers.py"
    section = "plan"
    functions = FUNCTIONS[1]

    def refuse_unfit(self, loaded: LoadedLab) -> None:
        """Refuse cases, which a plan has no use for."""
        lab, file = loaded.lab, loaded.folder / "lab.toml"
        names = [function.name for function in lab.plan.functions] if lab.plan else []
        if len(set(names)) < len(names):
            raise BadLab(f"{file}: plan.functions: two have the same name.")
        if lab.parameters or lab.public or lab.hidden.sizes or lab.speed:
            raise BadLab(f"{file}: parameters: a plan has functions in their place.")

    def trial_words(self, lab: Lab) -> str | None:
        """Leave trials to the learner's own cells."""
        return None
