import { asError, ProtocolError } from '../base/errors.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import type { PublishPacket } from '../packets/types.ts';
import type { ClientConnection } from './connection.ts';
import type { ClientOptions, ReceivedMessage } from './options.ts';
import type { ClientSession } from './session.ts';

/** The messages that a client receives: topic aliases, QoS 2 duplicates, and their acknowledgement. */
export class IncomingMessages {
  readonly #connection: ClientConnection;
  readonly #session: ClientSession;
  readonly #deliver: (message: ReceivedMessage) => void;
  readonly #isManual: boolean;
  readonly #onReleased: ClientOptions['onReleased'];
  readonly #topicAliasMaximum: number;
  /** Undefined until the server assigns a topic alias. */
  #aliases: Map<number, string> | undefined = undefined;

  constructor(
    connection: ClientConnection,
    session: ClientSession,
    deliver: (message: ReceivedMessage) => void,
    options: ClientOptions
  ) {
    this.#connection = connection;
    this.#session = session;
    this.#deliver = deliver;
    this.#isManual = options.acknowledge === 'manual';
    this.#onReleased = options.onReleased;
    this.#topicAliasMaximum = options.topicAliasMaximum ?? options.properties?.topicAliasMaximum ?? 0;
  }

  /** Process a PUBLISH. @throws ProtocolError for a topic alias that is too large or not assigned */
  receive(packet: PublishPacket): void {
    const topic = this.#topicOf(packet);
    const { messageId = 0, payload, qos, retain, dup } = packet;
    const { incoming } = this.#session;
    if (qos === 2) {
      const wasAcknowledged = incoming.get(messageId);
      if (wasAcknowledged) this.#connection.send({ cmd: 'pubrec', messageId, reasonCode: 0 });
      if (wasAcknowledged !== undefined) return; // a duplicate must not be delivered again [MQTT-4.3.3-10]
      incoming.set(messageId, false);
    }
    let isAcknowledged = qos === 0;
    const ack = (reasonCode = 0) => {
      if (isAcknowledged || this.#connection.isClosing) return;
      isAcknowledged = true;
      if (qos === 2 && reasonCode >= 0x80) incoming.delete(messageId);
      else if (qos === 2) incoming.set(messageId, true);
      this.#connection.send({ cmd: qos === 1 ? 'puback' : 'pubrec', messageId, reasonCode });
    };
    const { topicAlias: _, ...properties } = packet.properties ?? {};
    if (!this.#isManual) ack();
    this.#deliver({ topic, payload, qos, retain, dup, messageId, properties, ack });
  }

  /** Process a PUBREL. */
  released(messageId: number): void {
    const isKnown = this.#session.incoming.delete(messageId);
    const reasonCode = isKnown ? ReasonCode.success : ReasonCode.packetIdentifierNotFound;
    const complete = () => void this.#connection.send({ cmd: 'pubcomp', messageId, reasonCode });
    const stored = this.#onReleased?.(messageId);
    if (stored === undefined) complete();
    else stored.then(complete, (error) => this.#connection.refuse(asError(error)));
  }

  #topicOf({ topic, properties }: PublishPacket): string {
    const alias = properties?.topicAlias;
    if (alias === undefined) return topic;
    const allowed = this.#topicAliasMaximum;
    const known = topic === '' ? this.#aliases?.get(alias) : topic;
    if (alias > allowed || known === undefined) {
      throw new ProtocolError(
        ReasonCode.topicAliasInvalid,
        alias > allowed
          ? `topic alias ${alias}: greater than the Topic Alias Maximum of ${allowed}`
          : `topic alias ${alias}: not assigned to a topic name`
      );
    }
    this.#aliases ??= new Map();
    this.#aliases.set(alias, known);
    return known;
  }
}
