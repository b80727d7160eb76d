/**
 * Runs a measurement that needs no broker in a process of its own, with its own heap: `node --expose-gc micro.js
 * match|store|session-life [short]` prints a Markdown table.
 */
const [name, length] = process.argv.slice(2);
const short = length === 'short';
if (name === 'match') {
  const { run, table } = await import('../match.ts');
  console.log(table(await run(short ? [1000] : undefined)));
} else if (name === 'store') {
  const { run, table } = await import('../store.ts');
  console.log(table(await run(short ? 10_000 : 100_000, short ? 1 : 5)));
} else {
  const { run, table } = await import('../session-life.ts');
  console.log(table(run(short ? 1000 : 20_000)));
}
