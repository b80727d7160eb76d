import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type Client, type ClientOptions, connectClient } from '../../lib/index.ts';
import { programOf, SOURCE_FLAGS } from '../support/programs.ts';

/** A durable broker in a process that can be killed. It keeps its port and its folder. */
export class Victim {
  port = 0;
  #child!: ChildProcess;
  readonly #folder = mkdtempSync(join(tmpdir(), 'victim-'));
  readonly #script: string;
  readonly #settings: object;

  /** @param script a file beside this one: it gets the folder, the port, 0 at first, and the settings as JSON, and prints its port */
  constructor(script: string, settings: object = {}) {
    this.#script = programOf(`test/crash/${script}`);
    this.#settings = settings;
  }

  async begin(): Promise<this> {
    const settings = JSON.stringify({ folder: this.#folder, port: this.port, ...this.#settings });
    const stdio = ['ignore', 'pipe', 'inherit'] as const;
    this.#child = spawn(process.execPath, [...SOURCE_FLAGS, this.#script, settings], { stdio: [...stdio] });
    const [line] = await once(this.#child.stdout as NonNullable<ChildProcess['stdout']>, 'data');
    this.port = Number(line);
    return this;
  }

  async kill(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  async end(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true });
  }
}

/** Delay between two attempts to connect, in milliseconds. */
const RETRY_MS = 2;

/** A client with a lasting session that connects again until it ends. */
export class Peer {
  client: Client | undefined;
  readonly #victim: Victim;
  readonly #options: ClientOptions;
  readonly #seen: (payload: string) => void;
  #isEnded = false;

  constructor(victim: Victim, clientId: string, seen: (payload: string) => void = () => undefined) {
    this.#victim = victim;
    this.#options = { clientId, clean: false, sessionExpiry: '1h' };
    this.#seen = seen;
  }

  /** Resolves when the peer is connected. */
  async ready(): Promise<Client> {
    while (this.client?.isConnected !== true && !this.#isEnded) {
      await setTimeout(RETRY_MS);
      const socket = connect({ port: this.#victim.port, host: '127.0.0.1', noDelay: true });
      try {
        await once(socket, 'connect');
        const session = this.client?.session;
        const client = await connectClient(socket, { ...this.#options, ...(session === undefined ? {} : { session }) });
        client.on('message', ({ payload }) => this.#seen(String(payload)));
        this.client = client;
      } catch {
        socket.destroy();
      }
    }
    return this.client as Client;
  }

  end(): void {
    this.#isEnded = true;
    this.client?.destroy();
  }
}
