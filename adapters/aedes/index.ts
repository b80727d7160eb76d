/// <reference types="node" preserve="true" />
/** A broker with the interface of Aedes 1.x: an app changes one import and runs on embermq. */
export { Aedes } from './aedes.ts';
export type { Client } from './client.ts';
export type {
  AedesPublishPacket,
  ConnackPacket,
  ConnectPacket,
  PingreqPacket,
  PublishPacket,
  PubrelPacket,
  SubscribePacket,
  Subscription,
  Subscriptions,
  UnsubscribePacket,
  WillPacket
} from './packets.ts';
export {
  type AedesEvents,
  type AedesOptions,
  AuthErrorCode,
  type AuthenticateError,
  type AuthenticateHandler,
  type AuthorizeForwardHandler,
  type AuthorizePublishHandler,
  type AuthorizeSubscribeHandler,
  type ClientEvents,
  type Connection,
  type DeliverFunction,
  type Done,
  type PreConnectHandler,
  type PublishedHandler
} from './types.ts';
