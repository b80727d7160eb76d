// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of rules
import type { Broker, RulesOptions } from 'embermq';
import { webHook } from 'embermq/webhook';
import * as topics from './topics.ts';

/** A rule for temperatures that are too high. */
export const ALARM_SQL = `
  SELECT nth(2, tokens(topic, '/')) AS greenhouse, clientid AS device, payload.celsius AS celsius
  FROM "${topics.temperature()}" WHERE celsius > 35`;

/** The alarms that the rule above publishes. */
export const NOTIFY_SQL = `
  SELECT payload.greenhouse AS greenhouse, payload.device AS device, payload.celsius AS celsius FROM "${topics.alarm()}"`;

/** The stream of all temperatures. */
export const TEMPERATURES = `
  CREATE STREAM temperatures (celsius FLOAT) WITH (DATASOURCE="${topics.temperature()}", FORMAT="JSON")`;

/** The mean temperature of each greenhouse in windows of this many seconds. */
export const meanSql = (windowSeconds: number) => `
  SELECT split_value(meta(topic), "/", 1) AS greenhouse, avg(celsius) AS celsius, count(*) AS count
  FROM temperatures
  GROUP BY split_value(meta(topic), "/", 1), TUMBLINGWINDOW(ss, ${windowSeconds})`;

/**
 * The rules over messages: `alarm` publishes a message for the devices of the greenhouse, `notify` sends it to a web server.
 * @param hookUrl the web server; undefined: alarms are printed
 */
export function eventRules(hookUrl: string | undefined): RulesOptions {
  return {
    resources: [
      webHook(),
      ...(hookUrl === undefined ? [] : [{ id: 'hook', type: 'web_hook', config: { url: hookUrl } }])
    ],
    rules: [
      {
        id: 'alarm',
        sql: ALARM_SQL,
        actions: [
          {
            name: 'republish',
            params: {
              target_topic: topics.alarm('${greenhouse}'),
              target_qos: 1,
              payload_tmpl: '{"greenhouse":"${greenhouse}","device":"${device}","celsius":${celsius}}'
            }
          }
        ]
      },
      {
        id: 'notify',
        sql: NOTIFY_SQL,
        actions:
          hookUrl === undefined
            ? [(output) => console.log('alarm', output)]
            : [{ name: 'data_to_webserver', params: { $resource: 'hook', path: '/alarms' } }]
      }
    ]
  };
}

/**
 * Define the stream and its rule. Both are stored, so they exist after the first start; `qos` 1 keeps the open window
 * as well.
 */
export async function defineMeans({ streams }: Broker, windowSeconds: number): Promise<void> {
  await streams.replace(TEMPERATURES);
  const id = 'mean';
  const sql = meanSql(windowSeconds);
  const actions = [{ mqtt: { topic: topics.mean('{{.greenhouse}}'), qos: 1, retained: true, sendSingle: true } }];
  const rule = { id, sql, actions, options: { qos: 1 } } as const;
  const present = await streams.rules.get(id);
  if (present === undefined) await streams.rules.create(rule);
  else if (present.sql !== sql) await streams.rules.update(id, rule);
}
