import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { exportConfiguration, importConfiguration, memoryStore } from '../../lib/index.ts';
import { AppSink } from './app-sink.ts';
import { FakeTarget, ruleKit, TO_FAKE } from './support.ts';

describe('An exported configuration', () => {
  it('exports rules and resources, and creates them in another broker', async () => {
    const target = new FakeTarget();
    const options = () => ({ store: memoryStore(), rules: { resources: [target.type()] } });
    await using kit = await ruleKit(options());
    const { rules } = kit.broker;
    await rules.resources.create({ id: 'r', type: 'fake', config: { url: 'u', token: 'secret' } });
    await rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions: [TO_FAKE], isEnabled: false });
    await rules.create({ id: 'two', sql: 'SELECT topic FROM "a"', actions: [TO_FAKE] });
    const document = await exportConfiguration(kit.broker);
    assert.deepEqual(
      document.sections.resources?.map(({ config }) => config),
      [{ url: 'u', token: 'secret' }]
    );

    await using other = await ruleKit(options());
    await other.broker.rules.resources.create({ id: 'extra', type: 'fake', config: { url: 'u' } });
    await other.broker.rules.create({
      id: 'gone',
      sql: 'SELECT * FROM "a"',
      actions: [{ name: 'to_fake', params: { $resource: 'extra' } }]
    });
    const { sections, errors } = await importConfiguration(other.broker, document, { mode: 'replace' });
    assert.deepEqual(errors, []);
    assert.deepEqual(
      [sections.resources, sections.rules],
      [
        { added: 1, replaced: 0, removed: 1, skipped: 0 },
        { added: 2, replaced: 0, removed: 1, skipped: 0 }
      ]
    );
    const listed = await other.broker.rules.list();
    assert.deepEqual(
      listed.map(({ id, state }) => [id, state]),
      [
        ['one', 'idle'],
        ['two', 'connected']
      ]
    );
    await other.broker.publish('a', 'x');
    await other.clock.advance('1s');
    assert.deepEqual(target.sent, ['{"topic":"a"}']);
    const again = await importConfiguration(other.broker, document, { mode: 'replace' });
    assert.deepEqual([again.sections.rules?.replaced, again.errors], [2, []]);
  });

  it('names the command that creates the connection of a rule, which is not in the document', async () => {
    const options = () => ({ streams: { sinks: [new AppSink()] } });
    await using kit = await ruleKit(options());
    const { rules, streams } = kit.broker;
    await streams.config.set({ kind: 'connection', type: 'app_sink', name: 'c', properties: { token: 't' } });
    const actions = [{ name: 'app_sink', params: { topic: 't', connectionSelector: 'c' } }];
    await rules.create({ id: 'one', sql: 'SELECT topic FROM "a"', actions });
    const document = await exportConfiguration(kit.broker);
    await using other = await ruleKit(options());
    const { errors } = await importConfiguration(other.broker, document);
    const message =
      'connectionSelector: there is no connection "c" of the type app_sink; create it first; connections are not part of the document: streams.config.set, POST /connections or "embermq ctl stream add-connection" creates them';
    assert.deepEqual(errors, [{ section: 'rules', entry: 'one', message }]);
  });

  it('restores rules and resources that were changed after the export', async () => {
    await using kit = await ruleKit({ rules: { resources: [new FakeTarget().type()] } });
    const { rules } = kit.broker;
    await rules.resources.create({ id: 'r', type: 'fake', config: { url: 'before' } });
    await rules.create({ id: 'one', sql: 'SELECT topic FROM "before"', actions: [TO_FAKE] });
    const document = await exportConfiguration(kit.broker);
    await rules.resources.update('r', { config: { url: 'after' }, description: 'changed' });
    await rules.update('one', { sql: 'SELECT topic FROM "after"' });
    await importConfiguration(kit.broker, document, { mode: 'replace' });
    const { resources, rules: restored } = (await exportConfiguration(kit.broker)).sections;
    assert.deepEqual([resources, restored], [document.sections.resources, document.sections.rules]);
  });

  it('refuses an import with an invalid rule', async () => {
    await using kit = await ruleKit();
    const document = await exportConfiguration(kit.broker);
    const wrong = { ...document, sections: { rules: [{ id: 'a', sql: 1 }] } };
    await assert.rejects(importConfiguration(kit.broker, wrong as never), {
      code: 'IMPORT_INVALID',
      message: /rules\[0\]/
    });
  });
});
