"""The project file of a folder, as reports call it: by its path from the root of the repository. For github.sh."""

import sys
from pathlib import Path

from airflow_flinkcompat.fleet.sides import name_from
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project.file import FILE_NAME, find_project_file
from airflow_flinkcompat.project.revisions import root_of

folder = Path(sys.argv[1])
try:
    found = find_project_file(folder)
except InputError:  # one that cannot be read; most are called so
    found = None
print(name_from(found or folder / FILE_NAME, root_of(folder if folder.is_dir() else Path())))
