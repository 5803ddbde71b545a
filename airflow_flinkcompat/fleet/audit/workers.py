"""Workers of an audit: this process, or several; rows keep the order of the pairs, a few at a time."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import islice

from airflow_flinkcompat.fleet.audit.changed_tables import ReplacementTable
from airflow_flinkcompat.fleet.audit.judging import audit_pair, failed_row
from airflow_flinkcompat.fleet.audit.values import AuditPair, AuditRow

_CHUNK = 16
"""Pairs per request to a process: enough to hide the transfer, few enough to share them evenly."""
_AHEAD = 3
"""Chunks for each process that are read before they are needed."""

Tables = tuple[ReplacementTable, ...]


def audit_here(pairs: Iterable[AuditPair], tables: Tables = ()) -> Iterator[AuditRow]:
    """Judge pairs one after the other."""
    for pair in pairs:
        yield audit_pair(pair, tables)


def audit_in_processes(pairs: Iterable[AuditPair], tables: Tables, processes: int) -> Iterator[AuditRow]:
    """Judge pairs in several processes.

    If a process dies, for lack of memory for example, its pairs are judged again separately. A pair over which a
    process dies once more becomes a row that reports it.
    """
    waiting: deque[tuple[list[AuditPair], Future[list[AuditRow]]]] = deque()
    reading = iter(pairs)
    pool = _pool(processes)
    try:
        while True:
            while len(waiting) < processes * _AHEAD and (chunk := list(islice(reading, _CHUNK))):
                waiting.append((chunk, pool.submit(_judge, chunk, tables)))
            if not waiting:
                return
            chunk, future = waiting.popleft()
            try:
                rows = future.result()
            except BrokenProcessPool:
                pool.shutdown()
                rows = [_by_itself(pair, tables) for pair in chunk]
                # What was given to the pool that broke is given to another one.
                pool = _pool(processes)
                waiting = deque((each, pool.submit(_judge, each, tables)) for each, _ in waiting)
            yield from rows
    finally:
        pool.shutdown(cancel_futures=True)


def _judge(pairs: list[AuditPair], tables: Tables) -> list[AuditRow]:
    return list(map(partial(audit_pair, tables=tables), pairs))


def _by_itself(pair: AuditPair, tables: Tables) -> AuditRow:
    """The row of a pair, judged by a process that has no other one."""
    with _pool(1) as pool:
        try:
            return pool.submit(audit_pair, pair, tables).result()
        except BrokenProcessPool:
            return failed_row(pair.name, "process-ended", "the process that judged it ended, killed or out of memory")


def _pool(processes: int) -> ProcessPoolExecutor:
    # A fork would copy whatever threads and locks this process has.
    return ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))
