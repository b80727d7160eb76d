/// <reference types="node" preserve="true" />
/** A broker with the interface of Aedes 1.x: an app changes one import and runs on embermq. */
export { Aedes } from './aedes.ts';
export type { Client, SubscribeInput, UnsubscribeInput } from './client.ts';
export type {
  AedesPublishPacket,
  ConnackPacket,
  ConnectPacket,
  PingreqPacket,
  PublishInput,
  PublishPacket,
  PublishProperties,
  PubrelPacket,
  SubscribePacket,
  Subscription,
  Subscriptions,
  UnsubscribePacket,
  UserProperties,
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
  type Handlers,
  type PreConnectHandler,
  type PublishedHandler,
  type UpgradeRequest
} from './types.ts';
