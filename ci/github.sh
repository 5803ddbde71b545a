#!/usr/bin/env bash
# The step of action.yml: the diff as annotations, summary, files and one comment; it ends with the diff's exit code.
set -euo pipefail

cd "${FOLDER:-.}"
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

number=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1])).get("pull_request", {}).get("number", ""))' "$GITHUB_EVENT_PATH")
if [ "${COMMENT:-}" = true ] && [ -n "$number" ]; then
  comments="repos/$GITHUB_REPOSITORY/issues/$number/comments"
  marker=$(head -n 1 "$out/comment.md")
  written=$(MARKER="$marker" gh api --paginate "$comments" --jq '.[] | select(.body | startswith(env.MARKER)) | .id' | head -n 1) || written=failed
  if [ "$written" = failed ]; then
    echo "::warning::the comments of the pull request cannot be read: permissions: pull-requests: write is needed"
  elif [ -n "$written" ]; then
    gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$written" --field "body=@$out/comment.md" ||
      echo "::warning::the comment cannot be changed: permissions: pull-requests: write is needed (a fork has a token that only reads)"
  else
    gh api --silent --method POST "$comments" --field "body=@$out/comment.md" ||
      echo "::warning::the comment cannot be written: permissions: pull-requests: write is needed (a fork has a token that only reads)"
  fi
fi
exit "$code"
