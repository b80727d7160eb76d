/// <reference types="node" preserve="true" />
/** The MQTT client over a stream of bytes, without the broker: `embermq/client`. */
export type { Answer, Answers } from './answers.ts';
export { Client, connectClient } from './client.ts';
export type { ClientListener } from './listeners.ts';
// under the names that they have in `embermq`, where the broker has a MessageHandler and SubscribeOptions, too
export type { MessageHandler as ClientMessageHandler, SubscribeOptions as ClientSubscribeOptions } from './options.ts';
export {
  type AuthAnswer,
  type AuthChallenge,
  type ClientEvents,
  type ClientOptions,
  type DisconnectOptions,
  type FilterInput,
  type MessagesOptions,
  type PublishOptions,
  type PublishResult,
  type ReceivedMessage,
  Refused,
  type RequestHandler,
  type RequestOptions,
  type RespondOptions,
  type UnsubscribeOptions,
  type WillInput
} from './options.ts';
