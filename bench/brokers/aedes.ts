import { createServer, type Socket } from 'node:net';

/**
 * aedes with its memory persistence, its own bounds raised so that none is reached.
 *
 *     node aedes.js MODULE-URL PORT
 */
interface AedesModule {
  readonly Aedes: { createBroker(options: object): Promise<{ readonly handle: (socket: Socket) => void }> };
}

const [url, port] = process.argv.slice(2);
const { Aedes } = (await import(url)) as AedesModule;
const broker = await Aedes.createBroker({ concurrency: 100, queueLimit: 1e6, connectTimeout: 60_000 });
createServer({ noDelay: true }, broker.handle).listen({ port: Number(port), host: '127.0.0.1', backlog: 4096 });
