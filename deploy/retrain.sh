#!/bin/sh
# One retraining, as a scheduler runs it: the log is kept, people hear what they must act on, and
# the exit code is passed on. Arguments are handed to `kedro run`.
#
#   COUNTERMOVE_PROJECT  folder of the project (default: the one above this script)
#   COUNTERMOVE_RUN      what runs a pipeline (default: .venv/bin/kedro run of the project)
#   COUNTERMOVE_ENV      configuration environment (default: prod)
#   COUNTERMOVE_LOG      file to append to (default: logs/retrain.log in the project)
#   COUNTERMOVE_ALERT    program that is told: a subject as its argument, the text on its input
set -u
project=${COUNTERMOVE_PROJECT:-$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)}
run=${COUNTERMOVE_RUN:-$project/.venv/bin/kedro run}
log=${COUNTERMOVE_LOG:-$project/logs/retrain.log}
cd "$project" || exit 1
mkdir -p "$(dirname -- "$log")" || exit 1
said=$(mktemp) || exit 1
trap 'rm -f "$said"' EXIT

# $run may hold words, so it is not quoted.
$run --pipeline=retrain --env="${COUNTERMOVE_ENV:-prod}" "$@" >"$said" 2>&1
code=$?
{ echo "--- $(date -u +%Y-%m-%dT%H:%M:%SZ) exit code $code"; cat "$said"; } >>"$log"

case $code in
    0) subject= ;;  # promoted, or nothing new
    3) subject= ;;  # champion kept
    4) subject="retraining blocked by its data: look at the batch" ;;
    5) subject="champion kept although drift says retrain: read which gate refuses" ;;
    6) subject="there is no champion: the first challenger was refused" ;;
    7) subject="the decision stands, but its page was not written" ;;
    75) subject="retraining put off: another run is at work" ;;
    *) subject="retraining failed with code $code" ;;
esac
if [ -n "$subject" ]; then
    # Printed, because cron mails what a job prints.
    { echo "$subject"; tail -n 15 "$said"; } >&2
    if [ -n "${COUNTERMOVE_ALERT:-}" ]; then
        tail -n 15 "$said" | "$COUNTERMOVE_ALERT" "$subject"
    fi
fi
exit $code
