import { connect } from 'node:net';
import { connectFrame } from './frames.ts';

/**
 * Runs clients that connect at a fixed rate with a wrong password, half of them with the name of a user, until this
 * process is ended: `node wrong-logins.js '{"port":1883,"rate":1000}'`. A client without an answer after two seconds
 * gives up.
 */
const { port, rate } = JSON.parse(process.argv[2]) as { port: number; rate: number };
const GIVE_UP_MS = 2000;
const STEP_MS = 10;
const ignored = Buffer.allocUnsafeSlow(4096);
const startMs = performance.now();
let tries = 0;

process.stdin.resume().on('close', () => process.exit(0));
setInterval(() => {
  const due = ((performance.now() - startMs) / 1000) * rate;
  while (tries < due) tryOnce(tries++);
}, STEP_MS);

function tryOnce(at: number): void {
  const socket = connect({
    host: '127.0.0.1',
    port,
    // One source address has 28,000 ports. Several addresses also mean several queues for the broker.
    ...(process.platform === 'linux' ? { localAddress: `127.3.0.${1 + (at % 200)}` } : {}),
    onread: {
      buffer: ignored,
      callback: () => {
        socket.destroy();
        return true;
      }
    }
  });
  const giveUp = setTimeout(() => socket.destroy(), GIVE_UP_MS);
  socket.on('error', () => {});
  socket.once('close', () => clearTimeout(giveUp));
  const username = at % 2 === 0 ? 'user0' : `nobody${at}`;
  socket.write(connectFrame(`wrong${at}`, { v5: false, clean: true, credentials: { username, password: 'wrong' } }));
}
