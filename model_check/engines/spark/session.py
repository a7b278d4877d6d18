"""The Spark session of an exploration: local by default, quiet, listening on the loopback interface only."""

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kspec.model_check.core.model import Model
from kspec.model_check.extras import need

LOOPBACK = "127.0.0.1"
ATTEMPTS = 4
"""The number of failures of a task before the exploration fails: a local master's own default is once."""

MOST_IN_A_LEVEL = 1 << 14
"""The driver itself explores a level of up to this many states faster than a Spark job does."""

_LOCAL = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?$")
_MASTER = re.compile(r"local(-cluster)?(\[.*\])?|spark://[^/:\s]+:\d+(,[^/:\s]+:\d+)*|k8s://\S+|yarn")
_LOGGING = Path(__file__).with_name("log4j2.properties")
_LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""With a local master, Java only passes bytes on for a short time: its own optimization would take cores from the tasks."""


class SparkError(RuntimeError):
    """Spark cannot be started, or cannot do what is asked."""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """The place where Spark runs, the number of partitions in which states are kept, and the folder to which they are
    spilled.

    `conf` are settings by Spark's own names. `tables` is a folder for the state graph as tables. `tell` is called with a
    sentence for people that says where Spark's own pages are. `driver_states`: the driver itself explores the first levels
    of up to this many states; with 0, none.
    """

    master: str | None = None
    partitions: int | None = None
    spill: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    tell: Callable[[str], None] | None = None
    tables: str | None = None
    driver_states: int = MOST_IN_A_LEVEL


def is_local(master: str) -> bool:
    """Whether driver and workers are on this machine, and share its files."""
    return master.startswith("local")


def check_master(master: str) -> None:
    """Refuse what is no master of Spark, `SparkError`: Java would answer with a trace, after some seconds."""
    if _MASTER.fullmatch(master) is None:
        raise SparkError(f"--master {master}: expected local, local[N], local[*], spark://HOST:PORT, k8s://URL or yarn")
    if master == "yarn" and not {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & os.environ.keys():
        raise SparkError("--master yarn: set HADOOP_CONF_DIR or YARN_CONF_DIR to the folder of the cluster's configuration")


@contextmanager
def spark_context(settings: SparkSettings) -> Iterator[Any]:
    """Spark's context: the one that runs already (in a notebook, a test), else a new one that is stopped again.

    Raises `SparkError` for a Java, a master or a setting that does not fit, `MissingExtraError` without PySpark.
    """
    need(("pyspark", "pyarrow"), "engine spark", extra="spark")
    from pyspark import SparkContext  # noqa: PLC0415 (takes half a second, and is an extra)

    running = SparkContext._active_spark_context
    if running is not None:
        if settings.master is not None and _with_attempts(settings.master) != running.master:
            raise SparkError(f"Spark runs already, with master {running.master}; leave --master {settings.master} out")
        yield running
        return
    context = _start(settings)
    if settings.tell and context.uiWebUrl:
        settings.tell(f"Spark's own pages: {context.uiWebUrl}")
    try:
        yield context
    finally:
        context.stop()


def _start(settings: SparkSettings) -> Any:
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    master = settings.master or (None if submitted else "local[*]")
    configuration = _configuration(settings, master)
    if "spark.master" in configuration:
        check_master(configuration["spark.master"])
    if not submitted:
        _prepare_java()
    if master is not None and is_local(master):
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK  # Spark's pages listen on this address
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf()
    for name, value in configuration.items():
        conf.set(name, value)
    try:
        return SparkContext(conf=conf)
    except (Py4JError, PySparkException, ValueError) as error:
        reason = next((line for line in str(error).splitlines() if "Exception:" in line), str(error).splitlines()[0])
        raise SparkError(f"Spark does not start: {reason.split('Exception:')[-1].strip()}") from error


def _configuration(settings: SparkSettings, master: str | None) -> dict[str, str]:
    """Spark's settings: ours, then what was asked for."""
    configuration = {
        "spark.app.name": "kspec",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.reuse": "true",
        "spark.python.use.daemon": "true",
        "spark.task.maxFailures": str(ATTEMPTS),
        "spark.shuffle.compress": "false",  # messages are compressed already
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
    }
    if master is not None:
        configuration["spark.master"] = _with_attempts(master)
        if is_local(master):
            configuration |= {
                "spark.driver.host": LOOPBACK,
                "spark.driver.bindAddress": LOOPBACK,
                "spark.driver.extraJavaOptions": f"{configuration['spark.driver.extraJavaOptions']} {_LIGHT}",
            }
        else:
            # Compiled loops are kept in the executor's working folder: it may not have a home folder.
            configuration["spark.executorEnv.NUMBA_CACHE_DIR"] = "kspec-compiled"
    for name in settings.conf:
        if not name.startswith("spark."):
            raise SparkError(f"--conf {name}: Spark's settings begin with spark.")
    return configuration | dict(settings.conf)


def _with_attempts(master: str) -> str:
    """A local master that tries a task again, as every other master does: `local[2]` is `local[2,4]`."""
    found = _LOCAL.match(master)
    if found is None or found[3]:
        return master
    return f"local[{found[2] or 1},{ATTEMPTS}]"


def _prepare_java() -> None:
    """Let PySpark start Java through a launcher of ours."""
    from kspec.model_check.engines.spark.java import LAUNCHER_HOME, NoJavaError, find_java, launched  # noqa: PLC0415

    if os.environ.get("JAVA_HOME") == str(LAUNCHER_HOME):
        return
    try:
        os.environ.update(launched(find_java()))
    except NoJavaError as error:
        raise SparkError(str(error)) from error


def send_files(context: Any, model: Model) -> None:
    """Let the worker processes have the files that the model's rules are in."""
    for file in model.files:
        context.addPyFile(file)


def collected(tasks: Any) -> list[Any]:
    """The results of tasks; `SparkError` says why one failed. An interrupt ends the job first.

    The job has a thread of its own, with a connection of its own to Java: Spark's handler of Ctrl-C cannot cancel a job on
    the connection on which the interrupted thread waits for an answer.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415

    outcome: Future[list[Any]] = Future()

    def collect() -> None:
        try:
            outcome.set_result(tasks.collect())
        except BaseException as error:
            outcome.set_exception(error)

    job = threading.Thread(target=collect, name="job of Spark", daemon=True)
    job.start()
    try:
        return outcome.result()
    except Py4JJavaError as error:
        raise SparkError(_reason_of(error)) from error
    except KeyboardInterrupt:
        while job.is_alive():
            tasks.ctx.cancelAllJobs()
            job.join(timeout=1)
        raise


def _reason_of(error: Any) -> str:
    """The reason why a job failed, in one line: the last line of a Python traceback, if there is one."""
    text = str(error.java_exception.getMessage()) if error.java_exception else str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    python = [line for line in lines if line and line[0].isalpha() and "Error" in line.split(":")[0]]
    return f"a task of Spark failed: {(python or lines)[-1 if python else 0]}"
