// The causes of alarms in the page, and its lists that change.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { causeOf, heldRows } from '../../adapters/dashboard/page/model/alarms.ts';

const README = readFileSync(join(import.meta.dirname, '../../lib/monitor/README.md'), 'utf8');

describe('Links from alarms to their causes', () => {
  it('offers a view for every alarm of the broker, and none for those of the app', () => {
    const rows = README.split('### Alarms of the broker')[1]
      .split('\n## ')[0]
      .matchAll(/^\| (`.*?`) \|/gm);
    const ids = [...rows].flatMap(([, cell]) => [...cell.matchAll(/`([^`]+)`/g)].map(([, id]) => id));
    assert.ok(ids.length > 15, `${ids.length}`);
    assert.deepEqual(
      ids.filter((id) => causeOf(id) === undefined),
      []
    );
    assert.equal(causeOf('door:4'), undefined);
  });

  it('keeps the client id of an alarm as it is', () => {
    assert.deepEqual(causeOf('flapping_detected:a:b/../%2F'), {
      view: 'client',
      choices: { tab: 'history', id: 'a:b/../%2F' }
    });
    assert.equal(causeOf('outbox_failing:webhook:x')?.view, 'webhooks');
    assert.equal(causeOf('outbox_failing:x')?.view, 'rules');
  });

  it('opens the rule whose action cannot deliver, and the resources if one cannot', () => {
    const rule = { view: 'rule', choices: { id: 'rule:1' } };
    assert.deepEqual(causeOf('outbox_failing:action rest_16:0 of rule rule:1'), rule);
    assert.deepEqual(causeOf('outbox_overflow:action rest_16:0 of rule rule:1'), rule);
    const resources = { view: 'rules', choices: { tab: 'resources' } };
    assert.deepEqual(causeOf('outbox_failing:resource:hook'), resources);
    assert.deepEqual(causeOf('resource/web_hook/hook/down'), resources);
  });
});

describe('A list that changes while it is read', () => {
  const held = (shown: string, latest: string) => {
    const { rows, ended, added } = heldRows([...shown], [...latest], (row) => row);
    return [rows.join(''), [...ended].join(''), added];
  };

  it('keeps its rows in their places, marks those that have ended, and counts those that are new', () => {
    assert.deepEqual(held('abc', 'abc'), ['abc', '', 0]);
    assert.deepEqual(held('abc', 'xcyb'), ['abc', 'a', 2]);
    assert.deepEqual(held('', 'ab'), ['', '', 2]);
    const facts = heldRows([{ id: 'a', count: 1 }], [{ id: 'a', count: 2 }], ({ id }) => id);
    assert.deepEqual(facts.rows, [{ id: 'a', count: 2 }]);
  });
});
