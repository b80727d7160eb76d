import type { TRecord, TUnion } from 'typebox';
import type { AuditEntry, Broker } from '../../../lib/index.ts';
import type { TrustedProxies } from '../../upgrades/index.ts';
import type { Call } from '../call.ts';
import { clientAddress } from '../proxies.ts';
import type { Operation, RestRequest } from './operation.ts';

/** Entries of a batch, and of a list of names, that are recorded. */
const MAX_ENTRIES = 20;
/** Longer values are truncated. */
const MAX_CHARACTERS = 256;

/** Settings of the audit of an interface. */
interface AuditSettings {
  /** The parameters of the query and the body in the log; see `ReplyStyle`. */
  readonly recorded: ReadonlySet<string>;
  /** Called with each entry. */
  readonly audit?: ((entry: AuditEntry) => void) | undefined;
  readonly trustedProxies: TrustedProxies;
}

/** The columns of an operation that the log reads. */
type AuditedRow = Pick<Operation, 'name' | 'method' | 'path' | 'body' | 'isReading' | 'isFrequent' | 'audited'>;
interface AuditedRequest extends Omit<RestRequest, 'row'> {
  readonly row: AuditedRow | undefined;
}

/** Reports the changes that are made through a mount to the audit log of the broker. */
export class Audit {
  readonly #broker: Broker;
  readonly #settings: AuditSettings;
  #remoteAddress: string | undefined = undefined;
  /** The IP address for `#remoteAddress`. */
  #address: string | undefined = undefined;

  constructor(broker: Broker, settings: AuditSettings) {
    this.#broker = broker;
    this.#settings = settings;
  }

  /** The address of the caller. That of a connection without trusted proxies is read once for several requests. */
  #addressOf(call: Call): string | undefined {
    const { trustedProxies } = this.#settings;
    if (!trustedProxies.isEmpty) return clientAddress(call, trustedProxies);
    if (call.remoteAddress !== this.#remoteAddress) {
      this.#remoteAddress = call.remoteAddress;
      this.#address = clientAddress(call, trustedProxies);
    }
    return this.#address;
  }

  /**
   * Record a request that was answered. Requests that only read, and requests with rejected credentials, are left out.
   * @param answer the status of the answer and the code in its body
   */
  add(request: AuditedRequest, answer: { readonly status: number; readonly code: number }): void {
    const { row, caller, call } = request;
    if (row === undefined || row.method === 'GET' || row.isReading === true || caller === undefined) return;
    const { audit } = this.#broker.monitor;
    const { status, code } = answer;
    const outcome = { operation: row.name, caller, address: this.#addressOf(call), status, code };
    const repeated = row.isFrequent ? audit.repeat(outcome) : undefined;
    const tell = this.#settings.audit;
    if (repeated !== undefined && tell === undefined) return;
    const parameters = this.#parameters(row, request);
    const { kind, id } = caller;
    const entry =
      repeated === undefined
        ? audit.record({
            ...outcome,
            caller: id === undefined ? { kind } : { kind, id: cut(id) },
            request: `${row.method} ${row.path}`,
            parameters
          })
        : { ...repeated, parameters };
    try {
      tell?.(entry);
    } catch (error) {
      this.#broker.failed(error, 'the function "audit" of a REST interface');
    }
  }

  #parameters(row: AuditedRow, { params, given, input }: AuditedRequest): Record<string, unknown> {
    const parameters: Record<string, unknown> = {};
    const { recorded } = this.#settings;
    const body = hasFreeNames(row.body) ? undefined : given?.body;
    if (Array.isArray(body)) {
      parameters.entries = body.slice(0, MAX_ENTRIES).map((entry) => add(entry, {}, recorded));
      parameters.entry_count = body.length;
    } else add(body, parameters, recorded);
    add(given?.query, parameters, recorded);
    if (input?.body !== undefined) add(row.audited?.(input), parameters);
    return add(params, parameters);
  }
}

/** Check whether callers choose the names in a body, such as those of properties. Its values may be secret, whatever their names. */
function hasFreeNames(schema: Operation['body']): boolean {
  const { patternProperties, anyOf = [] } = (schema ?? {}) as Partial<TRecord & TUnion>;
  return patternProperties !== undefined || anyOf.some(hasFreeNames);
}

/**
 * Add the values of parameters that are texts, numbers, flags or lists of texts.
 * @param names default: all of them
 */
function add(given: unknown, to: Record<string, unknown>, names?: ReadonlySet<string>): Record<string, unknown> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return to;
  for (const [name, value] of Object.entries(given)) {
    if (names?.has(name) === false) continue;
    if (typeof value === 'string') to[name] = cut(value);
    else if (typeof value === 'number' || typeof value === 'boolean') to[name] = value;
    else if (Array.isArray(value) && value.every((each) => typeof each === 'string'))
      to[name] = value.slice(0, MAX_ENTRIES).map(cut);
  }
  return to;
}

function cut(text: string): string {
  return text.length <= MAX_CHARACTERS ? text : `${text.slice(0, MAX_CHARACTERS)}...`;
}
