import contextlib
import dataclasses
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.config.run_options import RunOptions
from modelgauge.config.settings import (
    Settings,
    find_settings_file,
    list_settings,
    load_settings,
    names_a_file,
    read_toml,
)
from modelgauge.errors import InvalidOptionError, SettingsError


def write(folder, text):
    file = folder / "modelgauge.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_without_a_file_the_defaults_hold(tmp_path):
    settings = load_settings(tmp_path, env={})
    assert settings == Settings(data_dir=tmp_path / "run_data", secrets_file=tmp_path / "secrets.toml")
    assert settings.file is None


def test_paths_without_a_file_stay_relative_to_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_settings(env={}).data_dir == Path("run_data")


def test_the_file_is_found_upward_and_its_paths_start_there(tmp_path):
    file = write(
        tmp_path, 'data_dir = "results"\nplugins = ["mine.py", "pkg.module"]\n[judge]\nmodel = "acme/j"\n'
    )
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    settings = load_settings(below, env={})
    assert settings.file == find_settings_file(below) == file
    assert settings.data_dir == tmp_path / "results"
    assert settings.secrets_file == tmp_path / "secrets.toml"
    assert settings.plugins == (str(tmp_path / "mine.py"), "pkg.module")
    assert settings.judge == "acme/j"


def test_later_layers_win(tmp_path):
    write(tmp_path, "max_retries = 1\nconcurrency = 1\ntimeout = 1.5\n")
    env = {"MODELGAUGE_MAX_RETRIES": "2", "MODELGAUGE_CONCURRENCY": "2"}
    settings = load_settings(tmp_path, env=env, max_retries=3, concurrency=None)
    assert (settings.max_retries, settings.concurrency, settings.timeout) == (3, 2, 1.5)


def test_plugins_of_all_layers_add_up_each_once(tmp_path):
    write(tmp_path, 'plugins = ["one", "two"]\n')
    env = {"MODELGAUGE_PLUGINS": os.pathsep.join(["two", "three"])}
    settings = load_settings(tmp_path, env=env, plugins=["four", "one"])
    assert settings.plugins == ("one", "two", "three", "four")


def test_paths_of_the_environment_and_options_start_at_the_working_directory(tmp_path):
    write(tmp_path, "")
    below = tmp_path / "a"
    below.mkdir()
    assert load_settings(below, env={"MODELGAUGE_DATA_DIR": "d"}).data_dir == below / "d"
    assert load_settings(below, env={}, data_dir="d").data_dir == below / "d"
    assert load_settings(below, env={}, plugins=["x.py"]).plugins == (str(below / "x.py"),)


@pytest.mark.parametrize(("text", "value"), [("1", True), ("Yes", True), ("off", False), ("false", False)])
def test_switches_in_the_environment(tmp_path, text, value):
    assert load_settings(tmp_path, env={"MODELGAUGE_OFFLINE": text}).offline is value


def test_an_empty_variable_is_no_value(tmp_path):
    assert load_settings(tmp_path, env={"MODELGAUGE_JUDGE": " "}).judge is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ofline = true", "'ofline'.*Did you mean 'offline'"),
        ("[judge]\nmodle = 'x'", "'judge.modle'.*Did you mean 'judge.model'"),
        ("[nothing]\nx = 1", "no setting 'nothing'"),
        ("offline = 'maybe'", "'offline' cannot be 'maybe'. Give true or false"),
        ("concurrency = 0", "'concurrency' cannot be 0. Give a whole number of 1 or more"),
        ("concurrency = true", "'concurrency' cannot be True"),
        ("max_retries = 1.5", "'max_retries' cannot be 1.5"),
        ("timeout = nan", "'timeout' cannot be nan. Give a number of seconds above 0"),
        ("data_dir = ''", "'data_dir' cannot be ''. Give a path"),
        ("judge = 'x'", "no setting 'judge'. .*judge.model"),
        ("plugins = [1]", "'plugins' cannot be"),
        ("a = 1\nb = = 2", "line 2"),
    ],
)
def test_a_wrong_file_is_named_with_key_or_line(tmp_path, text, message):
    file = write(tmp_path, text)
    with pytest.raises(SettingsError, match=message) as caught:
        load_settings(tmp_path, env={})
    assert str(file) in str(caught.value)


def test_a_file_that_is_not_utf8_is_named_with_its_line(tmp_path):
    (tmp_path / "modelgauge.toml").write_bytes(b"# fine\n# \xff\n")
    with pytest.raises(SettingsError, match="line 2: this is not UTF-8"):
        load_settings(tmp_path, env={})


def test_a_byte_order_mark_is_passed_over(tmp_path):
    (tmp_path / "modelgauge.toml").write_bytes(b"\xef\xbb\xbfoffline = true\n")
    assert load_settings(tmp_path, env={}).offline


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """`foreign(text)`: a settings file of another user, in a folder above the working directory."""

    def write(text):
        file = tmp_path / "modelgauge.toml"
        file.write_text(text, encoding="utf-8")
        if os.geteuid():
            other = os.geteuid() + 1
            monkeypatch.setattr(os, "geteuid", lambda: other)
        else:  # whose files everybody accepts
            os.chown(file, 54321, -1)
        (tmp_path / "mine").mkdir()
        return file

    return write


@pytest.mark.skipif(os.name != "posix", reason="owners are POSIX")
@pytest.mark.parametrize(
    "text",
    [
        'plugins = ["theirs.py"]',
        'plugins = "theirs.py"',
        '[judge]\nmodel = "openai/gpt-4o?base_url=https%3A%2F%2Fevil.example"',
        '[judge]\nmodel = "https://evil.example"',
    ],
)
def test_code_and_addresses_in_a_file_of_another_user_are_refused(tmp_path, foreign, text):
    file = foreign(text)
    with pytest.raises(SettingsError, match="belongs to another user") as refused:
        load_settings(tmp_path / "mine", {})
    assert f"export MODELGAUGE_TRUSTED={tmp_path}" in refused.value.fix
    for trusted in (tmp_path, tmp_path.parent):
        env = {"MODELGAUGE_TRUSTED": os.pathsep.join(["/elsewhere", str(trusted)])}
        assert load_settings(tmp_path / "mine", env).file == file
    with pytest.raises(SettingsError, match="belongs to another user"):
        load_settings(tmp_path / "mine", {"MODELGAUGE_TRUSTED": str(tmp_path / "mine")})


@pytest.mark.skipif(os.name != "posix", reason="owners are POSIX")
def test_what_can_do_no_harm_in_a_file_of_another_user_is_read(tmp_path, foreign):
    foreign('concurrency = 3\noffline = true\n[judge]\nmodel = "openai/gpt-4o"')
    assert load_settings(tmp_path / "mine", {}).concurrency == 3


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_code_in_a_file_that_everybody_can_write_is_refused(tmp_path):
    file = tmp_path / "modelgauge.toml"
    file.write_text('plugins = ["mine.py"]', encoding="utf-8")
    file.chmod(0o646)
    with pytest.raises(SettingsError, match="can be written by everybody"):
        load_settings(tmp_path, {})
    file.chmod(0o664)
    assert load_settings(tmp_path, {}).plugins


def test_a_wrong_variable_is_named(tmp_path):
    with pytest.raises(SettingsError, match="MODELGAUGE_TIMEOUT cannot be 'soon'"):
        load_settings(tmp_path, env={"MODELGAUGE_TIMEOUT": "soon"})


def test_a_variable_that_is_all_but_a_setting_is_a_slip_and_others_are_not_ours(tmp_path):
    load_settings(tmp_path, env={"MODELGAUGE_LOG_LEVEL": "debug", "MODELGAUGE_API_KEY": "x"})
    with pytest.raises(SettingsError, match="Did you mean MODELGAUGE_DATA_DIR"):
        load_settings(tmp_path, env={"MODELGAUGE_DATADIR": "x"})


def test_wrong_options_are_refused(tmp_path):
    with pytest.raises(InvalidOptionError, match=r"'judg'.*Did you mean 'judge'"):
        load_settings(tmp_path, env={}, judg="x")
    with pytest.raises(InvalidOptionError, match="Option 'timeout' cannot be -1"):
        load_settings(tmp_path, env={}, timeout=-1)


def test_a_named_secrets_file_must_be_there(tmp_path):
    with pytest.raises(SettingsError, match=r"MODELGAUGE_SECRETS_FILE.*no file"):
        load_settings(tmp_path, env={"MODELGAUGE_SECRETS_FILE": "no.toml"})
    (tmp_path / "yes.toml").touch()
    assert load_settings(tmp_path, env={}, secrets_file="yes.toml").secrets_file == tmp_path / "yes.toml"


def test_the_table_of_settings_is_the_class():
    table = {info.name: info for info in list_settings()}
    assert set(table) == {each.name for each in dataclasses.fields(Settings)} - {
        "file",
        "servers",
        "of_plugins",
    }
    assert table["judge"].key == "judge.model"
    assert table["data_dir"].variable == "MODELGAUGE_DATA_DIR"
    assert all(info.meaning for info in table.values())


@given(st.binary(max_size=60))
def test_no_content_of_a_file_gets_past_the_error_tree(tmp_path_factory, content):
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_bytes(content)
    with contextlib.suppress(SettingsError):
        assert isinstance(read_toml(file), dict)


def test_what_is_said_of_calls_goes_by_the_names_of_a_runs_options():
    assert Settings().of_runs() == {}
    said = Settings(concurrency=3, max_retries=0, timeout=1.5)
    assert said.of_runs() == {"concurrency": 3, "max_retries": 0, "attempt_timeout": 1.5}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("JUDGE", " acme/j ", "acme/j"),
        ("MAX_RETRIES", "0", 0),
        ("CONCURRENCY", "1", 1),
        ("TIMEOUT", "0.5", 0.5),
        ("TIMEOUT", "2", 2.0),
        ("OFFLINE", " TRUE ", True),
        ("OFFLINE", "on", True),
        ("OFFLINE", "0", False),
        ("OFFLINE", "no", False),
        ("PLUGINS", os.pathsep.join([" a.b ", "", "c"]), ("a.b", "c")),
    ],
)
def test_texts_of_the_environment_become_values(tmp_path, name, text, value):
    settings = load_settings(tmp_path, env={f"MODELGAUGE_{name}": text})
    found = getattr(settings, name.lower())
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("judge", "", "Give a text that is not empty"),
        ("judge", 3, "Give a text that is not empty"),
        ("max_retries", -1, "Give a whole number of 0 or more"),
        ("max_retries", "x", "Give a whole number of 0 or more"),
        ("concurrency", 1.0, "Give a whole number of 1 or more"),
        ("timeout", 0, "Give a number of seconds above 0"),
        ("timeout", float("inf"), "Give a number of seconds above 0"),
        ("timeout", True, "Give a number of seconds above 0"),
        ("timeout", [1], "Give a number of seconds above 0"),
        ("offline", 1, "Give true or false"),
        ("data_dir", 3, "Give a path"),
        ("plugins", 3, "Give a list of files or modules"),
        ("plugins", [""], "Give a list of files or modules"),
    ],
)
def test_an_option_that_does_not_convert_says_what_is_wanted(tmp_path, name, given, told):
    with pytest.raises(InvalidOptionError, match=rf"^Option '{name}' cannot be .*{told}"):
        load_settings(tmp_path, env={}, **{name: given})


def test_a_home_folder_is_known_in_paths(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    settings = load_settings(tmp_path / "x", env={}, data_dir="~/data", plugins=["~/mine.py"])
    assert (settings.data_dir, settings.plugins) == (tmp_path / "data", (str(tmp_path / "mine.py"),))


@pytest.mark.parametrize(
    ("plugin", "is_file"),
    [("x.py", True), ("here/x", True), (f"here{os.sep}x", True), ("pkg.module", False), ("x.pyc", False)],
)
def test_a_plugin_with_a_folder_or_of_python_is_a_file(plugin, is_file):
    assert names_a_file(plugin) == is_file


@pytest.mark.skipif(os.name != "posix", reason="a working directory stays on Windows")
def test_a_working_directory_that_was_deleted_is_told(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(SettingsError, match="The working directory no longer exists"):
        load_settings(env={})
    assert load_settings(tmp_path, env={}).data_dir == tmp_path / "run_data"


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(SettingsError, match=f"{tmp_path.name} cannot be read: "):
        read_toml(tmp_path)


def test_a_known_key_of_a_section_is_one_wherever_it_is_written(tmp_path):
    write(tmp_path, 'judge.model = "a/b"\n')
    assert load_settings(tmp_path, env={}).judge == "a/b"
    write(tmp_path, '"judge.model" = "c"\n')
    assert load_settings(tmp_path, env={}).judge == "c"


def test_a_secrets_file_of_a_settings_file_starts_where_that_lies(tmp_path):
    write(tmp_path, 'secrets_file = "mine.toml"\n')
    (tmp_path / "below").mkdir()
    with pytest.raises(SettingsError, match=r"modelgauge\.toml, 'secrets_file': there is no file"):
        load_settings(tmp_path / "below", env={})
    (tmp_path / "mine.toml").touch()
    assert load_settings(tmp_path / "below", env={}).secrets_file == tmp_path / "mine.toml"


def test_tables_of_servers_stand_beside_the_settings(tmp_path):
    write(
        tmp_path,
        'offline = true\n[openai.servers.mine]\nbase_url = "http://localhost:1/v1"\nomit = ["seed"]\n',
    )
    settings = load_settings(tmp_path, env={})
    assert settings.offline
    assert settings.servers == {"openai": {"mine": {"base_url": "http://localhost:1/v1", "omit": ["seed"]}}}


def test_tables_of_plugins_stand_beside_the_settings(tmp_path):
    write(tmp_path, 'plugins = ["mine.py"]\n[plugin.mlflow]\nsend = true\n[plugin.mine]\nlist = [1]\n')
    settings = load_settings(tmp_path, env={})
    assert settings.of_plugins == {"mlflow": {"send": True}, "mine": {"list": [1]}}
    assert settings.plugins == (str(tmp_path / "mine.py"),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("plugin = 3\n", r"plugin\.NAME is not a table"), ("[plugin]\nmine = 3\n", r"under \[plugin\.mine\]")],
)
def test_a_table_of_a_plugin_that_is_none(tmp_path, text, problem):
    write(tmp_path, text)
    with pytest.raises(SettingsError, match=problem):
        load_settings(tmp_path, env={})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[openai]\nservers = 3\n", r"openai\.servers\.NAME is not a table"),
        ("[openai.servers]\nmine = 3\n", r"openai\.servers\.mine is not a table.*\[openai\.servers\.mine\]"),
        ("[openai]\nkey = 3\n", "no setting 'openai'"),
        ("[openai]\nkey = 3\n[openai.servers.mine]\n", "no setting 'openai'"),
    ],
)
def test_a_table_of_servers_that_is_none(tmp_path, text, problem):
    write(tmp_path, text)
    with pytest.raises(SettingsError, match=problem):
        load_settings(tmp_path, env={})


def test_settings_of_runs_have_types_of_their_options():
    types = {field.name: field.type for field in dataclasses.fields(Settings)}
    of_options = {field.name: field.type for field in dataclasses.fields(RunOptions)}
    named = {setting.name: setting.option for setting in list_settings() if setting.option}
    assert {name: types[name] for name in named} == {
        name: of_options[option] | None for name, option in named.items()
    }
