"""Read the fields of a job's payload. A missing or malformed field is Fatal: no retry helps."""

from uuid import UUID

from postroom.core.errors import Fatal
from postroom.core.jobs.job import Job


def uuid_field(job: Job, name: str) -> UUID:
    try:
        return UUID(str(job.payload[name]))
    except (KeyError, ValueError):
        raise Fatal(f"the payload of {job.type} needs {name}, a UUID; it was enqueued wrongly") from None


def text_field(job: Job, name: str) -> str:
    value = job.payload.get(name)
    if not isinstance(value, str) or not value:
        raise Fatal(f"the payload of {job.type} needs {name}, a text; it was enqueued wrongly")
    return value
