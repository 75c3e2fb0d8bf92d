"""All pages, with who may open each."""

from __future__ import annotations

from warpbook_hub.service.pages import (
    competition_page,
    gradebook_page,
    hub_pages,
    learner_pages,
    similarity_pages,
    staff_pages,
)
from warpbook_hub.service.parameters import (
    ClassQuery,
    LabQuery,
    LogQuery,
    PairQuery,
    SectionQuery,
)
from warpbook_hub.service.route import PageRoute

C = "courses/{course}"
L = f"{C}/labs/{{lab}}"

PAGE_ROUTES: tuple[PageRoute, ...] = (
    PageRoute("", "person", "courses.html", learner_pages.courses_page),
    PageRoute("notices", "person", "notices.html", learner_pages.notices_page),
    PageRoute(
        "hub",
        "operator",
        "hub.html",
        hub_pages.hub_page,
        LogQuery,
        after=hub_pages.with_backups,
    ),
    PageRoute(C, "member", "labs.html", learner_pages.labs_page),
    PageRoute(
        f"{C}/publish",
        "instructor",
        "publish.html",
        staff_pages.catalogue_page,
        LabQuery,
    ),
    PageRoute(L, "member", "lab.html", learner_pages.lab_page),
    PageRoute(f"{L}/board", "member", "board.html", competition_page.board_page),
    PageRoute(f"{L}/settings", "instructor", "publish.html", staff_pages.settings_page),
    PageRoute(f"{L}/version", "instructor", "version.html", staff_pages.version_page),
    PageRoute(
        f"{L}/similarity",
        "instructor",
        "similarity.html",
        similarity_pages.similarity_page,
        after=similarity_pages.with_ranking,
    ),
    PageRoute(
        f"{L}/pair",
        "instructor",
        "pair.html",
        similarity_pages.pair_page,
        PairQuery,
        after=similarity_pages.with_lines,
    ),
    PageRoute(
        f"{C}/submissions/{{submission}}",
        "member",
        "submission.html",
        learner_pages.submission_page,
    ),
    PageRoute(
        f"{C}/class",
        "staff",
        "class.html",
        gradebook_page.class_page,
        ClassQuery,
        after=gradebook_page.with_rows,
    ),
    *(
        PageRoute(path, "staff", template, function, is_noted=True)
        for path, template, function in (
            (f"{C}/as/{{person}}", "labs.html", learner_pages.labs_as),
            (f"{C}/as/{{person}}/labs/{{lab}}", "lab.html", learner_pages.lab_as),
            (
                f"{C}/as/{{person}}/submissions/{{submission}}",
                "submission.html",
                learner_pages.submission_as,
            ),
            (f"{C}/as-new/{{section}}", "labs.html", learner_pages.labs_as_new),
            (
                f"{C}/as-new/{{section}}/labs/{{lab}}",
                "lab.html",
                learner_pages.lab_as_new,
            ),
        )
    ),
    PageRoute(
        f"{C}/gradebook",
        "staff",
        "gradebook.html",
        gradebook_page.gradebook_page,
        SectionQuery,
        after=gradebook_page.with_marks,
    ),
    PageRoute(f"{C}/gpus", "member", "gpus.html", hub_pages.gpu_page),
    PageRoute(f"{C}/queue", "instructor", "queue.html", gradebook_page.queue_page),
    PageRoute(f"{C}/people", "instructor", "people.html", staff_pages.people_page),
    PageRoute(
        f"{C}/people/{{person}}", "staff", "person.html", staff_pages.person_page
    ),
    PageRoute(f"{C}/appeals", "staff", "appeals.html", staff_pages.appeals_page),
    PageRoute(f"{C}/platform", "instructor", "platform.html", hub_pages.platform_page),
    PageRoute(f"{C}/log", "instructor", "log.html", staff_pages.log_page, LogQuery),
    PageRoute(f"{C}/data", "instructor", "data.html", staff_pages.data_page),
)
