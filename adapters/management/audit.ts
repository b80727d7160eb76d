import type { AuditEntry, Broker } from '../../lib/index.ts';
import { type Call, type Caller, clientAddress, type Fault, type TrustedProxies } from '../rest/index.ts';
import { CODES } from './codes.ts';
import type { AuditedNames, Operation } from './operation.ts';

/** Facts about a request while it is handled. */
export interface ChangeRequest {
  row?: Operation;
  params?: Readonly<Record<string, string>>;
  caller?: Caller;
  query?: Readonly<Record<string, unknown>>;
  body?: unknown;
}

/**
 * The query and body parameters that the audit log contains in addition to those of paths. All others are left out:
 * passwords, secrets, payloads, the values of options. A parameter that may have a secret must not be added.
 */
const RECORDED: ReadonlySet<string> = new Set([
  'clientid',
  'client_id',
  'username',
  'login',
  'is_superuser',
  'topic',
  'topics',
  'qos',
  'retain',
  'action',
  'access',
  'all',
  'who',
  'as',
  'by',
  'reason',
  'desc',
  'at',
  'until',
  'tags',
  'app_id',
  'name',
  'status',
  'id',
  'type',
  'enabled',
  'on_action_failed',
  'test',
  'expired',
  'mode',
  'threshold_ms',
  'limit',
  'expiry_s',
  'duration_s',
  'confirm',
  'key',
  'ip_address',
  'zone',
  'conn_state',
  'clean_start',
  'proto_name',
  'proto_ver',
  '_like_clientid',
  '_like_username',
  '_gte_created_at',
  '_lte_created_at',
  '_gte_connected_at',
  '_lte_connected_at'
]);
/** Entries of a batch, and of a list of names, that are recorded. */
const MAX_ENTRIES = 20;
/** Longer values are truncated. */
const MAX_CHARACTERS = 256;

const SUCCESS = { status: 200, code: 0 };

/** Reports the changes that are made through a mount to the audit log of the broker. */
export class Audit {
  readonly #broker: Broker;
  readonly #settings: {
    readonly audit: ((entry: AuditEntry) => void) | undefined;
    readonly trustedProxies: TrustedProxies;
  };

  #remoteAddress: string | undefined = undefined;
  /** The IP address for `#remoteAddress`. */
  #address: string | undefined = undefined;

  constructor(
    broker: Broker,
    settings: {
      readonly audit: ((entry: AuditEntry) => void) | undefined;
      readonly trustedProxies: TrustedProxies;
    }
  ) {
    this.#broker = broker;
    this.#settings = settings;
  }

  /** The address of the caller. That of a connection without trusted proxies is read once for several requests. */
  #addressOf(call: Call): string | undefined {
    const { trustedProxies } = this.#settings;
    if (trustedProxies.networks.length > 0 || trustedProxies.isUnixTrusted) return clientAddress(call, trustedProxies);
    if (call.remoteAddress !== this.#remoteAddress) {
      this.#remoteAddress = call.remoteAddress;
      this.#address = clientAddress(call, trustedProxies);
    }
    return this.#address;
  }

  /**
   * Record a request that was answered. Requests that only read, and requests with rejected credentials, are left out.
   * @param fault undefined: the request succeeded
   */
  add({ row, params, caller, query, body }: ChangeRequest, call: Call, fault: Fault | undefined): void {
    if (row === undefined || row.method === 'GET' || caller === undefined) return;
    const { status, code } = fault === undefined ? SUCCESS : CODES[fault.kind];
    const { audit } = this.#broker.monitor;
    const outcome = { operation: row.name, caller, address: this.#addressOf(call), status, code };
    const repeated = row.isFrequent ? audit.repeat(outcome) : undefined;
    const tell = this.#settings.audit;
    if (repeated !== undefined && tell === undefined) return;
    const parameters = addBody(body, {});
    if (query !== undefined) add(query, parameters);
    if (body !== undefined) addNames(row.audited?.({ query: query ?? {}, body }) ?? {}, parameters);
    if (params !== undefined) add(params, parameters, true);
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
      this.#broker.failed(error, 'the function "audit" of a management interface');
    }
  }
}

function addBody(body: unknown, to: Record<string, unknown>): Record<string, unknown> {
  if (Array.isArray(body)) {
    to.entries = body.slice(0, MAX_ENTRIES).map((entry) => (isFields(entry) ? add(entry, {}) : {}));
    to.entry_count = body.length;
  } else if (isFields(body)) add(body, to);
  return to;
}

function isFields(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Add the values of parameters, except lists and objects.
 * @param isAll also add those that are not in `RECORDED`
 */
function add(given: object, to: Record<string, unknown>, isAll = false): Record<string, unknown> {
  for (const name in given) {
    if (!isAll && !RECORDED.has(name)) continue;
    const value = (given as Record<string, unknown>)[name];
    if (typeof value === 'string') to[name] = cut(value);
    else if (typeof value === 'number' || typeof value === 'boolean') to[name] = value;
  }
  return to;
}

/** Add what an operation reports about its own parameters; see `Operation.audited`. */
function addNames(given: AuditedNames, to: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === 'string') to[name] = cut(value);
    else if (value !== undefined) to[name] = typeof value === 'number' ? value : value.slice(0, MAX_ENTRIES).map(cut);
  }
}

function cut(text: string): string {
  return text.length <= MAX_CHARACTERS ? text : `${text.slice(0, MAX_CHARACTERS)}...`;
}
