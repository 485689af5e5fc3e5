"""placeholder"""
from dataclasses import dataclass
SCORE_FROM = "score_from_run"
@dataclass(frozen=True)
class Run:
    id: str = ""
    started: str = ""
    seed: int = 0
    device: str = "cpu"
    sandbox: str = ""
    workers: int = 1
    seconds: float = 0.0
