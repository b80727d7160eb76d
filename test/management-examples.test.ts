import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Ajv2020 as Ajv } from 'ajv/dist/2020.js';
import type { Broker } from 'embermq';
import { managementApi, type RevisionName } from 'embermq/management';
import type { Operation } from '../adapters/management/operation.ts';
import { OPERATIONS } from '../adapters/management/operations/index.ts';
import { REVISION_ROWS, REVISIONS } from '../adapters/management/revisions.ts';
import { type Example, exampleOf } from '../adapters/rest/kit/index.ts';
import { serve } from './support/management.ts';
import { differenceFrom, MEASURED, passTime, startExampleBroker } from './support/management-fixture.ts';
import { IS_LONG } from './support/samples.ts';

/** Operations that have no example, with the reason. This list may only shrink. */
const WITHOUT_EXAMPLE: Readonly<Record<string, string>> = {
  'POST /x/backup': 'its answer is lines, not an envelope',
  'GET /x/export': 'its answer is a document, not an envelope'
};

/** The operations whose answer differs from the example, with the reason. */
const OTHER_ANSWERS: Readonly<Record<string, string>> = {
  'POST /x/webhooks/:name/test': 'there is no server for the webhook of the example'
};

const nameOf = ({ method, path }: Operation) => `${method} ${path}`;

/** The path and query of an example. */
function targetOf({ path }: Operation, { params, query }: Example): string {
  const filled = path.replace(/:([^/]+)/g, (_, name: string) => {
    const value = params?.[name];
    assert.ok(value !== undefined, `the example has no parameter "${name}"`);
    return encodeURIComponent(value);
  });
  const given = Object.entries(query ?? {}).map(([name, value]): [string, string] => [name, `${value}`]);
  return `/api${filled}${given.length === 0 ? '' : `?${new URLSearchParams(given)}`}`;
}

async function openStream(url: string): Promise<void> {
  const { status, headers, body } = await fetch(url);
  assert.equal(status, 200);
  assert.match(headers.get('content-type') ?? '', /^text\/event-stream/);
  await body?.cancel();
}

/** A checker of values by the schemas of the document of a revision, independent of the one that checks requests. */
function schemasOf(revision: RevisionName, broker: Broker) {
  const document = managementApi(broker, { revision, prefix: '/api' }).openapi();
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema({ ...document, $id: 'document' });
  return (row: Operation, part: string, value: unknown): void => {
    const path = row.path
      .replace(/:([^/]+)/g, '{$1}')
      .replaceAll('~', '~0')
      .replaceAll('/', '~1');
    const at = `document#/paths/${encodeURIComponent(path)}/${row.method.toLowerCase()}/${part}/content/application~1json/schema`;
    const validate = ajv.getSchema(at);
    assert.ok(validate !== undefined, `the document has no ${part} of ${nameOf(row)}`);
    assert.ok(
      validate(value),
      `${nameOf(row)}: ${ajv.errorsText(validate.errors)}: ${JSON.stringify(value).slice(0, 400)}`
    );
  };
}

describe('The operations without an example', () => {
  it('matches the examples in the list', () => {
    const found = OPERATIONS.filter(({ example }) => example === undefined).map(nameOf);
    assert.deepEqual(found, Object.keys(WITHOUT_EXAMPLE), 'give them an example of a request that succeeds');
  });
});

for (const revision of REVISIONS) {
  describe(`In the ${revision} revision, the example of`, () => {
    let broker: Broker;
    let server: Awaited<ReturnType<typeof serve>>;
    let check: ReturnType<typeof schemasOf>;

    const start = async () => {
      const started = await startExampleBroker();
      return {
        started,
        served: await serve(managementApi(started, { revision, prefix: '/api', credentials: 'host' }).node)
      };
    };

    before(async () => {
      const { started, served } = await start();
      [broker, server, check] = [started, served, schemasOf(revision, started)];
    });

    after(async () => {
      await server[Symbol.asyncDispose]();
      await broker.stop();
    });

    const execute = async (row: Operation, { call, port }: Pick<typeof server, 'call' | 'port'>, asked: Broker) => {
      const example = exampleOf(row, REVISION_ROWS[revision]);
      assert.ok(example !== undefined);
      if (row.isStream === true) return openStream(`http://127.0.0.1:${port}${targetOf(row, example)}`);
      if (example.body !== undefined) check(row, 'requestBody', example.body);
      if (example.data !== undefined) check(row, 'responses/200', { code: 0, data: example.data });
      const answering = call(row.method, targetOf(row, example), example.body);
      const answer = await (row.name === MEASURED ? passTime(asked, answering) : answering);
      assert.equal(answer.status, 200, answer.text);
      check(row, 'responses/200', answer.body);
      assert.equal(answer.body.code, 0);
      if (row.data === undefined && row.paged === undefined) assert.deepEqual(answer.body, { code: 0 });
      if (example.data !== undefined && !(nameOf(row) in OTHER_ANSWERS))
        assert.equal(differenceFrom(example.data, answer.body.data), undefined);
    };

    for (const row of OPERATIONS) {
      if (row.in?.includes(revision) === false || nameOf(row) in WITHOUT_EXAMPLE) continue;
      // The hosted revision has the changes of the later one at the same paths.
      if (!IS_LONG && revision === 'hosted' && row.method !== 'GET' && row.in?.includes('later') !== false) continue;
      it(`answers ${nameOf(row)} as the document says`, async () => {
        if (row.method === 'GET' && row.name !== MEASURED) return execute(row, server, broker);
        // its changes, and the time that passes, must not affect other examples
        const { started, served } = await start();
        await using _ = served;
        await using _broker = started;
        await execute(row, served, started);
      });
    }
  });
}
