"""Labs in SQL: a query over a table `sales`, judged by the rows that it gives."""

from warpbook_labs.errors import BadLab
from warpbook_labs.lab.languages.language import FUNCTIONS, LabLanguage, Language


class SqlLanguage(Language):
    """What a lab in SQL looks like; a list of labs loads no more than this."""

    name = "sql"
    source_name = "query.sql"
    suffix = ".sql"
    comment = "--"
    functions = FUNCTIONS[1]

    def refuse_unfit(self, loaded):
        if loaded.lab.parameters or loaded.lab.speed:
            raise BadLab(f"{loaded.folder / 'lab.toml'}: a query has no parameters.")

    def trial_words(self, lab):
        return None


def make_grader():
    from warpbook_sql.grading import SqlGrader

    return SqlGrader()


SQL = LabLanguage(SqlLanguage(), make_grader)
