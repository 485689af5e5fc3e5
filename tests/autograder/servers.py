"""A PostgreSQL server of a test's own: in a temporary folder, on a socket that nobody else can enter, gone afterwards."""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

PLACES = ("/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt/postgresql")
OWNER = "postgres_of_tests"
START_SECONDS = 60


def programs():
    """The folder of initdb and postgres, of the newest version there is; None without a server."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    for place in map(Path, PLACES):
        places += (
            sorted(place.glob("*/bin"), key=lambda folder: float(folder.parent.name or 0)) if place.exists() else []
        )
    whole = [folder for folder in places if (folder / "initdb").exists() and (folder / "postgres").exists()]
    return whole[-1] if whole else None


class Server:
    """One running server; its owner has all rights, `grader` those on databases of its own."""

    def __init__(self, folder, bin, account):
        self.folder, self.bin, self.account, self.process = folder, bin, account, None
        self.password = secrets.token_hex(8)

    def run(self, program, *arguments):
        subprocess.run(
            [self.bin / program, *arguments], check=True, capture_output=True, cwd=self.folder, **self.account
        )

    def make(self):
        secret = Path(self.folder, "secret")
        secret.write_text(self.password)
        if self.account:
            os.chown(secret, self.account["user"], self.account["group"])
        self.run(
            "initdb", "--pgdata=data", f"--username={OWNER}", f"--pwfile={secret}", "--auth=scram-sha-256", "--no-sync",
            "--encoding=UTF8", "--locale=C",
        )  # fmt: skip

    def start(self):
        settings = (
            "fsync=off",
            "listen_addresses=",
            f"unix_socket_directories={self.folder}",
            "log_destination=stderr",
        )
        options = [part for setting in settings for part in ("-c", setting)]
        with open(Path(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [self.bin / "postgres", "-D", "data", *options], cwd=self.folder, stdout=log, stderr=log,
                start_new_session=True, **self.account,
            )  # fmt: skip
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                return self.ask("postgres", "select 1")
            except Exception:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise AssertionError(Path(self.folder, "log").read_text()) from None
                time.sleep(0.05)

    def stop(self):
        """As an administrator stops it: every connection is cut."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(30)

    def ask(self, database, question, user=OWNER):
        """The rows of an answer."""
        import psycopg

        with psycopg.connect(host=self.folder, user=user, password=self.password, dbname=database) as connection:
            connection.autocommit = True
            answer = connection.execute(question)
            return answer.fetchall() if answer.description else None

    def new_database(self):
        """The URL of a new empty database, whose owner is `grader`."""
        name = f"book_{secrets.token_hex(4)}"
        if not self.ask("postgres", "select 1 from pg_roles where rolname = 'grader'"):
            self.ask("postgres", f"create role grader login password '{self.password}'")
        self.ask("postgres", f"create database {name} owner grader")
        return f"postgresql+psycopg://grader:{self.password}@/{name}?host={self.folder}"

    def cut(self, database):
        """End every connection to a database; how many there were."""
        return len(
            self.ask(
                "postgres",
                f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{database}'",
            )
        )


@contextlib.contextmanager
def postgresql():
    """A running Server."""
    folder = tempfile.mkdtemp(prefix="pg", dir="/tmp")  # short: the path of a socket has 107 characters
    account = {}
    try:
        if os.geteuid() == 0:  # PostgreSQL does not run as root
            nobody = pwd.getpwnam("nobody")
            account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        server = Server(folder, programs(), account)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
