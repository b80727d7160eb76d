#!/usr/bin/env bash
# Makes the recording of the tutorial "Test a device": a broker, the recorder in front of it, an app that listens, and the program of the device.
set -euo pipefail
trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT

# #region record
node_modules/.bin/embermq serve --memory --port 1883 > broker.log 2>&1 &
until grep -q ready broker.log; do sleep 0.2; done
node_modules/.bin/embermq record traffic.jsonl --listen 1884 --port 1883 2> recorder.log &
recorder=$!
until grep -q recording recorder.log; do sleep 0.2; done
# #endregion

# #region run
node_modules/.bin/embermq sub --port 1884 --id app -v -C 5 -t 'pump/+' > app.log &
app=$!
until grep -q suback traffic.jsonl; do sleep 0.2; done
node --import tsx main.ts mqtt://127.0.0.1:1884 &
device=$!
until grep -q ready app.log; do sleep 0.2; done
npx embermq pub --port 1884 -q 1 -t pump/run -m 1
until grep -q off app.log; do sleep 0.2; done
kill -9 "$device"
wait "$device" 2> /dev/null || true
wait "$app"
cat app.log
# #endregion

# #region end
kill "$recorder"
wait "$recorder"
# #endregion
