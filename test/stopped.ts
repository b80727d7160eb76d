import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/**
 * Suspends a broker in a separate process (SIGSTOP) for three times the keep alive of a client that continues to send PINGREQ, and resumes
 * it (SIGCONT): the client must receive PINGRESP and stay connected. `node --import tsx --conditions=embermq-source test/stopped.ts
 * [ROUNDS]`
 */
const STOPPED_MS = 4_500;
const CONNECT_KEEP_ALIVE_1 = Buffer.from('100d00044d51545404020001000161', 'hex');

if (process.argv[2] === 'broker') await serve();
else await main(Number(process.argv[2] ?? 3));

async function serve(): Promise<void> {
  const { createBroker } = await import('../lib/index.ts');
  const { listen } = await import('../adapters/net/index.ts');
  const broker = createBroker();
  const listener = listen(broker, 0);
  await broker.start();
  process.stdout.write(`${listener.port}\n`);
}

async function main(rounds: number): Promise<void> {
  const broker = spawn(process.execPath, [...process.execArgv, fileURLToPath(import.meta.url), 'broker'], {
    stdio: ['ignore', 'pipe', 'inherit']
  });
  try {
    const [line] = await once(broker.stdout, 'data');
    for (let round = 1; round <= rounds; round++)
      console.log(`round ${round}: ${await stopOnce(broker, Number(line))}`);
  } finally {
    broker.kill('SIGKILL');
  }
}

/**
 * @returns the result for the client
 * @throws Error if it was closed
 */
async function stopOnce(broker: ChildProcess, port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let bytes = Buffer.alloc(0);
  let isClosed = false;
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
  });
  socket.on('close', () => {
    isClosed = true;
  });
  socket.on('error', () => {});
  socket.write(CONNECT_KEEP_ALIVE_1);
  while (bytes.length < 4 && !isClosed) await sleep(10);
  broker.kill('SIGSTOP');
  const pinging = setInterval(() => socket.write(Buffer.from([0xc0, 0])), 500);
  await sleep(STOPPED_MS);
  const before = bytes.length;
  broker.kill('SIGCONT');
  while (bytes.length < before + 2 && !isClosed) await sleep(10);
  await sleep(500);
  clearInterval(pinging);
  socket.destroy();
  if (isClosed || bytes.length < before + 2)
    throw new Error('the client was closed although its PINGREQ waited in the socket');
  return `stopped ${STOPPED_MS} ms, ${(bytes.length - before) / 2} PINGRESP, still connected`;
}
