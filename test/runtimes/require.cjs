// Loads each entry point of the package with `require`: `node test/runtimes/require.cjs`, after `npm run build`, or a copy of this file in an app that
// has installed the package. Fails if `require` and `import` give different objects.
const assert = require('node:assert/strict');

/** Names that Node adds to an ES module that is loaded with `require`. */
const ADDED = ['__esModule', 'module.exports'];

async function main() {
  const { exports: entries } = require('embermq/package.json');
  const names = Object.keys(entries).filter((path) => entries[path].require !== undefined);
  for (const name of names.map((path) => path.replace('.', 'embermq'))) {
    const required = require(name);
    const imported = await import(name);
    const added = Object.keys(required).filter((key) => !(key in imported));
    assert.deepEqual(
      added.filter((key) => !ADDED.includes(key)),
      [],
      name
    );
    for (const key of Object.keys(imported)) assert.equal(required[key], imported[key], `${name}: ${key}`);
  }
  process.stdout.write(
    `node ${process.versions.node}: require loads ${names.length} of ${names.length} entry points\n`
  );
}

main();
