import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Client, connectClient } from '../lib/client/client.ts';

/*
 * Measures a flood of messages for offline clients: `node --import tsx --conditions=embermq-source test/queue-flood.ts`, after `npm run
 * build`. Starts a broker as `embermq serve --memory` with a low watermark; its sessions go offline, and publishers send each of them more
 * than all of them together may queue. Prints the resident memory, and the answers to the publishers. Linux only.
 */

const { values: flags } = parseArgs({
  options: {
    main: { type: 'string', default: join(import.meta.dirname, '../dist/adapters/cli/main.js') },
    watermark: { type: 'string', default: '220MB' },
    sessions: { type: 'string', default: '60' },
    megabytes: { type: 'string', default: '1500' },
    payload: { type: 'string', default: '16384' }
  }
});
const [sessions, megabytes, payloadBytes] = [flags.sessions, flags.megabytes, flags.payload].map(Number);
const PUBLISHERS = 8;
const AT_ONCE = 50;

const folder = mkdtempSync(join(tmpdir(), 'embermq-flood-'));
const config = join(folder, 'embermq.json');
writeFileSync(config, JSON.stringify({ memoryHighWatermark: flags.watermark }));
const ports = [
  '--mqtt-port',
  '0',
  '--ws-port',
  'off',
  '--http-port',
  'off',
  '--http-earlier-port',
  'off',
  '--rules-port',
  'off',
  '--dashboard-port',
  'off'
];
const args = [flags.main, 'serve', '--memory', '--config', config, ...ports];
const broker = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
try {
  const [line] = (await once(broker.stdout, 'data')) as [Buffer];
  const { mqtt: port } = JSON.parse(line.toString().replace(/^ready /, '')) as { mqtt: number };
  const dial = async (clientId: string): Promise<Client> => {
    const options = { clientId, clean: false, sessionExpiry: '1h' } as const;
    return connectClient(connect(port, '127.0.0.1'), options);
  };
  for (let at = 0; at < sessions; at++) {
    const client = await dial(`away-${at}`);
    await client.subscribe({ topic: `flood/${at}`, qos: 1 });
    await client.disconnect();
  }
  const residentMb = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${broker.pid}/status`, 'latin1'))?.[1]) / 1024;
  const idleMb = residentMb();
  let peakMb = idleMb;
  const sampler = setInterval(() => {
    peakMb = Math.max(peakMb, residentMb());
  }, 100);
  const answers: Record<string, number> = {};
  const payload = Buffer.alloc(payloadBytes, 'flood ');
  let left = Math.ceil((megabytes * 1_048_576) / payloadBytes);
  const flood = async (publisher: Client) => {
    while (left-- > 0) {
      const answer = await publisher.publish(`flood/${left % sessions}`, payload, { qos: 1 }).then(
        () => 'success',
        (error: Error & { reasonCode?: number }) => `0x${(error.reasonCode ?? 0).toString(16)}`
      );
      answers[answer] = (answers[answer] ?? 0) + 1;
    }
  };
  const startedMs = performance.now();
  const publishers = await Promise.all(Array.from({ length: PUBLISHERS }, (_, at) => dial(`publisher-${at}`)));
  await Promise.all(publishers.flatMap((publisher) => Array.from({ length: AT_ONCE }, () => flood(publisher))));
  const seconds = (performance.now() - startedMs) / 1000;
  await Promise.all(publishers.map((publisher) => publisher.disconnect()));
  const endMb = residentMb();
  await new Promise((resolve) => setTimeout(resolve, 10_000));
  clearInterval(sampler);
  const back = await dial('away-0').catch((error: Error) => error.message);
  const afterMb = residentMb();
  const round = (mb: number) => Math.round(mb);
  console.log(
    JSON.stringify({
      watermark: flags.watermark,
      sessions,
      sentMb: megabytes,
      seconds: round(seconds),
      residentMb: { idle: round(idleMb), peak: round(peakMb), end: round(endMb), after10s: round(afterMb) },
      answers,
      reconnect: typeof back === 'string' ? back : 'accepted'
    })
  );
  if (typeof back !== 'string') await back.disconnect();
} finally {
  broker.kill('SIGKILL');
  rmSync(folder, { recursive: true });
}
