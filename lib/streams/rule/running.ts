import type { Clock } from '../../base/clock.ts';
import type { Checkpoints } from '../checkpoints/checkpoints.ts';
import type { StreamFunctionTools } from '../function.ts';
import type { Consumer } from '../graph/consumer.ts';
import type { Pulse } from '../graph/counters.ts';
import { Graph } from '../graph/graph.ts';
import { GraphEnd } from '../graph/graph-end.ts';
import type { StreamSampler } from '../graph/samples.ts';
import type { OutputRows, SinkNode } from '../graph/sink-node.ts';
import type { LookupTable } from '../operators/operator.ts';
import type { PlannedStream, StreamPlan } from '../plan/plan.ts';
import { FirstRows } from '../sources/first-rows.ts';
import type { Attachment } from '../sources/hub.ts';
import type { Collection, Tuple } from '../values/tuple.ts';

/** Dependencies of a running rule on the service. */
interface RunningHost {
  readonly clock: Clock;
  /**
   * Attach a consumer of the rule to a stream or table.
   * @param first takes the first rows of a stream
   * @throws the reason why its source cannot be used
   */
  attach(stream: PlannedStream, consumer: Consumer, first: FirstRows | undefined): Attachment;
  /** Note that rows reach the rule: those that were held back for it come first. */
  attached(stream: PlannedStream, consumer: Consumer): void;
  /** Pass an emission to those who iterate over emissions. */
  emitted(rows: OutputRows): void;
  /** Note that work continues after a call has returned. */
  during(work: Promise<unknown>): void;
  /** Report that the rule ended before it received all rows of a message, or the messages after it. */
  dropped(stream: PlannedStream, rows: number, messages: number): void;
  /** Report that a node failed to process an item. @param item undefined if there is none */
  failed(node: string, error: unknown, item?: Tuple | Collection): void;
  /** The checkpoints of the rule; undefined if it makes none. */
  checkpoints?(graph: Graph): Checkpoints;
}

/** The resources that are opened before a rule runs. */
interface Opened {
  readonly pulse: Pulse;
  readonly tools: StreamFunctionTools;
  readonly sinks: readonly SinkNode[];
  /** By position of the source. */
  readonly lookups: ReadonlyMap<number, LookupTable>;
  readonly sampler: StreamSampler;
}

/** A running rule: its graph between sources and sinks. */
export class Running {
  readonly graph: Graph;
  readonly #plan: StreamPlan;
  readonly #opened: Opened;
  readonly #host: RunningHost;
  readonly #attachments = new Map<number, Attachment>();
  readonly #checkpoints: Checkpoints | undefined;
  /** Sinks without room; undefined if there have been none. */
  #full: Set<SinkNode> | undefined;
  #isClosed = false;

  constructor(plan: StreamPlan, opened: Opened, host: RunningHost) {
    this.#plan = plan;
    this.#opened = opened;
    this.#host = host;
    const { pulse, tools, sinks, lookups, sampler } = opened;
    const outputs = new GraphEnd(sinks, tools.frame, (rows) => host.emitted(rows));
    const failed: RunningHost['failed'] = (...failure) => host.failed(...failure);
    this.graph = new Graph(plan, { clock: host.clock, pulse, tools, lookups, sampler, failed }, outputs);
    this.#checkpoints = host.checkpoints?.(this.graph);
  }

  /**
   * Start the flow of rows. Tables come first, so that streams find their rows.
   * @throws the reason why a source cannot be used; StreamFailure if the last checkpoint cannot be used
   */
  async begin(): Promise<void> {
    this.#checkpoints?.load();
    for (const kind of ['table', 'stream'] as const) {
      if (kind === 'stream') {
        // in one turn: a window must not end before it has its rows
        this.graph.open();
        this.#checkpoints?.replay();
      }
      const streams = this.#plan.streams.filter((stream) => stream.kind === kind);
      for (const stream of streams) {
        const { position } = stream;
        const entry = this.graph.inputs.get(position);
        if (entry === undefined) continue;
        // a rule that continues from a checkpoint has already received the first rows
        const first = kind === 'table' || this.#checkpoints?.isContinued === true ? undefined : new FirstRows(entry);
        const behind = first ?? entry;
        const consumer = this.#checkpoints?.consumerOf(position, behind) ?? behind;
        const attachment = this.#host.attach(stream, consumer, first);
        this.#attachments.set(position, attachment);
        if (this.#isFull) attachment.setFull(true);
        this.#host.attached(stream, consumer);
        if (first !== undefined && consumer === first)
          attachment.fed.then(() => attachment.swap(entry)).catch(() => undefined); // `opened` rejects with the reason
      }
      const attachments = streams.flatMap(({ position }) => this.#attachments.get(position) ?? []);
      await Promise.all(attachments.map((each) => (kind === 'table' ? each.fed : each.opened)));
    }
    await this.#begun();
  }

  /**
   * Make checkpoints only after all first rows have arrived: after a crash before that, the rule receives them again.
   */
  async #begun(): Promise<void> {
    const checkpoints = this.#checkpoints;
    if (checkpoints === undefined) return;
    const fed = Promise.all(Array.from(this.#attachments.values(), (attachment) => attachment.fed));
    if (checkpoints.isContinued) {
      await fed;
      checkpoints.begun();
    } else this.#host.during(fed.then(() => this.#isClosed || checkpoints.begun()));
  }

  /** Note that a sink has no room, or has room again. Sources that can wait do not read in between. */
  filled(sink: SinkNode, isFull: boolean): void {
    if (isFull) (this.#full ??= new Set()).add(sink);
    else this.#full?.delete(sink);
    for (const attachment of this.#attachments.values()) attachment.setFull(this.#isFull);
  }

  get #isFull(): boolean {
    return this.#full !== undefined && this.#full.size > 0;
  }

  /** The counters of all nodes, in the order of the data flow. */
  metrics(): Record<string, number | string> {
    const operators = this.graph.metrics((position) => this.#attachments.get(position)?.connection);
    return Object.fromEntries([...operators, ...this.#opened.sinks.flatMap((sink) => sink.metrics())]);
  }

  /** Stop the flow. Resolves when sources and sinks are closed. */
  async close(): Promise<void> {
    const { pulse, sinks, lookups } = this.#opened;
    this.#isClosed = true;
    for (const stream of this.#plan.streams) {
      const { rows, messages } = this.#attachments.get(stream.position)?.left ?? { rows: 0, messages: 0 };
      if (rows + messages > 0) this.#host.dropped(stream, rows, messages);
    }
    const detached = [...this.#attachments.values()].map((attachment) => attachment.detach());
    this.#attachments.clear();
    const drained = this.#checkpoints?.drained();
    if (drained !== undefined) await drained;
    const save = this.#checkpoints?.end();
    this.graph.close();
    pulse.close();
    const closed = [
      ...detached,
      ...sinks.map(({ target }) => target.close()),
      ...[...lookups.values()].map(async ({ open }) => open.close())
    ];
    for (const result of await Promise.allSettled(closed))
      if (result.status === 'rejected') this.#host.failed('close', result.reason);
    await save?.();
  }
}
