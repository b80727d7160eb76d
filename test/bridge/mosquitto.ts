import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { type Client, connectClient } from '../../lib/index.ts';
import { freePorts } from '../support/free-ports.ts';

const COMMAND = '/usr/sbin/mosquitto';
const isInstalled = spawnSync(COMMAND, ['-h']).error === undefined;
/** Options of tests that need the command `mosquitto`. */
export const withMosquitto = {
  skip: !isInstalled && process.env.REQUIRE_MOSQUITTO !== '1' && 'mosquitto is not installed (Debian: mosquitto)'
};

/** A mosquitto that keeps its state while it is restarted. */
export class Mosquitto {
  port = 0;
  /** Port of the second listener, if there is one. */
  secondPort = 0;
  readonly #second: readonly string[] | undefined;
  readonly #folder = mkdtempSync(join(tmpdir(), 'mosquitto-'));
  #child!: ChildProcess;

  /** @param second settings of a second listener, such as `protocol websockets`; undefined: there is none */
  constructor(second?: readonly string[]) {
    this.#second = second;
  }

  async begin(): Promise<this> {
    if (this.port === 0) {
      [this.port, this.secondPort] = await freePorts(2);
    }
    const file = join(this.#folder, 'mosquitto.conf');
    const lines = [`listener ${this.port} 127.0.0.1`, 'allow_anonymous true', 'persistence true'];
    const owner = process.getuid?.() === 0 ? ['user root'] : [];
    const second = this.#second === undefined ? [] : [`listener ${this.secondPort} 127.0.0.1`, ...this.#second];
    const all = [...owner, `persistence_location ${this.#folder}/`, ...lines, ...second];
    writeFileSync(file, all.join('\n'));
    this.#child = spawn(COMMAND, ['-c', file], { stdio: 'ignore' });
    await this.client().then((client) => client.destroy());
    return this;
  }

  async client(): Promise<Client> {
    for (;;) {
      const socket = connect({ port: this.port, host: '127.0.0.1', noDelay: true });
      try {
        await once(socket, 'connect');
        return await connectClient(socket);
      } catch {
        await setImmediate();
      }
    }
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
  }

  async end(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true });
  }
}
