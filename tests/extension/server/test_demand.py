"""Why the devices are read: leases, how often they ask for it, and when they end."""

import asyncio
import time

import pytest

from warpbook.server.stream.demand import ALERT_RULES, PAGES, Demand


@pytest.fixture
def rates() -> list[str | None]:
    """Each rate that the demand changed to."""
    return []


@pytest.fixture
def demand(rates) -> Demand:
    made: list[Demand] = []
    made.append(Demand(lambda: rates.append(made[0].rate)))
    return made[0]


def test_the_devices_are_read_from_the_first_lease_to_the_end_of_the_last(
    demand, rates
) -> None:
    frames, receipts = demand.lease("frames"), demand.lease("receipts")
    assert not demand.is_awake
    frames.begin()
    receipts.begin()
    frames.end()
    assert demand.is_awake
    receipts.end()
    assert not demand.is_awake
    assert rates == ["full", None]


def test_the_highest_rate_counts(demand, rates) -> None:
    with demand.lease(ALERT_RULES, "slow"):
        with demand.lease("frames"):
            assert demand.rate == "full"
        assert demand.rate == "slow"
    assert demand.rate is None
    assert rates == ["slow", "full", "slow", None]


def test_leases_of_one_name_are_counted_and_each_ends_by_itself(demand) -> None:
    leases = [demand.lease("frames") for _ in range(3)]
    for lease in leases:
        lease.begin()
        lease.begin()  # a second time changes nothing
    assert demand.count("frames") == 3
    leases[0].end()
    leases[0].end()
    assert demand.count("frames") == 2
    assert demand.count("receipts") == 0


def test_a_lease_ends_with_its_block_also_by_an_error(demand) -> None:
    with pytest.raises(ZeroDivisionError), demand.lease("frames"):
        _ = 1 / 0
    assert not demand.is_awake


def test_an_open_page_alone_has_nothing_read(demand) -> None:
    with demand.lease(PAGES, rate=None):
        assert demand.count(PAGES) == 1
        assert not demand.is_awake


def test_rules_that_want_a_page_count_only_with_one(demand, rates) -> None:
    rules = demand.lease(ALERT_RULES, "slow", only_with=PAGES)
    rules.begin()
    assert (demand.rate, demand.count(ALERT_RULES)) == (None, 0)
    with demand.lease(PAGES, rate=None):
        assert (demand.rate, demand.count(ALERT_RULES)) == ("slow", 1)
    assert demand.rate is None
    assert rates == ["slow", None]


async def test_a_lease_for_a_time_ends_by_itself_at_the_latest_time_named(
    demand, rates
) -> None:
    requests = demand.lease("requests")
    begun_s = time.monotonic()
    requests.begin_for(0.3)
    # a shorter one does not cut it short
    requests.begin_for(0.01)
    while demand.is_awake:
        await asyncio.sleep(0.02)
    assert time.monotonic() - begun_s > 0.29
    assert rates == ["full", None]
    requests.begin_for(60)
    requests.end()
    assert not demand.is_awake


async def test_a_lease_without_an_end_is_not_given_one(demand) -> None:
    lease = demand.lease("keep_watching")
    lease.begin_for(0.01)
    lease.begin()
    lease.begin_for(0.01)
    await asyncio.sleep(0.05)
    assert demand.is_awake


def test_nothing_wakes_what_is_closed(demand) -> None:
    frames = demand.lease("frames")
    frames.begin()
    demand.close()
    assert not demand.is_awake
    with demand.lease("receipts"):
        assert not demand.is_awake
    frames.end()
    assert not demand.is_awake
