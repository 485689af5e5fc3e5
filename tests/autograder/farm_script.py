"""Grades 40 slow submissions on one worker, for tests that interrupt it: farm_script.py SOLUTIONS OUT"""

import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import stub_tasks

from autograder import farm
from autograder.exercises import load_lecture
from autograder.records import Submission
from autograder.settings import load_settings

if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    settings = load_settings(sys.argv[2], solutions=sys.argv[1], workers=1)
    lecture = load_lecture("10_tiny", settings.solutions)
    died = f"{sys.argv[2]}/died".encode()  # the first one's worker dies, which nobody need hear of
    submissions = (Submission(f"s{i}", "10_tiny", "{}", {"die_once": died, "sleep": b"0.5"}) for i in range(40))
    try:
        for report in farm.graded(stub_tasks.grade, submissions, lecture, settings, 7):
            print(report.student, flush=True)
    except KeyboardInterrupt:
        print("stopped", flush=True)
