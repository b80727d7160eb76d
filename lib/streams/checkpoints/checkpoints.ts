// Checkpoints of stream rules are records of the ledger. A row of a rule with `qos` is a numbered record, added in
// the turn in which its message arrives, so the acknowledgement of the publisher waits for it as for a queued
// message. A checkpoint adds the state in parts of 128 KB and removes the parts and rows before it; with `qos` 2 it
// also publishes what the rule has held back. All of this is one turn, so it is one commit, and messages are deferred
// until then. There is no position in a subscription and no window of unacknowledged messages: a session would limit
// how many rows wait, and would need a client for each rule. With `qos` 2 a row reaches the operators after its
// commit, since the publisher of a refused row sends it again. What a sink of this broker publishes is published
// again if its commit fails, however often. The first checkpoint is made when a rule begins, so that the ends of its
// windows are known after a kill. The checkpoint of another definition is deleted when the new one runs, not before.
// A log belongs to one run: a run that is still closing its sinks when the next one begins no longer writes.

import { deserialize, serialize } from 'node:v8';
import type { Clock } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import type { FunctionTools } from '../function.ts';
import type { Consumer } from '../graph/consumer.ts';
import type { Graph } from '../graph/graph.ts';
import type { SinkNode } from '../graph/sink-node.ts';
import type { PreparedMessage, StreamRecordStore } from '../host.ts';
import { MAX_AT_ONCE, SLICE_ROWS } from '../sources/lane.ts';
import type { StreamBounds } from '../types.ts';
import type { Row } from '../values/tuple.ts';
import { StreamFailure } from '../values/values.ts';
import { within } from '../values/within.ts';
import type { LoggedRow, LogOwner, RuleLog } from './rule-log.ts';
import type { RuleMessages, TakenMessages } from './rule-messages.ts';

/** Version of the form of checkpoints. One of another version is not used. */
const VERSION = 1;
/** How long a checkpoint waits for sinks that are sending. What they have not sent by then is lost if the process is killed. */
const SINKS_MS = 5_000;
/** Rows that have been taken are removed from the list of those that wait when there are this many. */
const MAX_TAKEN = 1_024;

/** Most bytes of rows in the log that wait for their turn; of more, as many are passed on at once as are above it: 16 MiB. */
const MAX_WAITING = 16_777_216;

/** How long a rule that stops waits for its last rows to be in the store. */
const ROWS_MS = 5_000;
const REFUSED = 'a row was refused, because the store cannot be written at present';

/** Rows that wait for their commit, or for their turn. */
interface WaitingRows {
  readonly entry: Consumer;
  readonly rows: readonly Row[];
  readonly logged: LoggedRow;
}

/** What a checkpoint has. */
interface Saved {
  readonly version: number;
  /** What the rule was made of: a checkpoint of another rule does not fit. */
  readonly fingerprint: string;
  /** The states of the operators, by node. */
  readonly states: Readonly<Record<string, unknown>>;
  readonly hits: Hits;
  readonly groupHits: Hits;
  /** False: the rule was stopped before it had all first rows of its sources. */
  readonly isFed?: boolean;
}

interface Hits {
  readonly count: number;
  readonly lastAt: number;
}

/** A state of the rule that is about to be saved. */
interface Captured {
  readonly state: Buffer;
  /** Number of the first row that it has not seen. */
  readonly end: number;
  readonly taken: TakenMessages;
  /** What the sinks are sending. */
  readonly sending: readonly Promise<unknown>[];
}

/** What checkpoints are made with. */
interface CheckpointSetup {
  readonly store: StreamRecordStore;
  readonly log: RuleLog;
  readonly messages: RuleMessages;
  /** The option `checkpointInterval`. */
  readonly intervalMs: number;
  readonly bounds: Pick<StreamBounds, 'checkpointRows' | 'checkpointBytes'>;
  readonly fingerprint: string;
  readonly clock: Clock;
  readonly tools: FunctionTools;
  readonly sinks: readonly SinkNode[];
  /** Report an error that does not end the rule. */
  failed(error: unknown): void;
  /** Report something that is not an error. */
  warn(text: string): void;
  /** Wait for the next turn of the event loop. */
  pause(): Promise<void>;
  /** No checkpoint can be made: the rule has to stop. */
  broken(error: unknown): void;
}

/**
 * The checkpoints of a rule that delivers at least once (`qos` 1) or exactly once (`qos` 2).
 *
 * A row is added to the log when it arrives, and its publisher is answered when it is in the store. A checkpoint has the states of all operators and
 * replaces the rows that they have seen; after a crash, the rule continues with the last checkpoint and the rows since then. The rows of a long
 * message are added in its turn as well, and reach the operators in slices, one in each turn. With `qos` 2, a row
 * reaches the operators when it is in the store, and messages of this broker leave in the commit of the next checkpoint.
 */
export class Checkpoints implements LogOwner {
  readonly #setup: CheckpointSetup;
  readonly #graph: Graph;
  /** The rows that are not in the store yet (`qos` 2) or wait for their turn, with what takes them; those before `#waitingAt` have been taken. */
  #waiting: WaitingRows[] = [];
  #waitingAt = 0;
  #waitingBytes = 0;
  #isPassing = false;
  /** True while waiting rows are passed on in slices, one in each turn. */
  #isSlicing = false;
  /** Number of the first row that this run has added to the log. */
  readonly #begin: number;
  /** The operators have seen the rows of the previous run. */
  #isReplayed = false;
  /** The sources are open, and the rule has their first rows: checkpoints are made. */
  #isBegun = false;
  #isContinued = false;
  #timer: unknown;
  #isDue = false;
  #isEnded = false;
  #last: Promise<void> = Promise.resolve();
  /** Called when the log is full while a checkpoint waits for sinks. */
  #hurry: () => void = () => undefined;
  /** Called when no row waits. */
  #arrived: () => void = () => undefined;

  constructor(setup: CheckpointSetup, graph: Graph) {
    this.#setup = setup;
    this.#graph = graph;
    this.#begin = setup.log.end;
    setup.log.ownedBy(this);
  }

  /**
   * Take over the last checkpoint, before the operators are opened. One of another definition stays in the store until `begun`.
   * @throws StreamFailure if it cannot be used; it is deleted then
   */
  load(): void {
    const { log, fingerprint, tools, warn } = this.#setup;
    const { state } = log;
    if (state === undefined) return;
    try {
      const saved = deserialize(state) as Saved;
      if (saved.version !== VERSION || saved.fingerprint !== fingerprint) {
        log.setAside();
        warn('its checkpoint belongs to another definition and is not used');
        return;
      }
      this.#graph.load(saved.states);
      Object.assign(tools.hits, saved.hits);
      Object.assign(tools.groupHits, saved.groupHits);
      this.#isContinued = saved.isFed !== false;
    } catch (error) {
      log.discard();
      throw new StreamFailure(`its checkpoint cannot be used and is deleted: ${errorText(error)}`, error);
    }
  }

  /** The rule continues from a checkpoint, and has had the first rows of its sources. */
  get isContinued(): boolean {
    return this.#isContinued;
  }

  /** Let the operators see the rows since the last checkpoint again. @throws StreamFailure if they cannot be read; they are deleted then */
  replay(): void {
    const { log, messages } = this.#setup;
    const waiting: WaitingRows[] = [];
    try {
      for (const { logged, position, rows } of log.rows(this.#begin)) {
        const known = this.#graph.entries.get(position);
        if (known === undefined) continue;
        const entry = rows.length === 1 ? known : (known.many?.() ?? known);
        if (messages.isHolding && (waiting.length > 0 || !logged.isCommitted)) {
          waiting.push({ entry, rows, logged });
          this.#waitingBytes += logged.body.length;
        } else for (const row of rows) entry.push(row);
      }
    } catch (error) {
      log.discard();
      const text = `the rows since its checkpoint cannot be read, and are deleted with it: ${errorText(error)}`;
      throw new StreamFailure(text, error);
    }
    this.#waiting = [...waiting, ...this.#waiting];
    this.#isReplayed = true;
    this.committed();
  }

  /** The sources are open, and the rule has their first rows. The first checkpoint is made at once, because it has where windows end. */
  begun(): void {
    const { log } = this.#setup;
    log.forgetAside();
    this.#isBegun = true;
    if (log.state === undefined) this.#takeSoon();
    else this.#arm();
  }

  /** What a source feeds instead of an entry of the graph. */
  consumerOf(position: number, entry: Consumer): Consumer {
    const { messages } = this.#setup;
    const push = (row: Row) => {
      const logged = this.#append(position, [row]);
      if (messages.isHolding || this.#isPassing || this.#waitingAt < this.#waiting.length)
        this.#wait({ entry, rows: [row], logged });
      else entry.push(row);
    };
    const fail: Consumer['fail'] = (error, cause) => entry.fail(error, cause);
    return {
      takesWhole: true, // what is not in the log when the turn ends would be lost in a crash
      push,
      fail,
      replace: (rows) => entry.replace?.(rows),
      many: () => {
        const many = entry.many?.() ?? entry;
        return {
          push,
          pushAll: (rows) => this.#wait({ entry: many, rows, logged: this.#append(position, rows) }),
          fail: (error, cause) => many.fail(error, cause)
        };
      }
    };
  }

  /**
   * The rule stops, and its sources are detached: resolves when the operators have seen the rows that are on their way into the store. Another
   * definition of the rule would not see them. undefined: there are none.
   */
  drained(): Promise<void> | undefined {
    if (this.#isEnded || !this.#isBegun || this.#waitingAt === this.#waiting.length) return undefined;
    const arrived = new Promise<void>((resolve) => {
      this.#arrived = resolve;
    });
    // the next run takes those that are not there after a while, because they are in the log
    return within(this.#setup.clock, arrived, ROWS_MS, 'rows are not in the store').catch(() => undefined);
  }

  /** The rule stops: make the last checkpoint of what the operators have seen. @returns a function that writes it, when the sinks are closed */
  end(): () => Promise<void> {
    const { clock, failed, log, messages } = this.#setup;
    clock.clearTimeout(this.#timer);
    this.#isEnded = true;
    const isBack = log.isOwnedBy(this) && log.takeBack();
    if (isBack || !this.#isReplayed) return () => this.#last;
    let captured: Captured;
    try {
      captured = this.#capture();
    } catch (error) {
      failed(error);
      return () => this.#last;
    }
    return async () => {
      await this.#last;
      const { messages: back, bytes } = messages.take(); // those that the last checkpoint has put back are the first ones
      const { taken } = captured;
      const all = { messages: [...back, ...taken.messages], bytes: bytes + taken.bytes };
      await this.#write({ ...captured, taken: all });
    };
  }

  // ------------------------------------------------------------------------------------------------------------------- rows

  #append(position: number, rows: readonly Row[]): LoggedRow {
    const { log, bounds } = this.#setup;
    const logged = log.append(position, rows);
    const { length, bytes } = log;
    if (2 * length >= bounds.checkpointRows || 2 * bytes >= bounds.checkpointBytes) this.#takeSoon();
    if (length >= bounds.checkpointRows || bytes >= bounds.checkpointBytes) this.#hurry();
    return logged;
  }

  #wait(waiting: WaitingRows): void {
    this.#waiting.push(waiting);
    this.#waitingBytes += waiting.logged.body.length;
    if (this.#waitingBytes > MAX_WAITING) this.#pass(0);
    else if (!this.#setup.messages.isHolding) void this.#passInSlices();
  }

  /** Pass on the rows that are in the store, up to the first one that is not. */
  committed(): void {
    if (this.#isSlicing) return;
    const isLong = this.#waitingAt < this.#waiting.length && this.#waiting[this.#waitingAt].rows.length > 1;
    if (isLong || this.#pass(MAX_AT_ONCE)) void this.#passInSlices();
  }

  async #passInSlices(): Promise<void> {
    if (this.#isSlicing) return;
    this.#isSlicing = true;
    do await this.#setup.pause();
    while (this.#pass(SLICE_ROWS));
    this.#isSlicing = false;
  }

  /** Pass on rows whose turn has come. @param most about how many rows @returns whether there are more of them */
  #pass(most: number): boolean {
    const { messages, bounds } = this.#setup;
    if (this.#isEnded || !this.#isReplayed || this.#isPassing) return false;
    let isMore = false;
    this.#isPassing = true;
    try {
      for (let left = most; this.#waitingAt < this.#waiting.length; ) {
        const { entry, rows, logged } = this.#waiting[this.#waitingAt];
        if (messages.isHolding && !(logged.isCommitted || logged.isRefused)) break;
        isMore = left <= 0 && this.#waitingBytes <= MAX_WAITING;
        if (isMore) break;
        this.#waitingAt++;
        this.#waitingBytes -= logged.body.length;
        left -= rows.length;
        if (logged.isRefused) this.#setup.failed(new StreamFailure(REFUSED));
        else for (const row of rows) entry.push(row);
      }
    } finally {
      this.#isPassing = false;
    }
    if (this.#waitingAt === this.#waiting.length) this.#arrived();
    if (this.#waitingAt >= MAX_TAKEN && 2 * this.#waitingAt >= this.#waiting.length) {
      this.#waiting.splice(0, this.#waitingAt);
      this.#waitingAt = 0;
    }
    if (2 * messages.bytes >= bounds.checkpointBytes) this.#takeSoon();
    return isMore;
  }

  // ------------------------------------------------------------------------------------------------------------ checkpoints

  #arm(): void {
    const { clock, intervalMs } = this.#setup;
    clock.clearTimeout(this.#timer);
    if (this.#isEnded) return;
    this.#timer = clock.setTimeout(() => this.#take(), Math.max(1, intervalMs));
  }

  /** Make a checkpoint when the row at hand has passed through the operators. */
  #takeSoon(): void {
    if (!this.#isDue && this.#isBegun && !this.#setup.store.isFailed) this.#take();
  }

  /** Make a checkpoint after those before it. It never begins in the middle of a row. */
  #take(): void {
    this.#isDue = true;
    this.#last = this.#last.then(async () => {
      if (this.#isEnded) return;
      try {
        if (!this.#setup.store.isFailed) await this.#write(this.#capture());
      } catch (error) {
        this.#isEnded = true;
        this.#setup.broken(error);
      }
      this.#isDue = false;
      this.#arm();
    });
  }

  /** @throws StreamFailure if the state cannot be saved */
  #capture(): Captured {
    const { messages, bounds, fingerprint, tools, sinks } = this.#setup;
    const targets = [...sinks.map(({ target }) => target), messages]; // in this order: what sinks have collected leaves now
    const sending = targets.flatMap((target) => target.idle?.() ?? []);
    const states = this.#graph.save();
    const { hits, groupHits } = tools;
    const isFed = this.#isBegun || this.#isContinued;
    const { count, lastAt } = hits;
    const state = serialized({ version: VERSION, fingerprint, states, hits: { count, lastAt }, groupHits, isFed });
    if (state.length > bounds.checkpointBytes) {
      const text = `its checkpoint has ${state.length} bytes: more than the bound checkpointBytes, ${bounds.checkpointBytes}; make its windows shorter, or raise the bound`;
      throw new StreamFailure(text);
    }
    const end = this.#waiting[this.#waitingAt]?.logged.number ?? this.#setup.log.end;
    return { state, end, taken: messages.take(), sending };
  }

  async #write({ state, end, taken, sending }: Captured): Promise<void> {
    const { log, store, messages, failed } = this.#setup;
    if (sending.length > 0) await this.#sent(sending);
    const prepared: PreparedMessage[] = [];
    for (const result of await Promise.allSettled(taken.messages))
      if (result.status === 'fulfilled') prepared.push(result.value);
      else failed(result.reason);
    if (!log.isOwnedBy(this)) return; // the next run has the rows that have led to these messages
    if (store.isFailed) {
      messages.putBack(taken); // the next checkpoint has them
      return;
    }
    const isSame = log.length === 0 && taken.messages.length === 0 && log.state?.equals(state);
    if (isSame) return;
    // in one turn, so in one commit
    log.save(state, end);
    for (const message of prepared) messages.publish(message);
    await store.committed().catch(() => undefined); // what it has is written again
  }

  /** Wait until what the operators have emitted is sent: the checkpoint does not have it any more. */
  async #sent(sending: readonly Promise<unknown>[]): Promise<void> {
    const full = new Promise<void>((resolve) => {
      this.#hurry = resolve;
    });
    const text = `sinks have not sent everything after ${SINKS_MS} ms: a kill of the process would lose it; use enableCache`;
    const sent = within(this.#setup.clock, Promise.allSettled(sending), SINKS_MS, text);
    await Promise.race([sent, full]).catch((error) => this.#setup.failed(error));
  }
}

/** @throws StreamFailure which names the node whose state cannot be saved */
function serialized(saved: Saved): Buffer {
  try {
    return serialize(saved);
  } catch (error) {
    const [node] = Object.entries(saved.states).find(([, state]) => !canSerialize(state)) ?? ['the rule'];
    throw new StreamFailure(`the state of ${node} cannot be saved: ${errorText(error)}; use qos 0`, error);
  }
}

function canSerialize(state: unknown): boolean {
  try {
    serialize(state);
    return true;
  } catch {
    return false;
  }
}
