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
import type { StreamFunctionTools } from '../function.ts';
import type { Consumer } from '../graph/consumer.ts';
import type { Graph } from '../graph/graph.ts';
import type { SinkNode } from '../graph/sink-node.ts';
import type { PreparedMessage, StreamRecordStore } from '../host.ts';
import { MAX_AT_ONCE, SLICE_ROWS } from '../sources/lane.ts';
import type { StreamBounds } from '../types.ts';
import type { StreamRow } from '../values/tuple.ts';
import { StreamFailure } from '../values/values.ts';
import { within } from '../values/within.ts';
import type { LoggedRow, RuleLog } from './rule-log.ts';
import type { RuleMessages, TakenMessages } from './rule-messages.ts';

/** Version of the checkpoint format. Checkpoints of other versions are not used. */
const VERSION = 1;
/**
 * Time that a checkpoint waits for sinks that are sending. Items not sent by then are lost if the process is killed.
 */
const SINKS_MS = 5_000;
/** Number of taken rows at which they are removed from the list of waiting rows. */
const MAX_TAKEN = 1_024;

/** Maximum bytes of logged rows that wait for their turn: 16 MiB. Rows beyond this are passed on immediately. */
const MAX_WAITING = 16_777_216;

/** Time that a stopping rule waits for its last rows to be committed. */
const ROWS_MS = 5_000;
const REFUSED = 'a row was refused, because the store cannot be written at present';

/** Rows that wait for their commit or for their turn. */
interface WaitingRows {
  readonly entry: Consumer;
  readonly rows: readonly StreamRow[];
  readonly logged: LoggedRow;
}

/** The content of a checkpoint. */
interface Saved {
  readonly version: number;
  /** Identifies the definition of the rule: a checkpoint of another definition is not used. */
  readonly fingerprint: string;
  /** The states of the operators, by node. */
  readonly states: Readonly<Record<string, unknown>>;
  readonly hits: Hits;
  readonly groupHits: Hits;
  /** False if the rule was stopped before it received all first rows of its sources. */
  readonly isFed?: boolean;
}

interface Hits {
  readonly count: number;
  readonly lastAt: number;
}

/** A state of the rule that is about to be saved. */
interface Captured {
  readonly state: Buffer;
  /** Number of the first row that the state does not include. */
  readonly end: number;
  readonly taken: TakenMessages;
  /** Sends in progress. */
  readonly sending: readonly Promise<unknown>[];
}

/** Settings and dependencies of checkpoints. */
interface CheckpointSetup {
  readonly store: StreamRecordStore;
  readonly log: RuleLog;
  readonly messages: RuleMessages;
  /** The option `checkpointInterval`. */
  readonly intervalMs: number;
  readonly bounds: Pick<StreamBounds, 'checkpointRows' | 'checkpointBytes'>;
  readonly fingerprint: string;
  readonly clock: Clock;
  readonly tools: StreamFunctionTools;
  readonly sinks: readonly SinkNode[];
  /** Report an error that does not end the rule. */
  failed(error: unknown): void;
  /** Report a condition that is not an error. */
  warn(text: string): void;
  /** Wait for the next turn of the event loop. */
  pause(): Promise<void>;
  /** Called when no checkpoint can be made: the rule has to stop. */
  broken(error: unknown): void;
}

/**
 * The checkpoints of a rule that delivers at least once (`qos` 1) or exactly once (`qos` 2).
 *
 * A row is added to the log when it arrives, and its publisher is acknowledged when it is committed. A checkpoint
 * contains the states of all operators and replaces the rows that they have processed; after a crash, the rule
 * continues with the last checkpoint and the rows since then. The rows of a long message are also added in the turn of
 * their arrival, and reach the operators in slices, one in each turn. With `qos` 2, a row reaches the operators when it
 * is committed, and messages at this broker are published in the commit of the next checkpoint.
 */
export class Checkpoints {
  readonly #setup: CheckpointSetup;
  readonly #graph: Graph;
  /**
   * Rows that are not committed yet (`qos` 2) or wait for their turn, with their consumers; those before `#waitingAt`
   * have been taken.
   */
  #waiting: WaitingRows[] = [];
  #waitingAt = 0;
  #waitingBytes = 0;
  #isPassing = false;
  /** True while waiting rows are passed on in slices, one in each turn. */
  #isSlicing = false;
  /** Number of the first row that this run added to the log. */
  readonly #begin: number;
  /** True if the operators have processed the rows of the previous run. */
  #isReplayed = false;
  /** True if the sources are open and the rule has received their first rows: checkpoints are made. */
  #isBegun = false;
  #isContinued = false;
  #timer: unknown;
  #isDue = false;
  #isEnded = false;
  #last: Promise<void> = Promise.resolve();
  /** Called when the log is full while a checkpoint waits for sinks. */
  #hurry: () => void = () => undefined;
  /** Called when no row is waiting. */
  #arrived: () => void = () => undefined;

  constructor(setup: CheckpointSetup, graph: Graph) {
    this.#setup = setup;
    this.#graph = graph;
    this.#begin = setup.log.end;
    setup.log.ownedBy(this);
  }

  /**
   * Load the last checkpoint before the operators are opened. A checkpoint of another definition stays in the store
   * until `begun`.
   * @throws StreamFailure if it cannot be used; it is then deleted
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

  /** True if the rule continues from a checkpoint and has already received the first rows of its sources. */
  get isContinued(): boolean {
    return this.#isContinued;
  }

  /**
   * Replay the rows since the last checkpoint to the operators.
   * @throws StreamFailure if they cannot be read; they are then deleted
   */
  replay(): void {
    const { log, messages } = this.#setup;
    const waiting: WaitingRows[] = [];
    try {
      for (const { logged, position, rows } of log.rows(this.#begin)) {
        const known = this.#graph.inputs.get(position);
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

  /**
   * Called when the sources are open and the rule has received their first rows. The first checkpoint is made
   * immediately, because it records where windows end.
   */
  begun(): void {
    const { log } = this.#setup;
    log.forgetAside();
    this.#isBegun = true;
    if (log.state === undefined) this.#takeSoon();
    else this.#arm();
  }

  /** The consumer that a source feeds in place of an entry of the graph. */
  consumerOf(position: number, entry: Consumer): Consumer {
    const { messages } = this.#setup;
    const push = (row: StreamRow) => {
      const logged = this.#append(position, [row]);
      if (messages.isHolding || this.#isPassing || this.#waitingAt < this.#waiting.length)
        this.#wait({ entry, rows: [row], logged });
      else entry.push(row);
    };
    const fail: Consumer['fail'] = (...failure) => entry.fail(...failure);
    return {
      takesWhole: true, // rows that are not in the log when the turn ends would be lost in a crash
      push,
      fail,
      replace: (rows) => entry.replace?.(rows),
      many: () => {
        const many = entry.many?.() ?? entry;
        return {
          push,
          pushAll: (rows) => this.#wait({ entry: many, rows, logged: this.#append(position, rows) }),
          fail: (...failure) => many.fail(...failure)
        };
      }
    };
  }

  /**
   * Called when the rule stops and its sources are detached: resolves when the operators have processed the rows whose
   * commit is pending, because another definition of the rule would not process them. Undefined if there are none.
   */
  drained(): Promise<void> | undefined {
    if (this.#isEnded || !this.#isBegun || this.#waitingAt === this.#waiting.length) return undefined;
    const arrived = new Promise<void>((resolve) => {
      this.#arrived = resolve;
    });
    // rows that are still missing after a while are left to the next run, because they are in the log
    return within(this.#setup.clock, arrived, ROWS_MS, 'rows are not in the store').catch(() => undefined);
  }

  /**
   * Make the last checkpoint of a stopping rule, of the current operator states.
   * @returns a function that writes it when the sinks are closed
   */
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
      const { messages: back, bytes } = messages.take(); // messages that the last checkpoint put back come first
      const { taken } = captured;
      const all = { messages: [...back, ...taken.messages], bytes: bytes + taken.bytes };
      await this.#write({ ...captured, taken: all });
    };
  }

  // ------------------------------------------------------------------------------------------------------------------- rows

  #append(position: number, rows: readonly StreamRow[]): LoggedRow {
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

  /** Pass on the rows that are committed, up to the first that is not. */
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

  /** Pass on rows whose turn has come. @param most approximate number of rows @returns whether more rows are waiting */
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

  /** Make a checkpoint when the current row has passed through the operators. */
  #takeSoon(): void {
    if (!this.#isDue && this.#isBegun && !this.#setup.store.isFailed) this.#take();
  }

  /** Make a checkpoint after the previous ones. A checkpoint never begins within a row. */
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
    const targets = [...sinks.map(({ target }) => target), messages]; // in this order: items that sinks have collected are sent now
    const sending = targets.flatMap((target) => target.idle?.() ?? []);
    const states = this.#graph.save();
    const { hits, groupHits } = tools;
    const isFed = this.#isBegun || this.#isContinued;
    const { count, lastAt } = hits;
    const state = serialized({ version: VERSION, fingerprint, states, hits: { count, lastAt }, groupHits, isFed });
    if (state.length > bounds.checkpointBytes) {
      const text = `its checkpoint has ${state.length} bytes: more than bounds.checkpointBytes, ${bounds.checkpointBytes}; make its windows shorter, or raise it`;
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
    if (!log.isOwnedBy(this)) return; // the next run has the rows that caused these messages
    if (store.isFailed) {
      messages.putBack(taken); // included in the next checkpoint
      return;
    }
    const isSame = log.length === 0 && taken.messages.length === 0 && log.state?.equals(state);
    if (isSame) return;
    // in one turn, and therefore in one commit
    log.save(state, end);
    for (const message of prepared) messages.publish(message);
    await store.committed().catch(() => undefined); // its content is written again
  }

  /** Wait until the emissions of the operators are sent, because the checkpoint no longer contains them. */
  async #sent(sending: readonly Promise<unknown>[]): Promise<void> {
    const full = new Promise<void>((resolve) => {
      this.#hurry = resolve;
    });
    const text = `sinks have not sent all items after ${SINKS_MS} ms; if the process is killed now, these items are lost: use enableCache`;
    const sent = within(this.#setup.clock, Promise.allSettled(sending), SINKS_MS, text);
    await Promise.race([sent, full]).catch((error) => this.#setup.failed(error));
  }
}

/** @throws StreamFailure that names the node whose state cannot be saved */
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
