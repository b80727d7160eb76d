import type { SourceSetup } from '../../../lib/index.ts';
import { BackOff } from '../back-off.ts';
import { connectTo } from './connection.ts';
import type { MqttSourceSettings } from './settings.ts';

/** Attempts to delete a session, with growing delays between them. */
const MAX_ATTEMPTS = 5;

/** The client id of a session: the same after a restart. */
export function sessionClientId(
  { clientId }: MqttSourceSettings,
  { node, stream }: Pick<SourceSetup, 'node' | 'stream'>
): string {
  return clientId ?? `embermq_${node}_${stream}`.replace(/[^\w-]/g, '-');
}

/** The sessions at other servers that are being deleted. */
export class Sessions {
  readonly #deleting = new Map<string, Deletion>();

  /** Delete a session, which takes an own connection. A second call for the same one has no effect. */
  delete(settings: MqttSourceSettings, clientId: string, setup: Pick<SourceSetup, 'stream' | 'clock' | 'warn'>): void {
    const key = keyOf(settings, clientId);
    if (this.#deleting.has(key)) return;
    const deletion = new Deletion(settings, clientId, setup, () => this.#deleting.delete(key));
    this.#deleting.set(key, deletion);
  }

  /** A source connects itself. @returns whether the session was being deleted: its first connection has to do it */
  taken(settings: MqttSourceSettings, clientId: string): boolean {
    const deletion = this.#deleting.get(keyOf(settings, clientId));
    deletion?.cancel();
    return deletion !== undefined;
  }
}

function keyOf({ dial }: MqttSourceSettings, clientId: string): string {
  return `${dial.url.host} ${clientId}`;
}

class Deletion {
  readonly #settings: MqttSourceSettings;
  readonly #clientId: string;
  readonly #setup: Pick<SourceSetup, 'stream' | 'clock' | 'warn'>;
  readonly #ended: () => void;
  readonly #backOff: BackOff;
  #controller = new AbortController();
  #attempts = 0;
  #isEnded = false;

  constructor(
    settings: MqttSourceSettings,
    clientId: string,
    setup: Pick<SourceSetup, 'stream' | 'clock' | 'warn'>,
    ended: () => void
  ) {
    this.#settings = settings;
    this.#clientId = clientId;
    this.#setup = setup;
    this.#ended = ended;
    this.#backOff = new BackOff(setup.clock);
    void this.#try();
  }

  cancel(): void {
    this.#end();
    this.#backOff.cancel();
    this.#controller.abort(new Error('the session is used again'));
  }

  async #try(): Promise<void> {
    const { clock, stream, warn } = this.#setup;
    this.#controller = new AbortController();
    this.#attempts++;
    try {
      // a clean start deletes it, and the new one ends with the connection
      const options = { clientId: this.#clientId, clean: true, clock };
      await connectTo(this.#settings, options, this.#controller, (client) => client.disconnect());
      this.#end();
    } catch (error) {
      if (this.#isEnded) return;
      if (this.#attempts < MAX_ATTEMPTS) {
        this.#backOff.later(() => void this.#try());
        return;
      }
      this.#end();
      const { host } = this.#settings.dial.url;
      const reason = error instanceof Error ? error.message : String(error);
      warn(
        `stream ${stream}: the session ${this.#clientId} at ${host} could not be deleted in ${MAX_ATTEMPTS} attempts (${reason}); the server keeps messages for it until it expires: delete it there`
      );
    }
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#ended();
  }
}
