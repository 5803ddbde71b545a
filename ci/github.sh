#!/usr/bin/env bash
# The step of action.yml: the diff as annotations, summary, files and one comment; it ends with the diff's exit code.
set -euo pipefail

if ! cd "${FOLDER:-.}"; then
  echo "::error::the input folder names no folder of the repository"
  echo "exit-code=2" >>"$GITHUB_OUTPUT"
  exit 2
fi
out=$(mktemp -d "${RUNNER_TEMP:?}/flinkcompat-out.XXXXXX")  # each step of a job has its own files
arguments=(diff --format github
  --output "sarif=$out/flinkcompat.sarif" --output "markdown=$out/comment.md" --output "json=$out/report.json")
if [ -n "${AGAINST:-}" ]; then arguments+=(--against "$AGAINST"); fi
if [ -n "${ENGINE:-}" ]; then arguments+=(--engine "$ENGINE"); fi
if [ -n "${FAIL_ON:-}" ]; then arguments+=(--fail-on "$FAIL_ON"); fi

code=0
flinkcompat "${arguments[@]}" || code=$?
echo "exit-code=$code" >>"$GITHUB_OUTPUT"
if [ ! -f "$out/comment.md" ]; then  # bad input: what was said stands in the log
  exit "$code"
fi
echo "sarif=$out/flinkcompat.sarif" >>"$GITHUB_OUTPUT"
echo "report=$out/report.json" >>"$GITHUB_OUTPUT"
cat "$out/comment.md" >>"$GITHUB_STEP_SUMMARY"

# What gh said of a failure goes to the log; the most usual cause is named beside it.
warn() {
  echo "::warning::$1; where it says 403: permissions: pull-requests: write is needed, which a fork's token never has"
}

number=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1])).get("pull_request", {}).get("number", ""))' "$GITHUB_EVENT_PATH")
if [ "${COMMENT:-}" = true ] && [ -n "$number" ]; then
  comments="repos/$GITHUB_REPOSITORY/issues/$number/comments"
  marker=$(head -n 1 "$out/comment.md")
  written=$(MARKER="$marker" gh api --paginate "$comments" --jq '.[] | select(.body | startswith(env.MARKER)) | .id' | head -n 1) || written=failed
  if [ "$written" = failed ]; then
    warn "the comments of the pull request cannot be read, gh says why above"
  elif [ -n "$written" ]; then
    gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$written" --field "body=@$out/comment.md" ||
      warn "the comment cannot be changed, gh says why above"
  else
    gh api --silent --method POST "$comments" --field "body=@$out/comment.md" ||
      warn "the comment cannot be written, gh says why above"
  fi
fi
exit "$code"
