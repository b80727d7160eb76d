import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { REQUESTS } from '../../../adapters/cli/ctl/requests.ts';
import { BROKER_OPTIONS } from '../../../lib/broker/configuration/options.ts';
import { CAUSES, type CauseCode, type CauseEntry, RECORDED } from '../../../lib/index.ts';
import { ZONE_OPTIONS } from '../../../lib/records/zone.ts';

/** Names in remedies that are not options. */
const OTHERS = ['+', '#', '$', '$SYS', '$SYS/#', '$share/', 'allow', 'lateTolerance'];
/** The causes that the documentation promises, by subject. */
const PROMISED: Readonly<Record<string, readonly CauseCode[]>> = {
  client: ['wrong_password', 'token_expired', 'banned', 'taken_over', 'connection_limit'],
  refused: [
    ...(['acl_record', 'acl_file_rule', 'acl_nomatch', 'authorize_hook', 'source_denied', 'source_failed'] as const),
    ...(['publish_hook', 'packet_too_large', 'topic_not_allowed', 'qos_not_allowed', 'store_full'] as const),
    'memory_watermark'
  ],
  routing: [
    ...(['no_subscriber', 'filter_case', 'filter_slash', 'filter_levels', 'filter_system', 'mount_point'] as const),
    ...(['rewritten', 'subscribe_refused', 'subscribed_later', 'session_ended'] as const)
  ],
  receiver: [
    ...(['no_local', 'retained_missing', 'share_member', 'delayed', 'offline_no_session', 'offline_qos0'] as const),
    ...(['queue_full', 'expired', 'too_large', 'awaiting_acknowledgements', 'slow_consumer'] as const),
    'right_withdrawn'
  ],
  rules: ['rule_stopped', 'where_false', 'payload_invalid', 'function_failed', 'target_refused', 'row_late']
};

describe('The table of causes', () => {
  it('contains the 45 causes that are promised', () => {
    const promised = Object.values(PROMISED).flat();
    assert.equal(new Set(promised).size, 45);
    assert.deepEqual(
      promised.filter((code) => !(code in CAUSES)),
      []
    );
  });

  it('names options and commands that exist in its remedies', () => {
    const options = new Set([...Object.keys(BROKER_OPTIONS), ...Object.keys(ZONE_OPTIONS), ...OTHERS]);
    const unknown = Object.values<CauseEntry>(CAUSES)
      .flatMap(({ remedy }) => [...remedy.matchAll(/`([^`]+)`/g)].map(([, name]) => name))
      .filter((name) => !options.has(name) && !(name.replace(/^embermq ctl /, '') in REQUESTS));
    assert.deepEqual(unknown, []);
  });

  it('describes each cause in a sentence, with and without evidence', () => {
    for (const [code, { text, remedy }] of Object.entries<CauseEntry>(CAUSES)) {
      const evidence = { topic: 't', filter: 'f', clientId: 'c', publisher: 'p', rule: 'r', detail: 'd' };
      for (const sentence of [text(evidence), text({}), remedy]) {
        assert.match(sentence, /^[A-Z`].*\.$/s, `${code}: ${sentence}`);
        assert.doesNotMatch(sentence, /undefined/, code);
      }
    }
  });

  it('advises about the rights of the user of a bridge only if the server has refused a message for them', () => {
    const { remedyOf }: CauseEntry = CAUSES.receiver_refused;
    const remedies = ['0x87 (not authorized)', '0x97 (quota exceeded)'].map((code) =>
      remedyOf?.({ clientId: '$bridge/north', detail: `reason code ${code}` })
    );
    assert.match(
      `${remedies[0]}`,
      /^Allow the user of the bridge .* with the `remotePrefix` of the bridge, if it has one/
    );
    assert.match(`${remedies[1]}`, /look it up in the log and the limits of the server\.$/);
  });

  it('explains each cause to which a record leads', () => {
    for (const { cause, causeOfReceiver } of Object.values(RECORDED))
      for (const code of [cause, causeOfReceiver]) if (code !== undefined) assert.ok(code in CAUSES, code);
  });
});
