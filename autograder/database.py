"""A database that is opened by its URL, waited for, and changed in transactions."""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
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
        work: called again when the database was busy, or the connection to it was cut, be it after the changes were
            made: what it does twice must be what it does once.

    Raises:
        GradebookError: the database cannot be used; it is as it was.
    """
    parsed, cut = parsed_url(url), False
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _make_folder(parsed)
            with Session(_engine(url, PATIENCE)) as session, session.begin():
                prepare(session.connection())
                return work(session)
        except (SQLAlchemyError, OSError, ModuleNotFoundError) as error:
            cut = cut or _is_cut(error)
            if attempt == ATTEMPTS or not (cut or _is_busy(error)):
                raise GradebookError(sentence(url, error)) from error
        if cut:
            time.sleep(attempt)  # a server that is started anew


def parsed_url(url: str) -> URL:
    """The parts of an SQLAlchemy URL.

    Raises:
        GradebookError: it is none, or one of a database that ends with this process; what may be a password is not shown.
    """
    try:
        parsed = make_url(url)
        file = parsed.get_backend_name() == "sqlite"
        if not file and "@" in f"{parsed.host} {parsed.database}":
            raise ValueError("part of a password")
    except (ArgumentError, ValueError):  # ValueError, too: a port that is no number, of a password that looks like one
        _, secret, rest = url.rpartition("@")
        shown = f"***@{rest}" if secret else url
        raise GradebookError(
            f"the gradebook's db_url is {shown!r}; give an SQLAlchemy URL, e.g. sqlite:////home/me/gradebook.db or "
            "postgresql+psycopg://me@host/gradebook (in a password, write %40 for @ and %2F for /)"
        ) from None
    if file and (not parsed.database or ":memory:" in parsed.database or parsed.query.get("mode") == "memory"):
        raise GradebookError(
            f"the gradebook's db_url is {url!r}, which keeps nothing once the call ends; give the path of a file, e.g. "
            "sqlite:////home/me/gradebook.db (four slashes: it begins at the top)"
        )
    return parsed


def _make_folder(parsed):
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)


_OPEN: dict[tuple, Engine] = {}  # of this process


def _engine(url, patience):
    if (url, patience) not in _OPEN:
        backend = make_url(url).get_backend_name()
        _OPEN[url, patience] = ENGINES.get(backend, _any_engine)(url, patience)
    return _OPEN[url, patience]


def close_connections() -> None:
    """Close what is kept open between transactions; the next one opens it again."""
    while _OPEN:
        _OPEN.popitem()[1].dispose()


@contextlib.contextmanager
def kept_open(url: str) -> Iterator[None]:
    """While it lasts, many transactions cost less: a connection that does nothing keeps SQLite's file open.

    Whoever closes such a file last writes its log (WAL) back into it, which takes longer than a small transaction.
    Nothing else depends on it: each transaction still opens what lies at the URL then, for others nothing is locked.
    """
    with contextlib.ExitStack() as kept:
        if parsed_url(url).get_backend_name() == "sqlite":
            with contextlib.suppress(SQLAlchemyError):  # whoever needs it says so
                kept.enter_context(_engine(url, PATIENCE).connect())
        yield


def _any_engine(url, patience):
    return create_engine(url, pool_pre_ping=True)


def _sqlite_engine(url, patience):
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


OUR_LOCK = 0x746F726368  # any number; PostgreSQL keeps these locks apart by database


def _postgresql_engine(url, patience):
    engine = create_engine(url, pool_pre_ping=True, pool_size=1)

    @event.listens_for(engine, "begin")
    def _(connection):
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(1000 * patience)}")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({OUR_LOCK})")  # who grades waits here for another

    return engine


ENGINES = {"sqlite": _sqlite_engine, "postgresql": _postgresql_engine}


def keep_writers_out(connection: Connection, *tables: str) -> None:
    """Until the end of the transaction nobody else changes these tables; everybody may read them.

    A transaction of SQLite has kept everybody's changes out since it began.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE")


def _is_busy(error):
    return isinstance(error, OperationalError) and any(
        word in str(error.orig) for word in ("locked", "busy", "deadlock", "lock timeout", "starting up")
    )


def _is_cut(error):
    return isinstance(error, DBAPIError) and error.connection_invalidated


def sentence(url: str, error: Exception) -> str:
    """What kept the gradebook at `url` from being used, and what to do."""
    parsed, shown = make_url(url), shown_url(url)
    if isinstance(error, (NoSuchModuleError, ModuleNotFoundError)):
        return f"the gradebook {shown} needs a driver ({error}); for PostgreSQL: pip install 'torch-lectures[postgres]'"
    said = " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())
    for secret in filter(None, [parsed.password, *_passwords_asked(parsed).values()]):
        said = said.replace(str(secret), "***")
    for sign, meaning in MEANINGS.items():
        if sign in said:
            return f"the gradebook {shown} {meaning}; nothing that was graded is lost"
    return f"the gradebook {shown} cannot be used now: {said[:LONGEST_SAID]}; nothing that was graded is lost"


LONGEST_SAID = 300  # characters of what a database says
BUSY = "is in use by another program (formgrader, a second run): close it and call again"
MEANINGS = {
    "locked": BUSY,
    "disk is full": "has no room left on its disk: free some space and call again",
    "disk I/O error": "cannot be written to its disk (full, or failing): look at it and call again",
    "unable to open": "cannot be opened: look at the folder and its permissions",
    "readonly": "is read-only: make it writable and call again",
    "not a database": "is no database: move the file away, or name another one by db_url",
    "malformed": "is damaged: put a copy of it back",
    "no such column": "was made by another version of nbgrader: copy it, then call `nbgrader db upgrade`",
    # PostgreSQL
    "lock timeout": BUSY,
    "authentication failed": "refuses this user or password: look at db_url, PGPASSWORD and ~/.pgpass",
    "no password supplied": "asks for a password: set PGPASSWORD, or write it into ~/.pgpass",
    'role "': "does not know this user: look at db_url, or make it, `createuser NAME`",
    'database "': "does not exist on its server: make it, `createdb NAME`",
    "No space left": "has no room left on its server's disk: free some space and call again",
    "permission denied": "does not let this user make tables: make a database of its own, `createdb -O USER NAME`",
    "does not exist": "was made by another version of nbgrader: copy it, then call `nbgrader db upgrade`",
    "starting up": "is not ready yet: its server has just been started; call again",
    "Connection refused": "does not answer: is its server running, and are host and port those of db_url?",
    "server closed the connection": "was cut off from us: look at its server and the network, and call again",
    "terminating connection": "was cut off from us: look at its server and the network, and call again",
}


def shown_url(url: str) -> str:
    """The URL as people may see it: a file's path, or without the password."""
    parsed = parsed_url(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        return parsed.database
    return parsed.update_query_dict(dict.fromkeys(_passwords_asked(parsed), "***")).render_as_string(hide_password=True)


def _passwords_asked(parsed):
    """The passwords after the question mark, which drivers of PostgreSQL take there, too."""
    return {name: value for name, value in parsed.query.items() if "password" in name.lower()}


def patient_url(url: str) -> str:
    """The URL by which nbgrader, too, waits for a locked SQLite file."""
    parsed = parsed_url(url)
    if parsed.get_backend_name() == "sqlite" and "timeout" not in parsed.query:
        parsed = parsed.update_query_dict({"timeout": str(int(PATIENCE * ATTEMPTS))})
    return parsed.render_as_string(hide_password=False)
