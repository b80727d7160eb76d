import { InvalidInput } from '../../lib/errors.ts';
import { type OptionTable, readOptions } from '../../lib/options-table.ts';
import type { Place } from './bind.ts';
import {
  type LISTENER_OPTIONS,
  TCP_OPTIONS,
  type TcpOptions,
  UNIX_OPTIONS,
  type UnixOptions,
  type Values
} from './options.ts';

type Common = Values<typeof LISTENER_OPTIONS>;

/** A listener's description with all options read: what `tcp`, `tls`, `ws`, `wss` and `unix` make and `listen` takes. */
export class Transport {
  readonly kind: 'tcp' | 'tls' | 'ws' | 'wss' | 'unix';
  readonly common: Common;
  readonly place: Place;

  constructor(kind: Transport['kind'], common: Common, place: Place) {
    this.kind = kind;
    this.common = common;
    this.place = place;
  }
}

/**
 * Describe a TCP listener.
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID or OPTION_MISSING
 */
export function tcp(options: TcpOptions): Transport {
  const read = readFor(TCP_OPTIONS, options, 'tcp', 'port');
  return new Transport('tcp', read, portPlace(read));
}

/**
 * Describe a listener on a Unix socket. The file permissions of the socket say who may connect.
 * @throws InvalidInput OPTION_UNKNOWN, OPTION_INVALID or OPTION_MISSING
 */
export function unix(options: UnixOptions): Transport {
  const read = readFor(UNIX_OPTIONS, options, 'unix', 'path');
  return new Transport('unix', read, { path: read.path as string, mode: read.mode, backlog: read.backlog });
}

function readFor<T extends OptionTable>(
  table: T,
  options: object,
  kind: Transport['kind'],
  needed: keyof T & string
): Values<T> {
  const read = readOptions(table, options, `${kind} listener`) as Values<T>;
  if (read[needed] === undefined)
    throw new InvalidInput('OPTION_MISSING', needed, `the ${needed} to listen on`, undefined);
  return read;
}

function portPlace(read: Values<typeof TCP_OPTIONS>): Place {
  const { port, host, ipv6Only, backlog, noDelay, tcpKeepAlive } = read;
  return { port: port as number, host, ipv6Only, backlog, noDelay, tcpKeepAlive };
}
