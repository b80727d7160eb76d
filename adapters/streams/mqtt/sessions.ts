// The store has a note of each session that a server may have, written before the server has it and deleted once the
// server no longer has it. So a session that no stream needs is deleted even after a restart, or when its server can
// be reached again; if that is impossible, a warning says so. A session is deleted by a clean start over a separate
// connection, again and again until its expiry has passed. A source that is opened meanwhile takes the session over:
// `use` cancels the deletion, and `#tidy` checks again after it has waited.

import type { SourceNotes, SourceSetup, TidySetup } from '../../../lib/adapter.ts';
import { BackOff } from '../back-off.ts';
import { connectTo } from './connection.ts';
import { ReceivedIds } from './received-ids.ts';
import { type MqttSourceSettings, readMqttSettings } from './settings.ts';

/** Number of attempts to delete a session after which a warning is reported. */
const WARN_ATTEMPTS = 5;

/** The client id of a session, which is the same after a restart. */
export function sessionClientId(
  { clientId }: MqttSourceSettings,
  { node, stream }: Pick<SourceSetup, 'node' | 'stream'>
): string {
  return clientId ?? `embermq_${node}_${stream}`.replace(/[^\w-]/g, '-');
}

/** The note of a session that a server has, or may have. */
interface SessionNote {
  /** The datasource that the stream reads. */
  readonly place: string;
  /** Set until the server has accepted the session. */
  readonly isNew?: true;
  /** Set if the session is to be deleted: the next connection uses a clean start. */
  readonly isStale?: true;
  /** Start of the deletion, in milliseconds since 1970. */
  readonly since?: number;
}

/** The key of a session: the server and the client id. */
export function sessionKey({ dial }: MqttSourceSettings, clientId: string): string {
  return `${dial.url.host} ${clientId}`;
}

/** The note of one session. */
export class NotedSession {
  readonly #notes: SourceNotes;
  readonly #key: string;
  readonly ids: ReceivedIds;

  constructor(notes: SourceNotes, key: string) {
    this.#notes = notes;
    this.#key = `session ${key}`;
    this.ids = new ReceivedIds(notes, key);
  }

  get note(): SessionNote | undefined {
    const value = this.#notes.get(this.#key);
    return value === undefined ? undefined : JSON.parse(value);
  }

  async write(note: SessionNote): Promise<void> {
    const value = JSON.stringify(note);
    if (this.#notes.get(this.#key) !== value) await this.#notes.set(this.#key, value);
  }

  /** Delete the note of a session that the server no longer has. */
  async delete(): Promise<void> {
    await Promise.all([this.ids.clear(), this.#notes.delete(this.#key)]); // in one commit
  }
}

/** The sessions at other servers. */
export class Sessions {
  readonly #deletions = new Map<string, Deletion>();
  /** Sessions of the open sources, whether or not they exist at present. */
  readonly #used = new Set<string>();

  /**
   * Register an opened source, whose connections keep the session or delete it.
   * @returns a function that removes it
   */
  use(key: string): () => void {
    this.#used.add(key);
    this.#deletions.get(key)?.cancel();
    return () => void this.#used.delete(key);
  }

  /** Delete the sessions that no stream needs. */
  async tidy(setup: TidySetup): Promise<void> {
    for (const key of [...setup.notes].flatMap(([name]) => /^session (.*)$/s.exec(name)?.[1] ?? []))
      if (!this.#used.has(key) && !this.#deletions.has(key)) await this.#tidy(key, setup);
  }

  async #tidy(key: string, setup: TidySetup): Promise<void> {
    const { node, dataDir, warn } = setup;
    const session = new NotedSession(setup.notes, key);
    const { note } = session;
    if (note === undefined) return;
    const noted = setup.stream(note.place);
    const { stream, isDefined } = noted;
    try {
      const { properties } = noted;
      const settings = await readMqttSettings({ properties, dataDir }, `source mqtt of ${stream}`);
      const own = sessionKey(settings, sessionClientId(settings, { node, stream }));
      const isOwn = key === own || key === `${own}_${stream}`; // for a second stream with the same client id, its name is appended
      const isNeeded = isDefined && isOwn && (settings.session ?? noted.isKept);
      // a source may have been opened meanwhile
      if (isNeeded || this.#used.has(key) || this.#deletions.has(key) || setup.signal.aborted) return;
      if (!key.startsWith(`${settings.dial.url.host} `)) {
        await this.#forget(session, warn, notDeleted(key, stream, 'the stream is at another server now'));
        return;
      }
      const ended = () => void this.#deletions.delete(key);
      const deletion = new Deletion(key, session, note, { ...setup, stream, settings, ended });
      this.#deletions.set(key, deletion);
      deletion.begin();
    } catch (error) {
      if (isDefined) return; // the reason is reported when the stream is used
      await this.#forget(session, warn, notDeleted(key, stream, error));
    }
  }

  async #forget(session: NotedSession, warn: (text: string) => void, text: string): Promise<void> {
    warn(text);
    await session.delete();
  }
}

function notDeleted(key: string, stream: string, error: unknown, more = 'delete it there'): string {
  const [host, ...clientId] = key.split(' ');
  const reason = error instanceof Error ? error.message : String(error);
  return `stream ${stream}: the session ${clientId.join(' ')} at ${host} is not needed and cannot be deleted (${reason}); the server keeps messages for it until it expires: ${more}`;
}

interface DeletionSetup extends Pick<TidySetup, 'clock' | 'signal' | 'warn'> {
  readonly stream: string;
  readonly settings: MqttSourceSettings;
  ended(): void;
}

/**
 * Deletes a session over a separate connection. It tries until it succeeds, or until the session would have expired.
 */
class Deletion {
  readonly #key: string;
  readonly #session: NotedSession;
  readonly #note: SessionNote & { readonly since: number };
  readonly #setup: DeletionSetup;
  readonly #backOff: BackOff;
  readonly #cancel = () => this.cancel();
  #controller = new AbortController();
  #attempts = 0;
  #isEnded = false;

  constructor(key: string, session: NotedSession, { place, since }: SessionNote, setup: DeletionSetup) {
    this.#key = key;
    this.#session = session;
    this.#note = { place, isStale: true, since: since ?? setup.clock.now() };
    this.#setup = setup;
    this.#backOff = new BackOff(setup.clock);
  }

  begin(): void {
    this.#setup.signal.addEventListener('abort', this.#cancel);
    void this.#try();
  }

  /** Stop, because a source uses the session again or the service stops: the note still marks it for deletion. */
  cancel(): void {
    this.#end();
    this.#controller.abort(new Error('the session is used again'));
  }

  async #try(): Promise<void> {
    const { clock, settings, warn, stream } = this.#setup;
    const clientId = this.#key.slice(settings.dial.url.host.length + 1);
    this.#controller = new AbortController();
    this.#attempts++;
    try {
      await this.#session.write(this.#note);
      if (this.#isEnded) return;
      // a clean start deletes the session, and the new one ends with the connection
      await connectTo(settings, { clientId, clean: true, clock }, this.#controller, (client) => client.disconnect());
      if (this.#isEnded) return;
      this.#end();
      await this.#session.delete().catch(() => undefined); // deleted again after the next change
    } catch (error) {
      if (this.#isEnded) return;
      if (clock.now() - this.#note.since > 1000 * (settings.sessionExpiry ?? 0)) {
        this.#end();
        warn(notDeleted(this.#key, stream, error));
        await this.#session.delete().catch(() => undefined);
        return;
      }
      if (this.#attempts === WARN_ATTEMPTS) warn(notDeleted(this.#key, stream, error, 'the attempts go on'));
      this.#backOff.later(() => void this.#try());
    }
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#backOff.cancel();
    this.#setup.signal.removeEventListener('abort', this.#cancel);
    this.#setup.ended();
  }
}
