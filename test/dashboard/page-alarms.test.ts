// The causes of alarms in the page.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { causeOf } from '../../adapters/dashboard/page/model/alarms.ts';

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
});
