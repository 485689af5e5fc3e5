"""A database that is opened by its URL, waited for, and changed in transactions."""

import contextlib
import functools
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from .errors import GradebookError

PATIENCE = 30.0  # seconds that one attempt waits for a locked database
ATTEMPTS = 3


def in_one_transaction(url: str, prepare: Callable[[Connection], None], work: Callable[[Session], Any]) -> Any:
    """What `work(session)` returns, all its changes made or none.

    Args:
        prepare: called first, with the connection: makes the tables where there are none.
        work: may be called again when the database was busy.

    Raises:
        GradebookError: the database cannot be used; it is as it was.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _make_folder(url)
            with Session(_engine(url, PATIENCE)) as session, session.begin():
                prepare(session.connection())
                return work(session)
        except (SQLAlchemyError, OSError, ModuleNotFoundError) as error:
            if attempt == ATTEMPTS or not _is_busy(error):
                raise GradebookError(sentence(url, error)) from error


def _make_folder(url):
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)


@functools.cache
def _engine(url, patience):
    if make_url(url).get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    # one connection a transaction: nothing stays open, and what others did in between is seen
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": patience})

    @event.listens_for(engine, "connect")
    def _(connection, _record):
        connection.isolation_level = None  # SQLAlchemy begins, not the driver, which would do so too late
        connection.execute("PRAGMA busy_timeout = 0")
        with contextlib.suppress(sqlite3.OperationalError):  # while someone holds the file its mode stays as it is
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA busy_timeout = {int(1000 * patience)}")

    @event.listens_for(engine, "begin")
    def _(connection):
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # wait for the lock here and nowhere else

    return engine


def _is_busy(error):
    return isinstance(error, OperationalError) and any(
        word in str(error.orig) for word in ("locked", "busy", "deadlock")
    )


def sentence(url, error) -> str:
    """What kept the gradebook at `url` from being used, and what to do."""
    try:
        shown = shown_url(url)
    except ArgumentError:
        return f"the gradebook's db_url is {url!r}; give an SQLAlchemy URL, e.g. sqlite:////home/me/gradebook.db"
    if isinstance(error, (NoSuchModuleError, ModuleNotFoundError)):
        return f"the gradebook {shown} needs a driver ({error}); for PostgreSQL: pip install 'torch-lectures[postgres]'"
    said = str(error.orig if isinstance(error, DBAPIError) else error).strip().splitlines()[0]
    for sign, meaning in MEANINGS.items():
        if sign in said:
            return f"the gradebook {shown} {meaning}; nothing that was graded is lost"
    return f"the gradebook {shown} cannot be used now: {said}; nothing that was graded is lost"


MEANINGS = {
    "locked": "is in use by another program (formgrader, a second run): close it and call again",
    "disk is full": "has no room left on its disk: free some space and call again",
    "disk I/O error": "cannot be written to its disk (full, or failing): look at it and call again",
    "unable to open": "cannot be opened: look at the folder and its permissions",
    "readonly": "is read-only: make it writable and call again",
    "not a database": "is no database: move the file away, or name another one by db_url",
    "malformed": "is damaged: put a copy of it back",
    "no such column": "was made by another version of nbgrader: copy it, then call `nbgrader db upgrade`",
}


def shown_url(url: str) -> str:
    """The URL as people may see it: a file's path, or without the password."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        return parsed.database
    return parsed.render_as_string(hide_password=True)


def patient_url(url: str) -> str:
    """The URL by which nbgrader, too, waits for a locked SQLite file."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite" and "timeout" not in parsed.query:
        parsed = parsed.update_query_dict({"timeout": str(int(PATIENCE * ATTEMPTS))})
    return parsed.render_as_string(hide_password=False)
