import type { Clock } from '../base/clock.ts';
import type { FunctionTools } from './functions/function.ts';
import { Graph } from './graph/graph.ts';
import type { ConnectionFigures } from './graph/metrics.ts';
import { Outputs } from './graph/outputs.ts';
import type { OutputRows, SinkNode } from './graph/sink-node.ts';
import type { PlannedStream, StreamPlan } from './plan/plan.ts';
import type { Row } from './tuple.ts';

/** What takes the rows of a source. */
export interface RowConsumer {
  row(row: Row): void;
  /** Something of the source could not be read. */
  failed(error: unknown): void;
  /** The rows of a table are complete. */
  end(): void;
}

/** A source that sends its rows to a rule. */
export interface RowAttachment {
  /** undefined: it has no connection. */
  readonly connection: ConnectionFigures | undefined;
  detach(): void;
}

/** What a running rule uses of the service. */
export interface RunningHost {
  readonly clock: Clock;
  /** Let the rows of a stream or table reach a rule. */
  attach(stream: PlannedStream, consumer: RowConsumer): RowAttachment;
  /** An emission, for those who iterate. */
  emitted(rows: OutputRows): void;
  /** Something has failed for an item, in a node. */
  failed(node: string, error: unknown): void;
}

/** A rule that runs: its graph between sources and sinks. */
export class Running {
  readonly graph: Graph;
  readonly #plan: StreamPlan;
  readonly #sinks: readonly SinkNode[];
  readonly #host: RunningHost;
  readonly #attachments = new Map<number, RowAttachment>();

  constructor(plan: StreamPlan, sinks: readonly SinkNode[], tools: FunctionTools, host: RunningHost) {
    this.#plan = plan;
    this.#sinks = sinks;
    this.#host = host;
    const { clock } = host;
    const outputs = new Outputs(sinks, (rows) => host.emitted(rows));
    this.graph = new Graph(plan, { clock, tools, failed: (node, error) => host.failed(node, error) }, outputs);
  }

  /** Let rows flow. Tables come first, so that streams find them. */
  begin(): void {
    this.graph.open();
    const streams = this.#plan.streams.filter(({ kind }) => kind !== 'lookup');
    const ordered = [...streams].sort((a, b) => Number(b.kind === 'table') - Number(a.kind === 'table'));
    for (const stream of ordered) {
      const entry = this.graph.entries.get(stream.position);
      if (entry === undefined) continue;
      const consumer = {
        row: (row: Row) => entry.push(row),
        failed: (error: unknown) => entry.fail(error),
        end: () => entry.end()
      };
      this.#attachments.set(stream.position, this.#host.attach(stream, consumer));
    }
  }

  /** The figures of all nodes, in the order of the data. */
  metrics(): Record<string, number | string> {
    const operators = this.graph.metrics((position) => this.#attachments.get(position)?.connection);
    return Object.fromEntries([...operators, ...this.#sinks.flatMap((sink) => sink.metrics())]);
  }

  /** Stop the flow. Resolves when the sinks are closed. */
  async close(): Promise<void> {
    for (const attachment of this.#attachments.values()) attachment.detach();
    this.#attachments.clear();
    this.graph.close();
    const closed = await Promise.allSettled(this.#sinks.map(({ target }) => target.close()));
    for (const [index, result] of closed.entries())
      if (result.status === 'rejected') this.#host.failed(this.#sinks[index].name, result.reason);
  }
}
