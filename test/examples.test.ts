import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { examples, tutorials } from './support/example-tables.ts';
import { promised } from './support/pages.ts';
import { runPrograms } from './support/run-programs.ts';
import type { PageRun } from './support/run-snippets.ts';

/** The example that is a file of tests; see `test/testing/example.test.ts`. */
const TESTS = 'unit-test-your-device';
/** Maximum number of lines: about a screen. */
const MAX_LINES = 60;

/** The kinds of adapters that an app can write. */
const ADAPTERS = ['custom-listener', 'custom-sink', 'custom-source', 'custom-store'];

describe('examples', () => {
  const programs = examples().filter(({ name }) => name !== TESTS);

  it('examples show how to write each kind of adapter, with names of embermq/adapter', () => {
    const found = programs.filter(({ text }) => text.includes("from 'embermq/adapter'")).map(({ name }) => name);
    assert.deepEqual(found, ADAPTERS);
  });

  let runs: Promise<Record<string, PageRun>> | undefined;
  for (const { name, text, about } of programs) {
    it(`runs ${name}, which prints the documented output and ends`, async () => {
      assert.notEqual(about, '', 'it begins with a comment that says what it shows');
      assert.ok(text.split('\n').length <= MAX_LINES, 'it fits on a screen');
      runs ??= runPrograms(
        programs.map(({ name: page, text: code }) => ({ page, code })),
        true
      );
      const { outputs, error } = (await runs)[name];
      assert.equal(error, undefined);
      assert.equal(outputs[0], promised(text));
    });
  }
});

describe('the store of custom-store', () => {
  it('passes the tests of storeContract', async () => {
    const { text } = examples().find(({ name }) => name === 'custom-store') ?? assert.fail();
    const [store] = text.split(/^const folder = /m);
    const code = `import { storeContract } from 'embermq/testing';
      ${store}
      const folder = await mkdtemp(join(tmpdir(), 'custom-store-'));
      let count = 0;
      const create = () => fileStore(join(folder, String(++count)));
      for (const { name, run } of storeContract({ create, reopen: (store) => fileStore(store.name) }))
        await run().catch((error) => console.log(name, error.message));
      console.log(count > 20);
      await rm(folder, { recursive: true });
      void createBroker;`;
    const runs = await runPrograms([{ page: 'custom-store', code }]);
    assert.equal(runs['custom-store'].error, undefined);
    assert.deepEqual(runs['custom-store'].outputs, ['true\n']);
  });
});

describe('tutorials', () => {
  const programs = tutorials().flatMap(({ name, page, programs: files }) => {
    const text = files.get(`${name}.ts`); // programs of folders and for the shell: `test/cli/tutorial.test.ts`
    return text === undefined ? [] : [{ name, page, text }];
  });

  let runs: Promise<Record<string, PageRun>> | undefined;
  for (const { name, text, page } of programs) {
    it(`runs the program of ${name}, which prints what its page promises and ends`, async () => {
      runs ??= runPrograms(
        programs.map((program) => ({ page: program.name, code: program.text })),
        true
      );
      const { outputs, error } = (await runs)[name];
      assert.equal(error, undefined);
      const output = promised(text);
      assert.equal(outputs[0], output);
      for (const line of (output ?? '').trimEnd().split('\n'))
        assert.ok(page.includes(line), `the page shows the line "${line}"`);
    });
  }
});
