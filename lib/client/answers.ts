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
      /** Properties of the response. Its correlation data is that of the request, and it has no response topic. */
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

/** Properties that belong to the delivery of a request, or would request a response to the response, without end. */
const NOT_ANSWERED = { responseTopic: undefined, subscriptionIdentifier: undefined, topicAlias: undefined };

/**
 * Call the handler of a request, and send the response. If the handler or the sending fails, the response has the code of the error.
 * @param send not called if the request has no response topic
 * @param failed reports an error of the handler or of `send`
 */
export async function answerTo<R extends Request>(
  request: R,
  handler: (request: R) => Answers,
  send: (response: Response) => Promise<unknown>,
  failed: (error: Error) => void
): Promise<void> {
  const { responseTopic, correlationData } = request.properties ?? {};
  const respond = async (answer: Answer): Promise<void> => {
    if (responseTopic === undefined) return;
    const { payload, properties } = isContent(answer) ? { payload: answer, properties: undefined } : answer;
    const correlation = correlationData === undefined ? undefined : { correlationData };
    const own = { ...properties, ...NOT_ANSWERED, ...correlation };
    await send({ topic: responseTopic, payload, qos: request.qos, properties: own });
  };
  try {
    const answer = (await handler(request)) as Answer;
    checkAnswer(answer);
    await respond(answer);
  } catch (error) {
    failed(asError(error));
    const failure = { properties: { userProperties: [[FAILURE, codeOf(error)]] } } as const;
    await respond(failure).catch(() => undefined); // it may fail as the response did
  }
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
  if (isContent(answer)) return;
  const isObject = typeof answer === 'object' && answer !== null && ('payload' in answer || 'properties' in answer);
  if (isObject && isContent(answer.payload)) return;
  const expected = 'a Buffer, Uint8Array, string, { payload, properties }, or nothing';
  throw new InvalidInput('MESSAGE_INVALID', 'response', expected, answer);
}

function codeOf(error: unknown): string {
  const code = (error as { readonly code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' && /^\w{1,64}$/.test(code) ? code : 'RESPONDER_FAILED';
}
