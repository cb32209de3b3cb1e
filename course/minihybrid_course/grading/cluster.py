"""Grade on several machines: runs grade.py's work with dask.distributed.

    python -m minihybrid_course.grading.cluster submissions --assignment 1 --scheduler tcp://teacher:8786

Workers are started by hand or by the cluster, each in this repository, one thread each:
`dask worker tcp://teacher:8786 --nthreads 1`. All of them access the folders of submissions
and marks under the same path. A mark is a file there, written atomically as soon as it's
known: if a worker is lost, its finished marks are reused, and another worker restarts its
unfinished ones.
"""

from contextlib import contextmanager

from distributed import Client

from minihybrid_course.grading.grade import main, options
from minihybrid_course.grading.sandbox import describe_isolation
from minihybrid_course.grading.sources import ClassroomError

WAIT_S = 20  # timeout for the scheduler, and for a first worker


class Pool:
    """A cluster with the interface of an executor, for grade.py."""

    def __init__(self, client):
        self.executor = client.get_executor()

    def submit(self, function, *arguments):
        """Submit a call; return a future as in `concurrent.futures`."""
        return self.executor.submit(function, *arguments)

    def shutdown(self, wait=True, cancel_futures=False):
        """Shut down; `cancel_futures` cancels work that hasn't started."""
        self.executor.shutdown(wait and not cancel_futures)


@contextmanager
def there(address):
    """Return (the cluster, the isolation of students' code on its machines)."""
    try:
        client = Client(address, timeout=WAIT_S)
    except OSError as error:
        raise ClassroomError(f"no scheduler answers at {address} ({error}); start one") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=WAIT_S)
        except TimeoutError:
            raise ClassroomError(
                f"{address} has no workers; start `dask worker {address}`"
            ) from None
        answers = client.run(describe_isolation)
        yield (
            Pool(client),
            list(dict.fromkeys(s for sentences in answers.values() for s in sentences)),
        )


if __name__ == "__main__":
    parser = options()
    parser.add_argument("--scheduler", required=True, help="such as tcp://teacher:8786")
    args = parser.parse_args()
    main(args, there(args.scheduler))
