"""The errors of the autograder.

    AutograderError              one sentence: what was given, what was expected, what to do
    ├── UsageError               wrong use, or refused; the command line exits with 2
    │   ├── UnknownLecture       no such lecture in solutions/
    │   └── Refused              possible, but unsafe without an explicit word (--trust-code)
    ├── CourseError              the course itself is inconsistent: exercises.py, a notebook, course/
    ├── GradebookError           the gradebook cannot be read or written now
    ├── StorageError             a file of ours cannot be written or read: the disk is full, the folder is read-only
    └── EngineError              our own failure while grading one submission; its state is "error"

What a student can cause is never an exception but a value: a Verdict, or the state of a Submission.
"""


class AutograderError(Exception):
    """Any error that the autograder raises on purpose; its text is fit to be shown as it is."""

    def _render_traceback_(self):
        """By IPython, in a notebook: there the typing is at fault, and our code below it says nothing."""
        return [str(self)]


class UsageError(AutograderError):
    """The call cannot be carried out as given."""


class UnknownLecture(UsageError):
    """There is no lecture of that name."""


class Refused(UsageError):
    """Refused for safety; the message names the option that allows it."""


class CourseError(AutograderError):
    """The course's own files contradict each other."""


class GradebookError(AutograderError):
    """The gradebook is locked, full or unreadable; nothing that was graded is lost."""


class StorageError(AutograderError):
    """A file of ours cannot be written, or holds something else; nothing that was graded is lost."""


class EngineError(AutograderError):
    """Grading one submission failed for a reason that is ours, not the student's."""
