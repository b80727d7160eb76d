import { connect, type Socket } from 'node:net';
import { connectFrame, type Flood, floodFrame } from './frames.ts';

/**
 * Runs clients that send one type of packet as fast as the broker reads it, until this process is ended:
 * `node flood.js '{"port":1883,"flood":"pingreq","count":60}'`. Responses of the broker are read and discarded.
 */
const { port, flood, count } = JSON.parse(process.argv[2]) as { port: number; flood: Flood; count: number };
const BLOCK_BYTES = 262_144;
const ignored = Buffer.allocUnsafeSlow(65_536);
let connections = 0;

process.stdin.resume().on('close', () => process.exit(0));
for (let at = 0; at < count; at++) {
  if (flood === 'connect') comeAndGo(at);
  else pour(at);
}

function open(at: number, onBytes: (socket: Socket) => void): Socket {
  const socket = connect({
    host: '127.0.0.1',
    port,
    // One source address has 28,000 ports, but a flood of CONNECTs uses more.
    ...(process.platform === 'linux' ? { localAddress: `127.2.0.${1 + (connections++ % 200)}` } : {}),
    onread: {
      buffer: ignored,
      callback: () => {
        onBytes(socket);
        return true;
      }
    }
  });
  socket.on('error', () => {});
  socket.write(connectFrame(`flood${at}-${connections}`, { v5: false, clean: true }));
  return socket;
}

/** Send one packet repeatedly, as fast as the socket accepts it. */
function pour(at: number): void {
  const frame = floodFrame(flood, at);
  const block = Buffer.alloc(Math.floor(BLOCK_BYTES / frame.length) * frame.length, frame);
  let isWelcome = false;
  const socket = open(at, () => {
    if (isWelcome) return;
    isWelcome = true;
    send();
  });
  const send = (): void => {
    socket.write(block, (error) => {
      if (!error) send();
    });
  };
}

/** Repeatedly send CONNECT and close the connection at the first byte of the response. */
function comeAndGo(at: number): void {
  const socket = open(at, () => socket.destroy());
  socket.once('close', () => setImmediate(comeAndGo, at));
}
