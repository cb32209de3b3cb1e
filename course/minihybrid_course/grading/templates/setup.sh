#!/usr/bin/env bash
set -e
apt-get update -qq
apt-get install -y -qq bubblewrap libseccomp2 python3 python3-venv
python3 -m venv /autograder/venv
/autograder/venv/bin/python -m pip install -q -e /autograder/source ipython nbformat pyseccomp
