import type { NodeCounters } from './counters.ts';

/** The connection state of a source or a sink in the status. */
export interface ConnectionCounters {
  /** 1: connected, 0: connecting, -1: disconnected. */
  readonly status: 1 | 0 | -1;
  /** Wall-clock milliseconds; 0: never. */
  readonly connectedAt: number;
  readonly disconnectedAt: number;
  readonly disconnectedMessage: string;
  readonly triedAt: number;
}

/** The values that are not in the counters of a node. */
interface Others {
  /** Items that were counted by its inputs, and by those of the next node. Default 0. */
  readonly received?: number;
  readonly passed?: number;
  /** Number of items that wait. Default 0. */
  readonly pending?: number;
  readonly connection?: ConnectionCounters | undefined;
}

/** The counters of a node by name, in the documented order: `op_2_filter_0_records_in_total`. */
export function metricsOf(
  name: string,
  counters: NodeCounters,
  { received = 0, passed = 0, pending = 0, connection }: Others
): [string, number | string][] {
  const { latencyUs } = counters;
  const rows: [string, number | string][] = [
    ['records_in_total', counters.recordsIn + received],
    ['records_out_total', counters.recordsOut + passed],
    ['exceptions_total', counters.exceptions],
    ['process_latency_ms', Math.round(latencyUs / 1000)],
    ['process_latency_us', latencyUs],
    ['buffer_length', pending],
    ['last_invocation', localTime(counters.lastAt)],
    ...(counters.more ?? []),
    ['last_exception', counters.lastException],
    ['last_exception_time', localTime(counters.lastExceptionAt)],
    ...(connection === undefined ? [] : connectionRows(connection))
  ];
  return rows.map(([suffix, value]) => [`${name}_0_${suffix}`, value]);
}

function connectionRows(connection: ConnectionCounters): [string, number | string][] {
  return [
    ['connection_status', connection.status],
    ['connection_last_connected_time', localTime(connection.connectedAt)],
    ['connection_last_disconnected_time', localTime(connection.disconnectedAt)],
    ['connection_last_disconnected_message', connection.disconnectedMessage],
    ['connection_last_try_time', localTime(connection.triedAt)]
  ];
}

/** A time in the zone of the process as ISO 8601 without a zone, or 0 for never: `2026-01-02T15:04:05.999`. */
function localTime(timeMs: number): string | number {
  if (timeMs === 0) return 0;
  const date = new Date(timeMs);
  const local = new Date(timeMs - date.getTimezoneOffset() * 60_000).toISOString().slice(0, -1);
  return local.replace(/\.?0+$/, '');
}
