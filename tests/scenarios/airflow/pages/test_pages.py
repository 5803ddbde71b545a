"""The pages in a headless Chromium, inside a real Airflow with a thousand deployments."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.scenarios.airflow.pages.browser import THEMES, WIDTHS, Browser, violations
from tests.scenarios.airflow.pages.world import FLEET, HOSTILE

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(900)]

RUN = "dags/redeploy_revenue/runs/manual__2"
OTHER_DEPLOYMENTS = 9
# Twice the pause of decide.tsx; a request that is given up is over at once.
_SLOW = """const quick = window.fetch;
window.fetch = async (url, init) => {
    const answer = await quick(url, init);
    if (window.slow && /\\/changes\\/\\d+$/.test(url))
        await new Promise((go, end) => {
            init.signal?.addEventListener('abort', () => end(init.signal.reason));
            setTimeout(go, 6000);
        });
    return answer;
};"""
# Workers of blobs are for Airflow's own editor.
POLICY = (
    "script-src 'self'; connect-src 'self'; object-src 'none'; base-uri 'self'; style-src 'self' 'unsafe-inline'; "
    "worker-src 'self' blob:"
)


def paths(browser: Browser) -> dict[str, str]:
    return {
        "list": "plugin/flink",
        "attention": "plugin/flink?show=interrupted,failed",
        "deployment": browser.path("orders"),
        "change": browser.waiting("revenue"),
        "shadow run": browser.waiting("loyalty"),
        "first version": browser.path("orders", 1),
        "hostile": browser.path("x-hostile"),
        "hostile change": browser.waiting("x-hostile"),
        "run": f"{RUN}/plugin/flink_change",
        "task": f"{RUN}/tasks/approve/plugin/flink_change_task",
        "other run": "dags/redeploy_other/runs/manual__1/plugin/flink_change",
        "dashboard": "",
    }


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_is_accessible_and_nothing_sticks_out(browser: Browser, width: int, theme: str) -> None:
    with browser.signed_in(width=width, theme=theme) as page:
        for name, path in paths(browser).items():
            browser.open(page, path)
            assert violations(page) == [], name
            assert page.evaluate("() => document.documentElement.classList.contains('dark')") == (theme == "dark")
            outside = """() => { const root = document.querySelector('.fc-root');
                return root.scrollWidth - root.clientWidth; }"""
            assert page.evaluate(outside) <= 0, name


def test_the_list_is_filtered_searched_and_paged_and_survives_a_reload(browser: Browser) -> None:
    with browser.signed_in() as page:
        browser.open(page, "plugin/flink")
        root = page.locator(".fc-root")
        assert root.get_by_role("status").inner_text() == f"{FLEET + OTHER_DEPLOYMENTS} deployments"
        root.get_by_role("button", name="Next").click()
        root.get_by_text("Page 2 of 21").wait_for()
        page.reload()
        root.get_by_text("Page 2 of 21").wait_for()
        root.get_by_role("searchbox").fill("revenue")
        root.get_by_text(f"1 of {FLEET + OTHER_DEPLOYMENTS} deployments").wait_for()
        assert root.get_by_role("row").count() == 2
        root.get_by_role("searchbox").fill("")
        root.get_by_role("button", name="interrupted").press("Space")
        root.get_by_text(f"2 of {FLEET + OTHER_DEPLOYMENTS} deployments").wait_for()
        assert "stopping the job" in root.get_by_role("row", name="shared").inner_text()
        page.reload()
        chip = root.get_by_role("button", name="interrupted")
        chip.wait_for()
        assert chip.get_attribute("aria-pressed") == "true"
        link = root.get_by_role("link", name="shared", exact=True)
        link.focus()
        link.press("Enter")
        root.get_by_role("heading", name="shared", level=1).wait_for()
        page.go_back()
        root.get_by_role("heading", name="Flink deployments").wait_for()


def test_a_finding_stands_below_its_clause(browser: Browser) -> None:
    with browser.signed_in() as page:
        browser.open(page, browser.waiting("revenue"))
        lines = page.locator(".fc-diff tr").all_inner_texts()
        remark = next(place for place, line in enumerate(lines) if "Window type" in line)
        assert "DESCRIPTOR(ordered_at)" in lines[remark - 1]
        added = page.locator(".fc-diff ins").all_inner_texts()
        assert [text.strip() for text in added] == ["half", "order_id", "30", "MINUTE"]
        marked = page.locator(".fc-line.fc-after .fc-clause").all_inner_texts()
        # Words that differ within a clause stand for themselves.
        window = "TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ordered_at), INTERVAL '30' MINUTE))"
        assert "".join(marked) == f"COUNT(order_id){window}"
        metric = next(place for place, line in enumerate(lines) if "COUNT(order_id)" in line)
        assert any("Finding" in line or "metric" in line.lower() for line in lines[metric + 1 : metric + 3])
        page.locator(".fc-diff").get_by_role("link", name="Finding 1").click()
        assert page.evaluate("() => document.activeElement.id") == "finding-1"
        hidden = "'properties.bootstrap.servers'"
        assert not any(hidden in line for line in lines)
        page.get_by_role("button", name="Show all lines").click()
        assert any(hidden in line for line in page.locator(".fc-diff tr").all_inner_texts())


def test_a_shadow_run_is_shown_below_the_scripts(browser: Browser) -> None:
    with browser.signed_in() as page:
        browser.open(page, browser.waiting("loyalty"))
        section = page.locator(".fc-section", has=page.get_by_role("heading", name="Shadow run"))
        assert "differs in changed columns only in columns that the change names" in section.inner_text()
        table = section.get_by_role("region", name="First differing keys of points_by_customer")
        cells = [row.locator("th, td").all_text_contents() for row in table.locator("tr").all()]
        assert cells[:2] == [
            ["customer", "change", "points (old → new)", "level (old → new)", "orders (old → new)"],
            ["ann", "changed", "old: 1250 → new: 1190", "old: gold → new: silver", "17"],
        ]


def test_the_sign_of_a_line_stays_at_its_line_when_the_page_is_scrolled(browser: Browser) -> None:
    with browser.signed_in(width=400) as page:
        browser.open(page, browser.waiting("revenue"))
        line = page.locator(".fc-line.fc-before").last
        line.scroll_into_view_if_needed()
        page.mouse.move(200, 400)
        page.mouse.wheel(0, 200)
        outside = """e => { const [line, sign] = [e, e.querySelector('.fc-sign')].map(x => x.getBoundingClientRect());
            return sign.top < line.top || sign.bottom > line.bottom; }"""
        assert not line.evaluate(outside)


def test_why_stands_above_the_form_and_leads_to_the_finding(browser: Browser) -> None:
    with browser.signed_in() as page:
        browser.open(page, browser.waiting("revenue"))
        assert "Planned by Flink 2.3.0." in page.locator(".fc-verdict").inner_text()
        why = page.locator(".fc-verdict li").first
        said = page.locator("#finding-1 p").first.inner_text()
        assert said in why.inner_text()
        why.get_by_role("link", name="finding 1").click()
        assert page.evaluate("document.activeElement.id") == "finding-1"


def test_the_form_says_what_comes_of_each_answer(browser: Browser) -> None:
    with browser.signed_in() as page:
        browser.open(page, browser.waiting("revenue"))
        page.get_by_role("radio").first.wait_for()
        told = page.locator(".fc-option").all_inner_texts()
    assert [each.split("\n")[0] for each in told] == ["Resume from savepoint", "Restart without state", "Reject"]
    assert "Not advised: " in told[0]
    assert "All state is discarded" in told[1]
    assert "is not offered again" in told[2]


def test_what_ran_before_may_be_hidden(browser: Browser) -> None:
    def hidden(route: Any) -> None:
        route.fulfill(json={**route.fetch().json(), "old": None})

    with browser.signed_in() as page:
        page.route(re.compile(r"/changes/\d+$"), hidden)
        browser.open(page, browser.waiting("revenue"))
        told = page.locator(".fc-root").inner_text()
    assert "The previous version is in entry 1 of a DAG that you may not read." in told
    assert "this is the first one" not in told


def test_a_narrow_window_shows_one_column(browser: Browser) -> None:
    with browser.signed_in(width=400) as page:
        browser.open(page, browser.waiting("revenue"))
        assert page.locator(".fc-diff.fc-unified").count() == 1
        page.set_viewport_size({"width": 1280, "height": 900})
        page.locator(".fc-diff.fc-split").wait_for()


def test_one_decides_on_the_page_of_airflow(browser: Browser) -> None:
    with browser.signed_in() as page:
        browser.open(page, f"{RUN}/plugin/flink_change")
        link = page.get_by_role("link", name="Airflow's own form")
        link.wait_for()
        assert browser.errors == []
        link.click()
        page.wait_for_url(re.compile(r"/runs/manual__2/tasks/approve/required_actions$"))
        page.get_by_role("button", name="Resume from savepoint").wait_for()
    browser.errors.clear()  # Airflow's page asks for what there is none of


def test_a_decision_is_given_by_keyboard_once_and_with_a_reason(browser: Browser) -> None:
    path, reason = browser.waiting("orders"), "the sales team counts otherwise\n<b>"
    with browser.signed_in() as page, browser.signed_in() as other:
        # The other window stands in the background: it does not look again.
        other.add_init_script("Object.defineProperty(document, 'hidden', {get: () => true})")
        browser.open(other, path)
        browser.open(page, path)
        page.get_by_role("radio", name="Resume from savepoint").focus()
        for _ in range(2):
            page.keyboard.press("ArrowDown")
        assert page.get_by_role("radio", name="Reject").is_checked()
        field = page.get_by_role("textbox", name="Reason for the ledger (required to reject)")
        for key in ("Tab", "Tab", "Enter"):
            page.keyboard.press(key)
        assert field.evaluate("e => e.validity.valueMissing && document.activeElement === e")
        assert violations(page) == []
        page.keyboard.type(reason)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        told = page.get_by_role("status").filter(has_text="You chose “Reject”. Airflow has your answer")
        told.wait_for()
        assert told.evaluate("e => document.activeElement === e")
        assert page.get_by_role("button", name="Send this answer").count() == 0
        assert violations(page) == []

        other.get_by_role("radio", name="Resume from savepoint").check()
        other.get_by_role("button", name="Send this answer").click()
        assert "Somebody answered before you." in other.get_by_role("alert").inner_text()
    question = browser.server.question("redeploy_orders", "manual__4")
    assert (question["chosen_options"], question["params_input"]) == (["Reject"], {"reason": reason})
    assert question["responded_by_user"] == {"id": "admin", "name": "admin"}
    assert [error for error in browser.errors if "409" not in error] == []
    browser.errors.clear()


def test_the_page_follows_a_decision_also_where_the_api_takes_longer_than_the_pause(browser: Browser) -> None:
    """What Airflow and the ledger say of the answer is made up: the change waits for other tests."""
    decided = False

    def change(route: Any) -> None:
        told = route.fetch().json()
        if decided:
            told["decision"] |= {"state": "approved", "by": "admin"}
        route.fulfill(json=told)

    def take(route: Any) -> None:
        nonlocal decided
        decided = True
        route.fulfill(json={})

    with browser.signed_in() as page:
        page.add_init_script(_SLOW)
        page.route(re.compile(r"/changes/\d+$"), change)
        page.route(re.compile(r"/taskInstances/approve/-1/hitlDetails$"), take)
        browser.open(page, browser.waiting("revenue"))
        page.get_by_role("radio", name="Restart without state").check()
        page.evaluate("() => { window.slow = true; }")
        page.get_by_role("button", name="Send this answer").click()
        page.get_by_text("Approved by admin").wait_for(timeout=60_000)


@pytest.mark.parametrize(
    ("user", "name", "run", "why"),
    [
        ("viewer", "revenue", ("redeploy_revenue", "manual__2"), "Forbidden"),
        ("admin", "x-hostile", ("redeploy_hostile", "manual__3"), "User=admin (id=admin) is not a respondent"),
    ],
)
def test_a_decision_that_airflow_refuses_is_said_in_words(
    browser: Browser, user: str, name: str, run: tuple[str, str], why: str
) -> None:
    with browser.signed_in(user, width=400, theme="dark") as page:
        browser.open(page, browser.waiting(name))
        page.get_by_role("radio", name="Resume from savepoint").check()
        page.get_by_role("button", name="Send this answer").click()
        told = page.get_by_role("alert").inner_text()
        assert told.startswith("You may not decide this.")
        assert why in told
        assert violations(page) == []
        assert (f"Assigned to {HOSTILE[1]}." in page.locator(".fc-answer").inner_text()) == (name == "x-hostile")
    assert not browser.server.question(*run)["response_received"]
    assert [error for error in browser.errors if "403" not in error] == []
    browser.errors.clear()


@pytest.mark.parametrize("more", [{"params": {"reason": {}, "ticket": {}}}, {"task_instance": {}}])
def test_what_the_page_cannot_ask_is_asked_by_airflows_form(browser: Browser, more: dict[str, Any]) -> None:
    """A form with further fields, and a question of which it is not known what it is about."""

    def changed(route: Any) -> None:
        told = route.fetch().json()
        (asked,) = told["hitl_details"]
        for key, value in more.items():
            asked[key] = value or {**asked[key], "rendered_fields": {}}
        route.fulfill(json=told)

    with browser.signed_in() as page:
        page.route(re.compile(r"/hitlDetails\?"), changed)
        browser.open(page, browser.waiting("revenue"))
        page.get_by_role("link", name="Airflow's own form").wait_for()
        assert page.get_by_role("radio").count() == 0


def test_a_run_without_a_deployment_has_a_friendly_page(browser: Browser) -> None:
    with browser.signed_in() as page:
        browser.open(page, "dags/redeploy_other/runs/manual__1/plugin/flink_change")
        assert "No change of a Flink deployment belongs to this run." in page.locator(".fc-root").inner_text()


def test_the_page_of_a_deployment_tells_its_history(browser: Browser) -> None:
    with browser.signed_in() as page:
        browser.open(page, browser.path("orders"))
        told = page.locator(".fc-root").inner_text()
    for words in (
        "agreed in review #7",
        "4 min 0 s",
        "from the migrated savepoint",
        "rolled back to",
        "Rewritten to s3://bucket/migrated/1",
        "1,200 rows, 24 windows",
        "refused: 'password' = '***'",
    ):
        assert words in told


def test_hostile_texts_stay_texts(browser: Browser) -> None:
    with browser.signed_in() as page:
        for path in (
            "plugin/flink?q=hostile",
            browser.path("x-hostile"),
            *(browser.path("x-hostile", number) for number in (1, 3, 4, 6, 8)),
            "dags/redeploy_hostile/runs/manual__3/plugin/flink_change",
        ):
            browser.open(page, path)
            root = page.locator(".fc-root")
            assert root.locator("script, img, svg, iframe, style, object").count() == 0
            assert root.locator("[onload], [onerror], [href^='javascript:']").count() == 0
            assert page.evaluate("() => window.attacked") is None
            assert "\u202e" not in root.inner_text()
        browser.open(page, browser.path("x-hostile"))
        told = page.locator(".fc-root").inner_text()
        browser.open(page, browser.waiting("x-hostile"))
        script = page.locator(".fc-diff").inner_text()
    assert all(text in told for text in HOSTILE if text.isascii())
    assert "U+202E" in script


@pytest.mark.parametrize(
    ("user", "status", "sentence"),
    [("admin", 404, "Not found."), ("viewer", 403, "You may not see this.")],
)
def test_what_is_refused_is_said_in_a_sentence(browser: Browser, user: str, status: int, sentence: str) -> None:
    path = {404: browser.path("orders").replace("=orders", "=none"), 403: browser.path("by-hand")}[status]
    with browser.signed_in(user) as page:
        browser.open(page, path)
        assert sentence in page.get_by_role("alert").inner_text()
        assert violations(page) == []
    assert [error for error in browser.errors if f"{status}" not in error] == []
    browser.errors.clear()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ({"status": 401, "json": {"detail": "Not authenticated"}}, "You are no longer signed in."),
        ({"status": 500, "body": "<b>Internal</b>"}, "Airflow could not answer (status 500)."),
        ({"status": 502, "body": "<html>proxy</html>"}, "Airflow could not answer (status 502)."),
        ({"status": 503, "json": {"detail": "torn entry"}}, "The ledger cannot be read at the moment."),
        ({"status": 200, "body": "<html>portal</html>"}, "The answer is not JSON."),
        (None, "Airflow cannot be reached."),
    ],
)
def test_a_failure_is_said_in_a_sentence_and_passes(browser: Browser, answer: Any, sentence: str) -> None:
    api = re.compile(r"/flinkcompat/api/v1/deployments\b")
    with browser.signed_in() as page:
        page.route(api, lambda route: route.fulfill(**answer) if answer else route.abort())
        browser.open(page, "plugin/flink?q=revenue")
        assert sentence in page.get_by_role("alert").inner_text()
        page.unroute(api)
        page.get_by_role("button", name="Try again").click()
        page.locator(".fc-root").get_by_role("link", name="revenue", exact=True).wait_for()
    browser.errors.clear()  # Chromium's own lines about the status


def test_a_strict_content_security_policy_refuses_nothing_of_the_pages(browser: Browser) -> None:
    def with_policy(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, headers={**answer.headers, "content-security-policy": POLICY})

    with browser.signed_in() as page:
        page.add_init_script(
            "window.refused = []; addEventListener('securitypolicyviolation', e => refused.push(e.blockedURI))"
        )
        page.route(lambda url: "/plugin/flink" in url, with_policy)
        browser.open(page, browser.waiting("revenue"))
        assert page.locator(".fc-diff").is_visible()
        assert page.evaluate("() => window.refused") == []
        # The styles are there: what a screen reader alone reads takes no room.
        assert page.locator(".fc-diff caption").evaluate("e => e.getBoundingClientRect().width") <= 1


def test_all_the_pages_ask_for_is_airflow_itself(browser: Browser) -> None:
    with browser.signed_in() as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for path in paths(browser).values():
            browser.open(page, path)
    assert {url for url in asked if not url.startswith((browser.server.url, "data:", "blob:"))} == set()
