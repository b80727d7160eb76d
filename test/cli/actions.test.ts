import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ACTION_GROUPS } from '../../adapters/cli/ctl/actions.ts';
import { REQUESTS } from '../../adapters/cli/ctl/requests.ts';
import { OPERATIONS } from '../../adapters/management/operations/index.ts';
import { OPERATIONS as STREAMS_OPERATIONS } from '../../adapters/streams-api/operations/all.ts';
import { sources, textOf } from '../support/sources.ts';

describe('the actions of ctl', () => {
  it('describes call and each action that an operation names', () => {
    const named = Object.values(ACTION_GROUPS)
      .flat()
      .map(({ name }) => name);
    assert.equal(new Set(named).size, named.length);
    assert.deepEqual([...named].sort(), [...Object.keys(REQUESTS), 'call'].sort());
  });

  it('contains no path of an operation in the sources of ctl, which take them from the rows', () => {
    const rows = [...OPERATIONS, ...STREAMS_OPERATIONS].filter(({ path }) => path.length > 1);
    const paths = new Set(rows.map(({ path }) => path.replace(/:(\w+)/g, '{$1}')));
    const files = sources.filter((file) => /^adapters\/cli\/ctl\/(?!requests\.ts)/.test(file));
    const written = files.flatMap((file) =>
      [...textOf(file).matchAll(/['"`](\/[^'"`]*)['"`]/g)].flatMap(([, text]) =>
        paths.has(text) ? [`${file}: ${text}`] : []
      )
    );
    assert.ok(files.length > 5 && paths.size > 150, `${files.length} files, ${paths.size} paths`);
    assert.deepEqual(written, []);
  });
});
