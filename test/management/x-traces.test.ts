import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTestBroker } from '../../lib/testing/index.ts';
import { serveManagement, startBroker } from '../support/management.ts';

const REVISIONS = ['earlier', 'later', 'hosted'] as const;

describe('Traces over REST', () => {
  it('starts, lists, reads and ends traces in each revision', async () => {
    await using broker = await startBroker();
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const started = (await server.call('POST', '/api/x/traces', { clientid: revision, payload: 'none' })).body.data;
      const { id, started_at, ...rest } = started;
      assert.ok(Math.abs(started_at - Date.now()) < 60_000);
      assert.deepEqual(rest, { clientid: revision, status: 'active', lines: 0, bytes: 0, kept_lines: 0 });
      const client = await broker.connect({ clientId: revision, username: 'u', password: 'a password' });
      await client.publish('a', 'x', { qos: 1 });
      await client.disconnect();
      const { data, meta } = (await server.call('GET', `/api/x/traces/${id}/lines?_limit=3`)).body;
      assert.deepEqual(
        data.map(({ number, record }: { number: number; record: { packet?: string; event?: string } }) => [
          number,
          record.packet ?? record.event
        ]),
        [
          [1, 'connect'],
          [2, 'session.created'],
          [3, 'connack']
        ]
      );
      const more = (await server.call('GET', `/api/x/traces/${id}/lines?cursor=${meta.cursor}`)).body;
      assert.deepEqual([meta.cursor, more.data[0].number, more.meta.cursor], ['3', 4, undefined]);
      assert.equal(meta.count, more.data.at(-1).number);
      assert.doesNotMatch(JSON.stringify([data, more]), /a password/);
      const found = (await server.call('GET', `/api/x/traces/${id}`)).body.data;
      assert.deepEqual([found.lines, found.kept_lines], [meta.count, meta.count]);
      const listed = (await server.call('GET', '/api/x/traces')).body.data;
      assert.deepEqual(listed, [found]);
      assert.deepEqual((await server.call('DELETE', `/api/x/traces/${id}`)).body, { code: 0 });
      for (const path of [`${id}`, `${id}/lines`, 'x', '99/lines']) {
        const { status, body } = await server.call('GET', `/api/x/traces/${path}`);
        assert.deepEqual([status, body.code], [404, 105]);
      }
      assert.deepEqual((await server.call('GET', '/api/x/traces')).body.data, []);
    }
  });

  it('stops a trace and keeps its lines, in each revision', async () => {
    await using broker = await startBroker();
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      const { id } = (await server.call('POST', '/api/x/traces', { topic: 'a/#' })).body.data;
      await broker.publish('a/1', 'x');
      const { status, body } = await server.call('POST', `/api/x/traces/${id}/stop`);
      assert.deepEqual([status, body.code, body.data.status, body.data.kept_lines], [200, 0, 'stopped', 2]);
      await broker.publish('a/2', 'x');
      const { data } = (await server.call('GET', `/api/x/traces/${id}/lines`)).body;
      assert.deepEqual(
        data.map(({ record }: { record: { topic: string } }) => record.topic),
        ['a/1', 'a/1']
      );
      const again = await server.call('POST', `/api/x/traces/${id}/stop`);
      assert.deepEqual([again.status, again.body.data], [200, body.data], 'a trace that has ended is not changed');
      await server.call('DELETE', `/api/x/traces/${id}`);
      for (const unknown of [`${id}`, 'x']) {
        const answer = await server.call('POST', `/api/x/traces/${unknown}/stop`);
        assert.deepEqual([answer.status, answer.body.code], [404, 105]);
      }
    }
    const { data } = await (async () => {
      await using server = await serveManagement(broker);
      return (await server.call('GET', '/api/x/audit?operation=stop_trace')).body;
    })();
    assert.deepEqual(
      data.slice(0, 2).map(({ request, parameters, status }: Record<string, unknown>) => [request, parameters, status]),
      [
        ['POST /x/traces/:id/stop', { id: 'x' }, 404],
        ['POST /x/traces/:id/stop', { id: '3' }, 404]
      ]
    );
  });

  it('stops a trace of the app', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const trace = broker.trace({ clientId: 'c', to: () => {} });
    const { body } = await server.call('POST', `/api/x/traces/${trace.id}/stop`);
    assert.deepEqual([body.data.status, body.data.kept_lines, trace.endReason], ['stopped', undefined, 'stopped']);
    assert.deepEqual((await server.call('GET', '/api/x/traces')).body.data, []);
  });

  it('keeps the last lines of traces, even after their end', async () => {
    await using kit = await createTestBroker();
    const { broker } = kit;
    const { traces } = broker.monitor;
    const trace = traces.start({ topic: 'a/#', durationMs: 1_000 });
    for (let number = 0; number < 2_500; number++) await broker.publish(`a/${number}`, 'x');
    await kit.clock.advance(1_000);
    assert.deepEqual([trace.endReason, trace.lines, traces.lineCount(trace.id)], ['duration', 5_000, 1_000]);
    const lines = traces.lines(trace.id, 0, 5_000);
    assert.deepEqual([lines.length, lines[0].number, lines[999].number], [1_000, 4_001, 5_000]);
    assert.match(lines[999].line, /"a\/2499"/);
    assert.deepEqual(
      traces.lines(trace.id, 4_998, 10).map(({ number }) => number),
      [4_999, 5_000]
    );
    assert.deepEqual(traces.list(), [trace]);
    for (let number = 0; number < 12; number++) traces.start({ clientId: 'c' }).stop();
    assert.equal(traces.get(trace.id), undefined);
    assert.equal(traces.list().length, 10);
  });

  it('keeps a limited number of characters', async () => {
    await using broker = await startBroker();
    const { traces } = broker.monitor;
    const trace = traces.start({ topic: '#', maxPayloadBytes: 50_000 });
    for (let number = 0; number < 20; number++) await broker.publish('a', 'x'.repeat(50_000));
    assert.equal(traces.lineCount(trace.id), 5);
  });

  it('lists and ends traces of the app, without their lines', async () => {
    await using broker = await startBroker();
    await using server = await serveManagement(broker);
    const trace = broker.trace({ clientId: 'c', to: () => {} });
    assert.deepEqual((await server.call('GET', '/api/x/traces')).body.data[0].kept_lines, undefined);
    assert.equal((await server.call('GET', `/api/x/traces/${trace.id}/lines`)).status, 404);
    assert.equal((await server.call('DELETE', `/api/x/traces/${trace.id}`)).status, 200);
    assert.equal(trace.endReason, 'stopped');
  });

  it('refuses traces that select nothing or something invalid, and too many traces', async () => {
    await using broker = await startBroker();
    for (const revision of REVISIONS) {
      await using server = await serveManagement(broker, { revision });
      for (const [body, code] of [
        [{}, 107],
        [{ topic: 'a/#/b' }, 115],
        [{ ip_address: 'here' }, 108],
        [{ clientid: 'c', duration_s: 0 }, 108],
        [{ clientId: 'c' }, 108]
      ] as const) {
        const answer = await server.call('POST', '/api/x/traces', body);
        assert.deepEqual([answer.status, answer.body.code], [400, code], JSON.stringify(body));
      }
      assert.equal((await server.call('GET', '/api/x/traces/1/lines?cursor=x')).status, 404);
    }
    await using server = await serveManagement(broker);
    for (let number = 0; number < 30; number++) broker.trace({ clientId: 'c', to: () => {} });
    const { status, body } = await server.call('POST', '/api/x/traces', { clientid: 'c' });
    assert.deepEqual([status, body.code], [429, 102]);
  });
});
