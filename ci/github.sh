#!/usr/bin/env bash
# The step of action.yml: the diff as annotations, summary, files and one comment; it ends with the diff's exit code.
set -euo pipefail

out=$(mktemp -d "${RUNNER_TEMP:?}/flinkcompat-out.XXXXXX")  # each step of a job has its own files
number=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1])).get("pull_request", {}).get("number", ""))' "$GITHUB_EVENT_PATH")

# What gh said of a failure goes to the log; the most usual cause is named beside it.
warn() {
  echo "::warning::$1; where it says 403: permissions: pull-requests: write is needed, which a fork's token never has"
}

# The pull request's comment becomes the file $out/comment.md; its first line tells the one of before.
comment() {
  if [ "${COMMENT:-}" != true ] || [ -z "$number" ]; then return; fi
  local comments="repos/$GITHUB_REPOSITORY/issues/$number/comments" marker written
  marker=$(head -n 1 "$out/comment.md")
  written=$(MARKER="$marker" gh api --paginate "$comments" --jq '.[] | select(.body | startswith(env.MARKER)) | .id' | head -n 1) || written=failed
  if [ "$written" = failed ]; then
    warn "the comments of the pull request cannot be read, gh says why above"
  elif [ -n "$written" ]; then
    gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$written" --field "body=@$out/comment.md" ||
      warn "the comment cannot be changed, gh says why above"
  elif [ "${1:-}" != only-changed ]; then
    gh api --silent --method POST "$comments" --field "body=@$out/comment.md" ||
      warn "the comment cannot be written, gh says why above"
  fi
}

# Nothing was judged, for what $out/said.txt says: a comment of before must not stand as if it were of this commit.
give_up() {
  local project said
  said=$(sed 's/^flinkcompat: //' "$out/said.txt")
  said=${said//'%'/%25}; said=${said//$'\r'/%0D}; said=${said//$'\n'/%0A}
  echo "::error::could not be judged: $said"
  project=$(python3 "$(dirname "$0")/project_file.py" "${FOLDER:-.}")
  {
    printf '<!-- flinkcompat diff %s -->\n### Flink SQL jobs: could not be judged\n\n' "$project"
    sed 's/^/    /' "$out/said.txt"
  } >"$out/comment.md"
  cat "$out/comment.md" >>"$GITHUB_STEP_SUMMARY"
  comment only-changed
  echo "exit-code=$1" >>"$GITHUB_OUTPUT"
  exit "$1"
}

here=$PWD
if ! cd "${FOLDER:-.}" 2>/dev/null; then
  echo "flinkcompat: the input folder names no folder of the repository" >"$out/said.txt"
  give_up 2
fi
arguments=(diff --format github
  --output "sarif=$out/flinkcompat.sarif" --output "markdown=$out/comment.md" --output "json=$out/report.json")
if [ -n "${AGAINST:-}" ]; then arguments+=(--against "$AGAINST"); fi
if [ -n "${ENGINE:-}" ]; then arguments+=(--engine "$ENGINE"); fi
if [ -n "${FAIL_ON:-}" ]; then arguments+=(--fail-on "$FAIL_ON"); fi

code=0
flinkcompat "${arguments[@]}" 2>"$out/said.txt" || code=$?
cat "$out/said.txt" >&2
if [ ! -f "$out/comment.md" ]; then
  cd "$here"
  give_up "$code"
fi
{
  echo "exit-code=$code"
  echo "sarif=$out/flinkcompat.sarif"
  echo "report=$out/report.json"
} >>"$GITHUB_OUTPUT"
cat "$out/comment.md" >>"$GITHUB_STEP_SUMMARY"
comment
exit "$code"
