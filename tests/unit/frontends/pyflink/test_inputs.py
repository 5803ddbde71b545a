"""An input goes by its name only while that gives the same: what a program did before to what it asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Outcome, Side, check
from airflow_flinkcompat.frontends.pyflink.reader import local_texts

HEAD = """\
import argparse, json, os, subprocess, sys
from pyflink.table import EnvironmentSettings, TableEnvironment
t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
settings = json.load(open("settings.json"))
parser = argparse.ArgumentParser()
parser.add_argument("--topic")
"""
TAIL = """
t_env.execute_sql(f'''CREATE TABLE visits (page STRING, seconds INT) WITH ('connector' = 'kafka', 'topic' = '{topic}',
    'properties.bootstrap.servers' = 'kafka:9092', 'format' = 'json')''')
t_env.execute_sql("CREATE TABLE totals (page STRING, seconds INT) WITH ('connector' = 'print')")
t_env.execute_sql("INSERT INTO totals SELECT page, SUM(seconds) FROM visits GROUP BY page")
"""
CHANGED = {
    "an element is set": "settings['topic'] = 'X'\ntopic = settings['topic']",
    "a dictionary is updated": "settings.update(topic='X')\ntopic = settings['topic']",
    "a default is put in": "settings.setdefault('topic', 'X')\ntopic = settings['topic']",
    "an element is taken out": "settings.pop('X')\ntopic = settings.get('topic', 'visits')",
    "a list is added to": "settings['topics'].append('X')\ntopic = ';'.join(settings['topics'])",
    "under another name": "part = settings['kafka']\npart['topic'] = 'X'\ntopic = settings['kafka']['topic']",
    "in a function": "def put(into): into['topic'] = 'X'\nput(settings)\ntopic = settings['topic']",
    "in a loop": "for key in settings:\n    settings[key] = 'X'\ntopic = settings['topic']",
    "variables out of a file": "from dotenv import load_dotenv\nload_dotenv('X.env')\ntopic = os.environ['TOPIC']",
    "a default variable": "os.environ.setdefault('TOPIC', 'X')\ntopic = os.environ['TOPIC']",
    "another folder": "os.chdir('/X')\ntopic = open('topic.txt').read()",
    "a process": "subprocess.run(['fetch', 'X', 'topic.txt'])\ntopic = open('topic.txt').read()",
    "a file is written": "open('topic.txt', 'w').write('X')\ntopic = open('topic.txt').read()",
    "arguments of its own": "topic = parser.parse_args(['--topic', 'X']).topic",
    "some arguments of its own": "given, _ = parser.parse_known_args(['--topic', 'X'])\ntopic = given.topic",
    "a namespace": "topic = parser.parse_args(namespace=argparse.Namespace(topic='X')).topic",
    "a default of all": "p = argparse.ArgumentParser(argument_default='X')\n"
    "p.add_argument('--topic')\ntopic = p.parse_args().topic",
    "the command line": "sys.argv[1] = 'X'\ntopic = sys.argv[1]",
    "more of a command line": "sys.argv.append('--topic=X')\ntopic = parser.parse_args().topic",
    "an encoding": "topic = open('topic.txt', encoding='X').read()",
    "a hook": "topic = json.load(open('topic.json'), object_hook=lambda found: found['X'])",
    "another profile": "import boto3\nboto3.setup_default_session(profile_name='X')\n"
    "topic = boto3.client('ssm').get_parameter(Name='topic')['Parameter']['Value']",
}


def side(body: str, word: str, engine: str = "flink") -> Side:
    return Side(HEAD + body.replace("X", word) + TAIL, engine=engine, language="python", source="job.py")


@pytest.mark.parametrize("body", CHANGED.values(), ids=CHANGED)
def test_another_value_done_to_the_surroundings_is_never_the_same(body: str) -> None:
    assert check(side(body, "old"), side(body, "new")).outcome is not Outcome.COMPATIBLE


@pytest.mark.parametrize(
    "body",
    [
        "topic = settings['topic']",
        "topic = settings['kafka'].get('topic', 'visits').strip()",
        "from dotenv import load_dotenv\nload_dotenv()\ntopic = os.environ['TOPIC']",
        "import logging\nlogging.basicConfig(level='INFO')\nlogging.info(settings)\ntopic = os.environ.get('TOPIC')",
        "given, _ = parser.parse_known_args(sys.argv[1:])\ntopic = given.topic",
        "os.makedirs(os.environ['FOLDER'])\ntopic = open('topic.txt').read()",
        "from datetime import datetime\nprint(datetime.now().isoformat())\ntopic = settings['topic']",
    ],
)
def test_the_same_done_to_the_surroundings_leaves_the_same_name(body: str) -> None:
    assert check(side(body, ""), side(body, "")).outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize(("engine", "outcome"), [("flink", Outcome.UNKNOWN), ("vvr", Outcome.COMPATIBLE)])
def test_a_value_under_another_name_may_be_the_same(engine: str, outcome: Outcome) -> None:
    body = "topic = os.environ['X']"
    assert check(side(body, "TOPIC", engine), side(body, "VISITS", engine)).outcome is outcome


def test_a_file_is_read_to_its_end_once() -> None:
    once, twice = (side(f"file = open('t.txt')\n{read}topic = file.read()", "") for read in ("", "file.read()\n"))
    assert check(once, twice).outcome is Outcome.UNKNOWN


def test_a_file_is_found_beside_the_program_whichever_way_a_condition_turns_out(tmp_path: Path) -> None:
    text = "import os\nif os.environ.get('LOCAL'):\n    topic = open('topic.txt').read()\n"
    (tmp_path / "topic.txt").write_text("visits")
    assert local_texts(tmp_path / "job.py", text, {}) == {"topic.txt": "visits"}


def test_a_file_elsewhere_is_the_one_that_is_handed_in(tmp_path: Path) -> None:
    body = "topic = json.load(open('/etc/job/p.json'))[0]['topic']"
    given = local_texts(tmp_path / "job.py", HEAD + body, {}, {"/etc/job/p.json": '[{"topic": "visits"}]'})
    read = Side(HEAD + body + TAIL, engine="flink", language="python", files=given)
    assert "'visits'" in read.parsed.statements[0].text
