"""Windows as compiled plans write them."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols, resolved
from airflow_flinkcompat.exec_graph.windows import SlicedWindow, meaning_without_window, sliced_window
from airflow_flinkcompat.plan.nodes import WindowKind

TIME = {"type": "TIMESTAMP_WITHOUT_TIME_ZONE", "precision": 3, "kind": "ROWTIME"}
HOP = {"type": "HoppingWindow", "size": "PT1M", "slide": "PT0.5S"}
SYMBOLS = Symbols()


def windowing(window: dict[str, str], **more: Any) -> Any:
    told = {"strategy": "TimeAttribute", "window": window, "timeAttributeType": TIME, "timeAttributeIndex": 0}
    columns = ColumnMeanings((SYMBOLS.of("ts"), SYMBOLS.of("other")), ("ts", "other"), ("", ""), SYMBOLS.of("rows"))
    return resolved({**told, "isRowtime": True, **more}, columns, SYMBOLS)


@pytest.mark.parametrize(
    ("window", "sliced"),
    [
        ({"type": "TumblingWindow", "size": "PT1H"}, SlicedWindow(WindowKind.TUMBLE, 3_600_000, 3_600_000)),
        ({**HOP, "offset": "0.25"}, SlicedWindow(WindowKind.HOP, 60_000, 500, 250)),
        (
            {"type": "CumulativeWindow", "maxSize": "PT24H", "step": "PT6H", "offset": "3600"},
            SlicedWindow(WindowKind.CUMULATE, 86_400_000, 21_600_000, 3_600_000),
        ),
        ({"type": "SessionWindow", "gap": "PT1M"}, None),
        ({"type": "TumblingWindow", "size": "PT0.0005S"}, None),
    ],
)
def test_which_windows_are_kept_in_slices(window: dict[str, str], sliced: SlicedWindow | None) -> None:
    assert sliced_window(windowing(window)) == sliced


@pytest.mark.parametrize(
    "more",
    [
        {"strategy": "WindowAttached"},
        {"isRowtime": False},
        {"timeAttributeType": {**TIME, "type": "TIMESTAMP_WITH_LOCAL_TIME_ZONE"}},
        {"timeAttributeType": {**TIME, "kind": "PROCTIME"}},
    ],
)
def test_windows_that_come_with_rows_or_go_by_another_clock_are_not_known(more: dict[str, Any]) -> None:
    assert sliced_window(windowing(HOP)) is not None
    assert sliced_window(windowing(HOP, **more)) is None


def test_what_is_told_without_the_window_is_by_which_time_it_is() -> None:
    assert meaning_without_window(windowing(HOP)) == meaning_without_window(windowing({**HOP, "slide": "PT1M"}))
    assert meaning_without_window(windowing(HOP)) != meaning_without_window(windowing(HOP, timeAttributeIndex=1))


def test_an_aggregation_without_windows_has_none() -> None:
    assert sliced_window(()) is None
    assert meaning_without_window(()) == ()
