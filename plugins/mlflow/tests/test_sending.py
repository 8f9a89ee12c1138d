"""Sending to a server, and where nothing may be sent or no server is."""

import json
import shlex

import children
import pytest

from modelgauge import FunctionSUT, run_test
from modelgauge.config.settings import Settings
from modelgauge.errors import SettingsError
from modelgauge_mlflow.contents import parameters
from modelgauge_mlflow.sending import send
from modelgauge_mlflow.server import MLflowError

NOWHERE = "http://127.0.0.1:9"


def run(**settings):
    """A run, with these settings of the plugin."""
    made = Settings(of_plugins={"mlflow": settings} if settings else {})
    return run_test("demo_01", FunctionSUT("yes", lambda _: "Yes", version=1), settings=made)


@pytest.mark.parametrize("settings", [{}, {"send": False}, {"experiment": "mine"}])
def test_nothing_is_sent_unless_the_settings_say_so(recorder, monkeypatch, settings):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", recorder.address)
    assert run(**settings).counts.scored == 10
    assert recorder.requests == []


def test_a_server_that_is_down_is_a_warning_with_the_command_that_sends_the_run_later():
    with pytest.warns(UserWarning, match=f"The run was not sent to {NOWHERE}: ") as warned:
        record = run(send=True, tracking_uri=NOWHERE)
    assert record.counts.scored == 10
    assert str(warned[0].message).endswith(f"is kept. To send it: modelgauge mlflow {record.folder}")


def test_the_command_shows_what_is_wrong(tmp_path):
    record = run()
    command = shlex.split(f"modelgauge mlflow latest --tracking-uri {NOWHERE}")[1:]
    ended = children.run("-m", "modelgauge", *command, cwd=tmp_path)
    assert ended.returncode == 4
    assert f"modelgauge mlflow {record.folder}" in ended.stderr.replace(
        "run_data", str(tmp_path / "run_data")
    )


@pytest.mark.parametrize("settings", [{"sent": True}, {"send": "yes"}, {"experiment": 3}])
def test_a_setting_that_does_not_exist(settings):
    with pytest.raises(SettingsError, match=r"is no setting\. Known: send \(bool\), tracking_uri \(str\)"):
        send(run(), settings)


@pytest.mark.parametrize("address", ["", "sqlite:///mlflow.db", "http://", "http://me:secret@127.0.0.1:9"])
def test_an_address_that_is_none_is_never_shown(address):
    with pytest.raises(MLflowError, match="MLFLOW_TRACKING_URI") as caught:
        send(run(), {"tracking_uri": address})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("env", "login"),
    [
        ({}, None),
        ({"TOKEN": "abc"}, "Bearer abc"),
        ({"USERNAME": "me", "PASSWORD": "pw", "TOKEN": "abc"}, "Basic bWU6cHc="),
    ],
)
def test_a_login_goes_to_the_server_of_the_environment(recorder, monkeypatch, env, login):
    for name, value in {"URI": f"{recorder.address}/", **env}.items():
        monkeypatch.setenv(f"MLFLOW_TRACKING_{name}", value)
    recorder.answers = [(403, {}, {"error_code": "PERMISSION_DENIED", "message": "Not\nyours"})]
    with pytest.raises(MLflowError, match=r"403 Forbidden: .*PERMISSION_DENIED"):
        send(run(), {})
    assert [request.login for request in recorder.requests] == [login]


def test_a_login_goes_to_no_server_that_a_file_or_an_answer_names(recorder, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", NOWHERE)
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "abc")
    send(run(), {"tracking_uri": recorder.address})
    assert {request.login for request in recorder.requests} == {None}
    monkeypatch.setenv("MLFLOW_TRACKING_URI", recorder.address)
    recorder.requests.clear()
    recorder.answers = [(302, {"Location": f"{recorder.address}/elsewhere"}, {})]
    send(run(), {})
    assert [(request.path[:5], request.login) for request in recorder.requests][:3] == [
        ("/api/", "Bearer abc"),
        ("/else", None),
        ("/api/", "Bearer abc"),
    ]


def test_files_are_sent_last_and_items_on_request(recorder):
    for items, names in [(False, ["record.json"]), (True, ["record.json", "items.jsonl"])]:
        recorder.requests.clear()
        record = run()
        assert send(record, {"tracking_uri": recorder.address, "items": items}).startswith(recorder.address)
        files = [request for request in recorder.requests if request.method == "PUT"]
        assert [file.path.rpartition("/")[2] for file in files] == names
        assert files == recorder.requests[-len(files) :]
        assert [file.body for file in files] == [(record.folder / name).read_bytes() for name in names]


def test_files_that_a_server_does_not_take(recorder):
    info = {"run_id": "r", "artifact_uri": "s3://bucket/1"}
    recorder.answers = [
        (200, {}, {"experiment_id": "1"}),
        (200, {}, {"runs": [{"info": info, "data": {}}]}),
    ]
    with pytest.raises(MLflowError, match=r"numbers were sent, but no files: .* s3://bucket/1"):
        send(run(), {"tracking_uri": recorder.address})
    assert json.loads(recorder.requests[-1].body)["status"] == "FINISHED"


def test_many_parameters_go_in_several_requests(recorder):
    record = run().replaced(hyperparameters={f"p{number}": number for number in range(250)})
    send(record, {"tracking_uri": recorder.address})
    sent = [
        json.loads(request.body).get("params")
        for request in recorder.requests
        if request.path.endswith("log-batch")
    ]
    assert [len(one) for one in sent if one] == [100, 100, len(parameters(record)) - 200]
