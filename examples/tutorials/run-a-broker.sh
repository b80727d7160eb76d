#!/usr/bin/env bash
# The program of the tutorial "Run a broker": users, rules, a certificate, a check, a refusal that is explained, and a backup.
set -euo pipefail
broker=
trap 'kill "$broker" 2> /dev/null; wait' EXIT

# #region users
echo 'a password of the sensor' | npx embermq passwd users sensor-1
echo 'a password of ann' | npx embermq passwd users ann
cat > rules.conf <<'RULES'
{allow, {user, "ann"}, pubsub, ["#"]}.
{allow, all, pubsub, ["sensors/%u/#"]}.
{deny, all}.
RULES
# #endregion

# #region certificate
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost -keyout server.key -out server.crt 2> openssl.log
# #endregion

# #region config
cat > embermq.json <<'CONFIG'
{
  "mqttPort": "off",
  "mqttsPort": 8883,
  "wsPort": "off",
  "httpPort": 8081,
  "httpEarlierPort": "off",
  "rulesPort": "off",
  "dashboardPort": "off",
  "dataDir": "data",
  "cert": "server.crt",
  "key": "server.key",
  "passwordFile": "users",
  "aclFile": "rules.conf"
}
CONFIG
npx embermq doctor --config embermq.json || echo "exit code $?"
# #endregion

# #region start
node_modules/.bin/embermq serve --config embermq.json > ready 2> log &
broker=$!
until grep -q ready ready; do sleep 0.2; done
# #endregion

# #region clients
as_ann=(-h localhost -p 8883 --ca server.crt -u ann -P 'a password of ann')
as_sensor=(-h localhost -p 8883 --ca server.crt -u sensor-1 -P 'a password of the sensor' -i sensor-1)
npx embermq pub "${as_sensor[@]}" -q 1 -r -t sensors/sensor-1/celsius -m 21.5
npx embermq sub "${as_ann[@]}" -C 1 -v -t 'sensors/#'
# #endregion

# #region refused
npx embermq pub "${as_sensor[@]}" -q 1 -t sensors/sensor-2/celsius -m 99 || echo "exit code $?"
export EMBERMQ_APP=$(head -n 1 data/first-application)
rm data/first-application
npx embermq ctl why --topic sensors/sensor-2/celsius --client ann --publisher sensor-1
# #endregion

# #region backup
npx embermq ctl backup backup.jsonl
npx embermq store import restored < backup.jsonl
# #endregion
