"""What the columns of a roster are, by the names that programs and languages have."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from msgspec import Struct

Field = Literal[
    "username", "first_name", "last_name", "full_name", "email", "section", "team"
]
FIELDS: tuple[Field, ...] = get_args(Field)
#: names of a column, as `key_of` writes them; in English, German, French, Spanish,
#: Italian, Portuguese, Dutch, Polish and the languages of the north
_NAMES: dict[str, str] = {
    "username": "username user_name user login login_name login_id sis_login_id "
    "sis_anmelde_id sis_anmeldungs_id ext_user_username benutzername nutzername "
    "anmeldename nom_d_utilisateur identifiant_de_connexion nombre_de_usuario usuario "
    "nome_utente nome_de_usuario gebruikersnaam nazwa_uzytkownika brukernavn "
    "brugernavn anvandarnamn kayttajatunnus",
    "first_name": "first_name firstname given_name given_names forename "
    "lis_person_name_given vorname prenom nombre nombre_s nome voornaam imie fornavn "
    "fornamn etunimi",
    "last_name": "last_name lastname surname family_name lis_person_name_family "
    "nachname familienname nom nom_de_famille apellido apellidos apellido_s cognome "
    "sobrenome apelido achternaam nazwisko etternavn efternavn efternamn sukunimi",
    "full_name": "full_name fullname name student_name lis_person_name_full "
    "vollstandiger_name nom_complet nombre_completo nome_completo",
    "email": "email e_mail mail email_address e_mail_address "
    "lis_person_contact_email_primary e_mail_adresse email_adresse emailadresse "
    "adresse_de_courriel adresse_e_mail adresse_email courriel direccion_de_correo "
    "direccion_de_correo_electronico correo correo_electronico indirizzo_email "
    "endereco_de_email e_mailadres emailadres adres_e_mail epostadresse e_postadress",
    "section": "section sections section_name group groups abschnitt abschnitte gruppe "
    "gruppen groupe groupes seccion grupo grupos sezione gruppo gruppi secao groep "
    "groepen sekcja grupa grupy gruppe_r grupper ryhma ryhmat",
    "team": "team teams equipe equipo",
    "role": "role roles rolle rollen rol ruolo papel rola",
}
_FIELD_OF = {name: field for field, names in _NAMES.items() for name in names.split()}
_PEOPLE = {"first_name", "last_name", "email"}
#: nbgrader's file of grades, with a line for each learner and assignment
_GRADES = {"assignment", "student_id", "raw_score", "max_score"}
#: whose file it is: of each group of names one is there
_PROGRAMS: dict[str, tuple[str, ...]] = {
    "Canvas": ("student studierende etudiant estudiante", "id", "section abschnitt"),
    "Canvas ": ("student studierende etudiant estudiante", "sis_login_id sis_user_id"),
    "LTI": ("user_id", "given_name family_name roles lis_person_sourcedid"),
    "Gradescope": ("sid", "email", "role sections"),
    "Blackboard": (
        "username",
        "student_id",
        "availability last_access child_course_id",
    ),
    "Moodle": (
        "email_address e_mail_adresse adresse_de_courriel direccion_de_correo "
        "indirizzo_email endereco_de_email e_mailadres adres_e_mail",
        "id_number id_nummer numero_d_identification numero_de_id numero_id groups "
        "gruppen groupes grupos gruppi groepen grupy last_access_to_course",
    ),
}
#: of a role: they are added as staff, and by no roster
_STAFF = re.compile(
    "instructor|teach|assistant|grader|designer|builder|manager|admin|observer|trainer|"
    "dozent|lehrend|enseignant|profesor|professor|docente|docent|(^|_)ta($|_)"
)
_POINTS_ROWS = re.compile("points_possible|punkte_moglich|mogliche_punkte|puntos_")


class Columns(Struct, frozen=True):
    """What the columns of a file are."""

    #: who writes such files; empty: nobody that is known
    program: str
    #: place of each field, and of `role`
    places: dict[str, int]
    #: fields that more than one column could be, with their places
    doubtful: dict[str, tuple[int, ...]]


def key_of(name: str) -> str:
    """Write a name without accents, case and signs, so that spellings are equal."""
    plain = unicodedata.normalize("NFKD", name)
    letters = "".join(one for one in plain if not unicodedata.combining(one))
    return re.sub(r"[^a-z0-9]+", "_", letters.casefold().replace("ł", "l")).strip("_")


def columns_of(names: Sequence[str], chosen: Mapping[str, int]) -> Columns:
    """Tell what columns are.

    Args:
        names: of the columns.
        chosen: places of fields that a person has said; -1: no column is.
    """
    keys = [key_of(name) for name in names]
    program = _program(keys)
    means = dict(_FIELD_OF)
    if program == "Canvas":
        means |= dict.fromkeys(_PROGRAMS["Canvas"][0].split(), "full_name")
    elif program == "nbgrader":
        means |= {"id": "username", "student_id": "username"}
    taken = {place for place in chosen.values() if place >= 0}
    found: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        field = means.get(key)
        if field is not None and field not in chosen and place not in taken:
            found.setdefault(field, []).append(place)
    places = {field: at for field, at in chosen.items() if at >= 0}
    places |= {field: at[0] for field, at in found.items() if len(at) == 1}
    if {"first_name", "last_name"} & places.keys() and "full_name" not in chosen:
        places.pop("full_name", None)
    doubtful = {field: tuple(at) for field, at in found.items() if len(at) > 1}
    return Columns(program, places, doubtful)


def known_fields(names: Sequence[str]) -> int:
    """Count the cells that name a field."""
    return len({key_of(name) for name in names} & _FIELD_OF.keys())


def why_skipped(program: str, cells: Mapping[str, str]) -> str:
    """Say why a row is of no learner; empty if it is of one.

    Args:
        program: that wrote the file.
        cells: by field; the first one as `first`.
    """
    if cells.get("role") and _STAFF.search(key_of(cells["role"])):
        return f"no learner: {cells['role']}"
    if program == "Canvas":
        who = key_of(cells.get("full_name", cells["first"]))
        if _POINTS_ROWS.match(who) or not who:
            return "a row of Canvas' own"
        if who in ("student_test", "test_student"):
            return "Canvas' test student"
    if cells.get("username", "").endswith("_previewuser"):
        return "Blackboard's preview user"
    return ""


def _program(keys: Sequence[str]) -> str:
    there = {*keys}
    if there >= _GRADES:
        return "nbgrader"
    for name in ("id", "student_id"):
        if name in there and len(there) > 1:
            if there <= {name, *_PEOPLE, "lms_user_id"} and there & _PEOPLE:
                return "nbgrader"
    for program, groups in _PROGRAMS.items():
        if all(there & {*group.split()} for group in groups):
            return program.strip()
    return ""
