"""When the tests run the chapters, progress bars stay away: they depend on the time."""
import os

os.environ["TQDM_DISABLE"] = "1"
