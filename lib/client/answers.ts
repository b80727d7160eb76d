// The response to a request, as a client and the app make it. A requester should learn quickly that a handler has
// failed, but not more than a code: the message of an error may contain what other clients must not see.

import { asError, InvalidInput } from '../base/errors.ts';
import type { MessageInput } from '../packets/message.ts';
import type { Properties, QoS } from '../packets/types.ts';

/** The user property of a response whose responder has failed. Its value is a code. */
const FAILURE = 'response-error';

/** The response of a responder: its payload, or its payload and properties. Nothing: an empty payload. */
export type Answer =
  | Buffer
  | Uint8Array
  | string
  | {
      /** Default: empty. */
      readonly payload?: MessageInput['payload'];
      /** Properties of the response. Its correlation data is that of the request. */
      readonly properties?: MessageInput['properties'];
    }
  | undefined;

/** The response of a handler, or a promise of it. */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler may return nothing
export type Answers = Answer | void | Promise<Answer | void>;

/** The part of a request that a response depends on. */
interface Request {
  readonly qos: QoS;
  readonly properties?: Properties | undefined;
}

/** A response to a request: `topic` is the Response Topic that the requester has given. */
type Response = MessageInput & { readonly qos: QoS };

/**
 * Call the handler of a request, and make the response.
 * @param failed called if the handler throws or rejects; the response then has the code of the error
 * @returns undefined: the request has no response topic
 */
export async function answerTo<R extends Request>(
  request: R,
  handler: (request: R) => Answers,
  failed: (error: Error) => void
): Promise<Response | undefined> {
  const { responseTopic, correlationData } = request.properties ?? {};
  let answer: Answer;
  try {
    answer = (await handler(request)) as Answer;
    checkAnswer(answer);
  } catch (error) {
    failed(asError(error));
    answer = { properties: { userProperties: [[FAILURE, codeOf(error)]] } };
  }
  if (responseTopic === undefined) return undefined;
  const { payload, properties } = isContent(answer) ? { payload: answer, properties: undefined } : answer;
  const correlation = correlationData === undefined ? undefined : { correlationData };
  return { topic: responseTopic, payload, qos: request.qos, properties: { ...properties, ...correlation } };
}

/** The code of the failure of the responder; undefined: it has not failed. */
export function failureIn({ userProperties }: Properties): string | undefined {
  return userProperties?.find(([name]) => name === FAILURE)?.[1];
}

function isContent(answer: Answer): answer is Buffer | Uint8Array | string | undefined {
  return answer === undefined || typeof answer === 'string' || answer instanceof Uint8Array;
}

/** @throws InvalidInput MESSAGE_INVALID */
function checkAnswer(answer: Answer): void {
  const payload = typeof answer === 'object' && answer !== null && !isContent(answer) ? answer.payload : answer;
  if (isContent(payload)) return;
  const expected = 'a Buffer, Uint8Array, string, { payload, properties }, or nothing';
  throw new InvalidInput('MESSAGE_INVALID', 'response', expected, answer);
}

function codeOf(error: unknown): string {
  const code = (error as { readonly code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' && /^\w{1,64}$/.test(code) ? code : 'RESPONDER_FAILED';
}
