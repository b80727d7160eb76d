/**
 * Runs a measurement that needs no broker in a process of its own, with its own heap: `node --expose-gc micro.js match|session-life
 * [short]` prints a Markdown table.
 */
const [name, length] = process.argv.slice(2);
const short = length === 'short';
if (name === 'match') {
  const { run, table } = await import('../match.ts');
  console.log(table(await run(short ? [1000] : undefined)));
} else {
  const { run, table } = await import('../session-life.ts');
  console.log(table(run(short ? 1000 : 20_000)));
}
