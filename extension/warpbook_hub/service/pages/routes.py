"""All pages, with who may open each."""

from __future__ import annotations

from warpbook_hub.service.pages import (
    class_pages,
    competing,
    gpu_page,
    learning,
    operating,
    platform,
    teaching,
)
from warpbook_hub.service.parameters import ClassQuery, LabQuery, LogQuery, PairQuery
from warpbook_hub.service.route import PageRoute

C = "courses/{course}"
L = f"{C}/labs/{{lab}}"

PAGE_ROUTES: tuple[PageRoute, ...] = (
    PageRoute("", "person", "courses.html", learning.courses_page),
    PageRoute(
        "hub",
        "operator",
        "hub.html",
        operating.hub_page,
        LogQuery,
        after=operating.with_backups,
    ),
    PageRoute(C, "member", "labs.html", learning.labs_page),
    PageRoute(
        f"{C}/publish", "instructor", "publish.html", teaching.catalogue_page, LabQuery
    ),
    PageRoute(L, "member", "lab.html", learning.lab_page),
    PageRoute(f"{L}/board", "member", "board.html", competing.board_page),
    PageRoute(f"{L}/settings", "instructor", "publish.html", teaching.settings_page),
    PageRoute(
        f"{L}/similarity",
        "instructor",
        "similarity.html",
        teaching.similarity_page,
        after=teaching.with_ranking,
    ),
    PageRoute(
        f"{L}/pair",
        "instructor",
        "pair.html",
        teaching.pair_page,
        PairQuery,
        after=teaching.with_lines,
    ),
    PageRoute(
        f"{C}/submissions/{{submission}}",
        "member",
        "submission.html",
        learning.submission_page,
    ),
    PageRoute(
        f"{C}/class",
        "staff",
        "class.html",
        class_pages.class_page,
        ClassQuery,
        after=class_pages.with_rows,
    ),
    PageRoute(f"{C}/gpus", "member", "gpus.html", gpu_page.gpu_page),
    PageRoute(f"{C}/queue", "instructor", "queue.html", class_pages.queue_page),
    PageRoute(f"{C}/people", "instructor", "people.html", teaching.people_page),
    PageRoute(f"{C}/people/{{person}}", "staff", "person.html", teaching.person_page),
    PageRoute(f"{C}/appeals", "staff", "appeals.html", teaching.appeals_page),
    PageRoute(f"{C}/platform", "instructor", "platform.html", platform.platform_page),
    PageRoute(f"{C}/log", "instructor", "log.html", teaching.log_page, LogQuery),
    PageRoute(f"{C}/data", "instructor", "data.html", teaching.data_page),
)
