"""Sending of runs: one MLflow run for each run, found again by a tag and updated."""

import os
import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from modelgauge import TestRecord
from modelgauge.errors import SettingsError
from modelgauge_mlflow.contents import metrics, parameters, tags
from modelgauge_mlflow.server import MLflowError, Server

SETTINGS: Mapping[str, Any] = {"send": False, "tracking_uri": "", "experiment": "", "items": False}
"""Settings under `[plugin.mlflow]` in `modelgauge.toml`, with their defaults."""
_MOST = 100  # entries in one request


def checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the settings, and fill in the defaults.

    Raises:
        SettingsError: a key is unknown, or its value of another type.
    """
    for name, value in settings.items():
        if name not in SETTINGS or type(value) is not type(SETTINGS[name]):
            known = ", ".join(f"{key} ({type(default).__name__})" for key, default in SETTINGS.items())
            raise SettingsError(f"[plugin.mlflow]: {name} = {value!r} is no setting.", fix=f"Known: {known}.")
    return {**SETTINGS, **settings}


def send(record: TestRecord, settings: Mapping[str, Any]) -> str:
    """Send a run, or update what was sent before.

    Args:
        record: of the run.
        settings: where to, and what.

    Returns:
        The address of its page.

    Raises:
        SettingsError: a setting is wrong.
        MLflowError: the server cannot be reached, or refuses it.
    """
    chosen, env = checked(settings), os.environ
    again = shlex.join(["modelgauge", "mlflow", str(record.folder or record.run_id)])
    address = chosen["tracking_uri"] or env.get("MLFLOW_TRACKING_URI", "")
    server = Server(address, fix=f"The run is kept. To send it: {again}")
    name = chosen["experiment"] or env.get("MLFLOW_EXPERIMENT_NAME") or "modelgauge"
    experiment = _experiment(server, name)
    start = int(datetime.fromisoformat(record.run_timestamp).timestamp() * 1000)
    end = start + int((record.seconds or 0) * 1000)
    run = _find_or_create(server, experiment, record, start)
    info, before = run["info"], {parameter["key"] for parameter in run["data"].get("params", ())}
    run_id = info["run_id"]
    # MLflow keeps the first value of a parameter and the last of a metric or tag: what a run that is resumed needs.
    _log(
        server,
        run_id,
        "params",
        {key: value for key, value in parameters(record).items() if key not in before},
    )
    _log(server, run_id, "tags", tags(record))
    _log(server, run_id, "metrics", metrics(record), timestamp=end)
    status = "KILLED" if record.cancelled else "FAILED" if record.failure else "FINISHED"
    server.ask("runs/update", run_id=run_id, status=status, end_time=end)
    for file in ("record.json", "report.html", *(["items.jsonl"] if chosen["items"] else [])):
        if record.folder and (record.folder / file).is_file():
            server.store(info["artifact_uri"], record.folder / file)
    return f"{server.address}/#/experiments/{experiment}/runs/{run_id}"


def _experiment(server: Server, name: str) -> str:
    """Return the id of an experiment, creating it if it does not exist; several processes may do so at once."""
    try:
        return str(server.ask("experiments/create", name=name)["experiment_id"])
    except MLflowError as error:
        if "RESOURCE_ALREADY_EXISTS" not in error.problem:
            raise
    found = server.ask(f"experiments/get-by-name?experiment_name={quote(name, safe='')}")
    return str(found["experiment"]["experiment_id"])


def _find_or_create(server: Server, experiment: str, record: TestRecord, start: int) -> Any:
    wanted = f"tags.`modelgauge.run_id` = '{record.run_id}'"
    found = server.ask("runs/search", experiment_ids=[experiment], filter=wanted, max_results=1).get("runs")
    if found:
        return found[0]
    known = [{"key": "modelgauge.run_id", "value": record.run_id}]
    name = f"{record.test_uid} on {record.sut_name}"[:250]
    asked = {"experiment_id": experiment, "run_name": name, "start_time": start, "tags": known}
    return server.ask("runs/create", **asked)["run"]


def _log(server: Server, run_id: str, kind: str, values: Mapping[str, Any], **more: Any) -> None:
    entries = [{"key": key, "value": value, **more} for key, value in values.items()]
    for at in range(0, len(entries), _MOST):
        server.ask("runs/log-batch", run_id=run_id, **{kind: entries[at : at + _MOST]})
