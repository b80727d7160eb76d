// Schemas come last, after the access rules and the publish hooks, so that they see the message that is routed. The
// publisher learns what is wrong with its message; the log of reasons, which operators read, gets no values of payloads.

import { isUtf8 } from '../../base/builtins.ts';
import { BrokerError } from '../../base/errors.ts';
import { Decider } from '../../events/deciders.ts';
import { isThenable } from '../../events/hooks.ts';
import type { Message } from '../../packets/message.ts';
import { isDeletion, setValues } from '../../packets/message-values.ts';
import { ReasonCode } from '../../packets/reason-codes.ts';
import type { ClientInfo } from '../../records/client.ts';
import { type Route, TopicKind } from '../../routing/route.ts';
import type { Decoding, SchemaIssue, SchemaResult, SchemaSuccess, TopicSchema } from '../../routing/topic-schemas.ts';
import type { PublishDecision } from '../../session/ports.ts';
import type { Services } from '../services.ts';

/** Maximum number of characters of a reason string, and of the place of an issue. */
const MAX_REASON = 256;
const MAX_PLACE = 64;

/** A message that is being checked. */
interface Checked {
  readonly message: Message;
  readonly route: Route;
  readonly schemas: readonly TopicSchema[];
  readonly client: ClientInfo | undefined;
  readonly values: Map<string, unknown>;
}

/** The refusal of a message. */
interface Refused {
  readonly reasonCode: number;
  readonly decider: Decider;
}

/** Checks messages by the schemas of their topic. */
export class SchemaChecks {
  readonly #services: Services;

  constructor(services: Services) {
    this.#services = services;
  }

  /** Check a message by all schemas of its route. Synchronous if they are. */
  check(message: Message, route: Route, client: ClientInfo | undefined): PublishDecision | Promise<PublishDecision> {
    return this.#checkFrom(0, { message, route, schemas: route.schemas, client, values: new Map() });
  }

  /** Check a view of a message that is retained. The broker does nothing to it again. */
  checkRetained(message: Message, route: Route): PublishDecision | Promise<PublishDecision> {
    const schemas = route.schemas.filter(({ act }) => act === undefined);
    return this.#checkFrom(0, { message, route, schemas, client: undefined, values: new Map() });
  }

  #checkFrom(at: number, checked: Checked): PublishDecision | Promise<PublishDecision> {
    const { route, schemas, values } = checked;
    for (; at < schemas.length; at++) {
      const schema = schemas[at];
      const outcome = schema.act?.(checked.message);
      if (outcome instanceof Decider)
        return { message: checked.message, route, reasonCode: ReasonCode.notAuthorized, decider: outcome };
      if (outcome !== undefined) {
        checked = { ...checked, message: outcome };
        continue;
      }
      if (isDeletion(checked.message)) continue;
      const result = this.#ask(schema, checked);
      if (isThenable(result)) return this.#later(result, at, checked);
      const refusal = note(result, schema, checked);
      if (refusal !== undefined) return refusal;
    }
    if (values.size > 0 && route.kind !== TopicKind.delayed) setValues(checked.message, values);
    return { message: checked.message, route, reasonCode: 0 };
  }

  #later(answer: Promise<SchemaSuccess | Refused>, at: number, checked: Checked): Promise<PublishDecision> {
    const { life, time } = this.#services;
    const { message, route, schemas } = checked;
    message.detach();
    const begun = life.number;
    return answer.then((result) => {
      if (life.number !== begun) return { message, route, reasonCode: ReasonCode.serverShuttingDown };
      time.read(); // the schema took time [MQTT-3.3.2-6]
      return note(result, schemas[at], checked) ?? this.#checkFrom(at + 1, checked);
    });
  }

  #ask(schema: TopicSchema, { message, client }: Checked): SchemaSuccess | Refused | Promise<SchemaSuccess | Refused> {
    const { announcer, work } = this.#services;
    const failed = (error: unknown): Refused => {
      if (error instanceof RangeError && schema.decode !== 'bytes' && isDeep(message.payload))
        return refusedBy(schema.filter, { message: 'the payload is nested too deeply' }, true);
      announcer.failed(error, `the schema of "${schema.filter}"`, client);
      const decider = new Decider('schema', { why: `filter "${schema.filter}": the schema has failed` });
      return { reasonCode: ReasonCode.implementationSpecificError, decider };
    };
    try {
      const input = decoded(message, schema.decode);
      if (input.fault !== undefined) return refusedBy(schema.filter, { message: input.fault }, true);
      const result = work.run((value: unknown) => {
        const answer = schema.validate(value, message.payload.length);
        return isThenable(answer) ? Promise.resolve(answer) : answer; // it may be a promise of another library
      }, input.value);
      if (!isThenable(result)) return answerOf(schema, result);
      return this.#within(result, schema.filter)
        .then((answer) => answerOf(schema, answer))
        .catch(failed);
    } catch (error) {
      return failed(error);
    }
  }

  /** Wait for an answer, for as long as for that of a hook. */
  #within(result: Promise<SchemaResult>, filter: string): Promise<SchemaResult> {
    const { clock, settings } = this.#services;
    const limitMs = settings.hookTimeout;
    return new Promise((resolve, reject) => {
      const text = `the schema of "${filter}" did not answer within ${limitMs} ms (option hookTimeout)`;
      const timer = clock.setTimeout(() => reject(new BrokerError('HOOK_TIMEOUT', text)), limitMs);
      const end = () => clock.clearTimeout(timer);
      result.then(resolve, reject).finally(end);
    });
  }
}

/** Note the answer of a schema. @returns undefined: it accepts the message */
function note(
  result: SchemaSuccess | Refused,
  schema: TopicSchema,
  { message, route, values }: Checked
): PublishDecision | undefined {
  if ('decider' in result) return { message, route, ...result };
  values.set(schema.filter, result.value);
  return undefined;
}

/** @throws BrokerError if a schema of the app returns something else */
function answerOf({ filter, hasPlainIssues }: TopicSchema, result: SchemaResult): SchemaSuccess | Refused {
  if (typeof result === 'object' && result !== null) {
    const { issues } = result;
    if (Array.isArray(issues)) return refusedBy(filter, issues[0], hasPlainIssues);
    if (issues === undefined && 'value' in result) return { value: result.value };
  }
  throw new BrokerError('HOOK_ANSWER_INVALID', 'a schema must return { value } or { issues }');
}

/** The payload in the form that a schema gets. */
function decoded({ payload }: Message, decode: Decoding): { readonly value?: unknown; readonly fault?: string } {
  if (decode === 'bytes') return { value: payload };
  if (!isUtf8(payload)) return { fault: 'the payload is not UTF-8' };
  const text = payload.toString();
  if (decode === 'text') return { value: text };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { fault: 'the payload is not JSON' };
  }
}

/** Levels of brackets that every schema can check; more may exceed the stack. */
const MAX_SURE_DEPTH = 500;
const OPENING = new Set(Buffer.from('[{'));
const CLOSING = new Set(Buffer.from(']}'));

/** True if a payload has so many levels that its publisher has caused the end of the stack. Brackets in strings count, too. */
function isDeep(payload: Buffer): boolean {
  let depth = 0;
  for (const byte of payload) {
    if (OPENING.has(byte) && ++depth > MAX_SURE_DEPTH) return true;
    if (CLOSING.has(byte)) depth--;
  }
  return false;
}

/** @param isPlain the message of the issue contains no values of the payload */
function refusedBy(filter: string, issue: Partial<SchemaIssue> | null | undefined, isPlain: boolean): Refused {
  const { message: given, path } = issue ?? {};
  const message = typeof given === 'string' ? given : 'it is not valid';
  const names = Array.isArray(path) ? path.map((part) => String(part?.key ?? part)) : [];
  const place = cut(names.join('.'), MAX_PLACE);
  const shown = isPlain ? `${place} ${message}`.trimStart() : `${place || 'the payload'} is not valid`;
  const reasonString = cut(place === '' ? message : `${place}: ${message}`, MAX_REASON);
  const decider = new Decider('schema', { why: `filter "${filter}": ${shown}`, reasonString });
  return { reasonCode: ReasonCode.payloadFormatInvalid, decider };
}

/** The beginning of a string, as MQTT can transfer it. */
function cut(text: string, max: number): string {
  return Buffer.from(text.slice(0, max)).toString().replaceAll('\0', '');
}
