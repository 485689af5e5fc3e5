"""What one kernel may use."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of one kernel and everything it starts, except where a line says otherwise.

    memory_mib: beyond what the warm process already holds; shared pages count once.
    processes: processes and threads.
    cpu_seconds: of all processes together.
    file_mib: one file.
    scratch_mib, scratch_files: all files that exist at one time, names or not.
    open_files: descriptors of one process.
    message_mib: one message to the client; a longer one closes the connection.
    messages_waiting: messages a client holds before it reads them, per channel.
    """

    memory_mib: int = 2048
    processes: int = 64
    cpu_seconds: int = 600
    file_mib: int = 64
    scratch_mib: int = 256
    scratch_files: int = 10_000
    open_files: int = 512
    message_mib: int = 16
    messages_waiting: int = 64


DEFAULT = Limits()
