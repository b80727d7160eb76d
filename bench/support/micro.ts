import { endAll } from './child.ts';

/**
 * Runs a measurement without a broker process in a separate process, with its own heap: `node --expose-gc micro.js
 * match|store|start|session-life|test-kit|access|rest|webhook|sql|tail|console|streams|streams-mqtt short|full
 * [CORE of the broker] [CORE of the load] [FOLDER for CPU profiles]` prints Markdown tables.
 */
const PUBLISHING = `
A whole publish, beside subscriptions that do not match: a QoS 0 message of 64 bytes from the bytes that come to the bytes that go to its
one subscriber, through a connection without a socket. Brokers with few and many take turns in one process; \`x fewest\` and \`more us\` are
medians over rounds. The goals: hot topics at most 1.3 x, topics that come once at most 2 us more, 450 bytes for each subscription.
`;

const [name, length] = process.argv.slice(2);
const short = length === 'short';
if (name === 'match') {
  const index = await import('../match.ts');
  console.log(index.table(await index.run(short ? [1000] : undefined)));
  const publishing = await import('../match-publish.ts');
  console.log(PUBLISHING);
  console.log(publishing.table(await publishing.run(short ? [1000] : undefined)));
} else if (name === 'store') {
  const { run, table } = await import('../store.ts');
  console.log(table(await run(short ? 10_000 : 100_000, short ? 1 : 5)));
} else if (name === 'start') {
  const { run, table } = await import('../start.ts');
  console.log(table(await run(short ? 200 : 10_000, short ? 20 : 100)));
} else if (name === 'access') {
  const { runVerdicts, runLogins, table } = await import('../access.ts');
  console.log(
    table(await runVerdicts(short ? 1000 : 20_000, short ? 1000 : 100_000), await runLogins(short ? 100 : 2000))
  );
} else if (name === 'rest') {
  const { runCrowds, runRequests, runTurns, table } = await import('../rest.ts');
  const requests = await runRequests(short ? 1000 : 10_000, short ? 200 : 4000);
  const turns = await runTurns(short ? 1000 : 100_000, short ? 2 : 10);
  console.log(table(requests, turns, await runCrowds(short ? 1000 : 100_000)));
} else if (name === 'webhook') {
  const { run, table } = await import('../webhook.ts');
  console.log(table(await run(short ? 2 : 8)));
} else if (name === 'sql') {
  const { run, table } = await import('../sql.ts');
  console.log(table(await run(short ? 1000 : 50_000)));
  const rules = await import('../rules.ts');
  console.log();
  const messages = await rules.runMessages(short ? 1000 : 20_000, short ? 100 : 10_000);
  console.log(rules.table(messages, await rules.runMemory(short ? 1000 : 1_000_000)));
} else if (name === 'tail') {
  const { run, table } = await import('../tail.ts');
  console.log(table(short ? await run(5_000, 1) : await run(50_000)));
} else if (name === 'console') {
  const { run, table } = await import('../console.ts');
  console.log(table(short ? await run(60_000, 1) : await run(120_000)));
} else if (name === 'streams') {
  const { run, runMemory, table, SHORT, FULL } = await import('../streams.ts');
  const sizes = short ? SHORT : FULL;
  console.log(table(await run(sizes), await runMemory(sizes)));
} else if (name === 'streams-mqtt') {
  const { run, table, SHORT, FULL } = await import('../streams-mqtt.ts');
  process.once('exit', endAll);
  const [core, loadCore, profiles] = process.argv.slice(4);
  const cores = core === undefined || core === '' ? undefined : { broker: Number(core), load: Number(loadCore) };
  console.log(table(await run(short ? SHORT : FULL, { cores, profiles }), profiles));
} else if (name === 'test-kit') {
  const { run, table } = await import('../test-kit.ts');
  console.log(table(run(short ? 1 : 7, short ? 100 : 1000)));
} else {
  const { run, table } = await import('../session-life.ts');
  console.log(table(run(short ? 1000 : 20_000)));
}
