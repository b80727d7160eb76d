import { createServer, type Socket } from 'node:net';

/**
 * Runs aedes with its memory persistence, or over LevelDB without fsync. Its limits are raised so that none is reached.
 *
 *     node aedes.js MODULE-URL PORT [URL-OF-AEDES-PERSISTENCE-LEVEL URL-OF-LEVEL FOLDER]
 */
interface AedesModule {
  readonly Aedes: { createBroker(options: object): Promise<{ readonly handle: (socket: Socket) => void }> };
}

const [url, port, persistenceUrl, levelUrl, folder] = process.argv.slice(2);
const { Aedes } = (await import(url)) as AedesModule;
const persistence = persistenceUrl === undefined ? {} : { persistence: await levelPersistence() };
const broker = await Aedes.createBroker({ ...persistence, concurrency: 100, queueLimit: 1e6, connectTimeout: 60_000 });
createServer({ noDelay: true }, broker.handle).listen({ port: Number(port), host: '127.0.0.1', backlog: 4096 });

async function levelPersistence(): Promise<unknown> {
  const { Level } = (await import(levelUrl)) as { Level: new (folder: string, options: object) => unknown };
  const { default: make } = (await import(persistenceUrl)) as { default: (database: unknown) => unknown };
  return make(new Level(`${folder}/data`, { valueEncoding: 'json' }));
}
