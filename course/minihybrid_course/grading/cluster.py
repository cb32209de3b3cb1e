"""Grade on several machines: the grader of grade.py, its work dealt out by dask.distributed.

    python -m minihybrid_course.grading.cluster submissions --assignment 1 --scheduler tcp://teacher:8786

Workers are started by hand or by the cluster, each in this repository, one thread each:
`dask worker tcp://teacher:8786 --nthreads 1`. All of them see the folders of submissions and
marks under the same path. A mark is a file there, written whole as soon as it is known: so
one that a lost worker had finished is found and not made again, and what it had begun is
begun anew by another.
"""

from contextlib import contextmanager

from distributed import Client

from minihybrid_course.grading.grade import main, options
from minihybrid_course.grading.sandbox import describe_isolation
from minihybrid_course.grading.sources import ClassroomError

WAIT_S = 20  # for the scheduler, and for a first worker


class Pool:
    """A cluster as what grade.py hands its work to."""

    def __init__(self, client):
        self.executor = client.get_executor()

    def submit(self, function, *arguments):
        """A future, as `concurrent.futures` knows it."""
        return self.executor.submit(function, *arguments)

    def shutdown(self, wait=True, cancel_futures=False):
        """End; what is cancelled is what has not begun."""
        self.executor.shutdown(wait and not cancel_futures)


@contextmanager
def there(address):
    """(the cluster, what isolates students' code on its machines)."""
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
