/** The party that a statement binds: the server, the client, or both. */
type Side = 'S' | 'B' | 'C';

/** One normative statement. */
export interface Statement {
  /** `MQTT-...` for 5.0, `MQTT3-...` for 3.1.1, `MQTT31-...` for 3.1, whose text numbers no statements. */
  readonly id: string;
  readonly side: Side;
  /** A short description of what the statement requires. */
  readonly meaning: string;
}

/** The statements of a section. */
interface Chapter {
  readonly title: string;
  readonly statements: readonly Statement[];
}

type Row = readonly [id: string, side: Side, meaning: string];

function chapter(title: string, prefix: string, rows: readonly Row[]): Chapter {
  return { title, statements: rows.map(([id, side, meaning]) => ({ id: `${prefix}-${id}`, side, meaning })) };
}

/** Every numbered statement of MQTT 5.0 and 3.1.1 that concerns a server, and the rules of MQTT 3.1 that differ. */
export const CHAPTERS: readonly Chapter[] = [
  chapter('MQTT 5.0, 1 Data representation', 'MQTT', [
    ['1.5.4-1', 'B', 'ill-formed UTF-8 in a string ends the connection'],
    ['1.5.4-2', 'B', 'U+0000 in a string ends the connection'],
    ['1.5.4-3', 'B', 'a byte order mark is part of the string'],
    ['1.5.5-1', 'B', 'variable byte integers use the fewest bytes possible'],
    ['1.5.7-1', 'B', 'both halves of a user property are strings']
  ]),
  chapter('MQTT 5.0, 2 Packet format', 'MQTT', [
    ['2.1.3-1', 'B', 'reserved bits of the fixed header have the specified value'],
    ['2.2.1-2', 'B', 'a QoS 0 PUBLISH has no packet id'],
    ['2.2.1-3', 'C', 'packet ids of requests are not zero'],
    ['2.2.1-4', 'S', 'packet ids sent are neither zero nor in use'],
    ['2.2.1-5', 'B', 'an acknowledgement has the packet id of its PUBLISH'],
    ['2.2.1-6', 'S', 'SUBACK and UNSUBACK have the packet id of the request'],
    ['2.2.2-1', 'B', 'a packet without properties has a property length of zero']
  ]),
  chapter('MQTT 5.0, 3.1 CONNECT', 'MQTT', [
    ['3.1.0-1', 'C', 'CONNECT is the first packet'],
    ['3.1.0-2', 'S', 'a second CONNECT ends the connection'],
    ['3.1.2-1', 'S', 'another protocol name is refused'],
    ['3.1.2-2', 'S', 'an unknown protocol version is refused'],
    ['3.1.2-3', 'S', 'the reserved connect flag is 0'],
    ['3.1.2-4', 'S', 'Clean Start 1 discards the stored session'],
    ['3.1.2-5', 'S', 'Clean Start 0 resumes the stored session'],
    ['3.1.2-6', 'S', 'Clean Start 0 creates a session if none is stored'],
    ['3.1.2-7', 'S', 'the will is stored with the session'],
    ['3.1.2-8', 'S', 'the will is published when the connection is lost, after its delay'],
    ['3.1.2-9', 'B', 'with the Will Flag, will properties, topic and payload are present'],
    ['3.1.2-10', 'S', 'a will is deleted once it is published or withdrawn'],
    ['3.1.2-11', 'B', 'without the Will Flag, Will QoS is 0'],
    ['3.1.2-12', 'B', 'Will QoS is not 3'],
    ['3.1.2-13', 'B', 'without the Will Flag, Will Retain is 0'],
    ['3.1.2-14', 'S', 'Will Retain 0 publishes a message that is not retained'],
    ['3.1.2-15', 'S', 'Will Retain 1 publishes a retained message'],
    ['3.1.2-16', 'B', 'without the User Name Flag, there is no user name'],
    ['3.1.2-17', 'B', 'with the User Name Flag, there is a user name'],
    ['3.1.2-18', 'B', 'without the Password Flag, there is no password'],
    ['3.1.2-19', 'B', 'with the Password Flag, there is a password'],
    ['3.1.2-20', 'C', 'a packet is sent within each keep alive interval'],
    ['3.1.2-21', 'C', 'Server Keep Alive replaces the value of the client'],
    ['3.1.2-22', 'S', 'one and a half times the keep alive without a packet ends the connection'],
    ['3.1.2-23', 'S', 'a session outlives its connection for the expiry interval'],
    ['3.1.2-24', 'S', 'no packet larger than the Maximum Packet Size is sent'],
    ['3.1.2-25', 'S', 'a message that is too large is dropped for that client as if delivered'],
    ['3.1.2-26', 'S', 'aliases sent do not exceed Topic Alias Maximum'],
    ['3.1.2-27', 'S', 'no alias is sent without a Topic Alias Maximum'],
    ['3.1.2-28', 'S', 'Response Information is sent only on request'],
    ['3.1.2-29', 'S', 'Request Problem Information 0 allows reasons in PUBLISH, CONNACK and DISCONNECT only'],
    ['3.1.2-30', 'C', 'during authentication only AUTH and DISCONNECT are sent'],
    ['3.1.3-1', 'B', 'fields of the payload are in the specified order'],
    ['3.1.3-2', 'S', 'the client id identifies the session'],
    ['3.1.3-3', 'B', 'the client id is the first field of the payload'],
    ['3.1.3-4', 'B', 'the client id is a UTF-8 string'],
    ['3.1.3-5', 'S', 'client ids of 1 to 23 letters and digits are accepted'],
    ['3.1.3-6', 'S', 'a client without a client id is assigned a unique one'],
    ['3.1.3-7', 'S', 'CONNACK contains the assigned client id'],
    ['3.1.3-8', 'S', 'a client id that is not accepted is refused and ends the connection'],
    ['3.1.3-9', 'S', 'a reconnect before the delay has passed cancels the will'],
    ['3.1.3-10', 'S', "the will's user properties stay in order"],
    ['3.1.3-11', 'B', 'the will topic is a UTF-8 string'],
    ['3.1.3-12', 'B', 'the user name is a UTF-8 string'],
    ['3.1.4-1', 'S', 'an invalid CONNECT ends the connection'],
    ['3.1.4-2', 'S', 'authentication and authorization come before any effect'],
    ['3.1.4-3', 'S', 'a connected client of the same client id receives DISCONNECT 0x8E and is closed'],
    ['3.1.4-4', 'S', 'Clean Start is applied after the takeover'],
    ['3.1.4-5', 'S', 'a valid CONNECT is answered with CONNACK 0x00'],
    ['3.1.4-6', 'S', 'packets after a refused CONNECT are not processed']
  ]),
  chapter('MQTT 5.0, 3.2 CONNACK', 'MQTT', [
    ['3.2.0-1', 'S', 'CONNACK is sent before any other packet except AUTH'],
    ['3.2.0-2', 'S', 'one CONNACK is sent per connection'],
    ['3.2.2-1', 'S', 'the seven reserved bits are 0'],
    ['3.2.2-2', 'S', 'Clean Start 1 is answered with Session Present 0'],
    ['3.2.2-3', 'S', 'Session Present says whether a session was stored'],
    ['3.2.2-4', 'C', 'closes if a session is present that the client does not know'],
    ['3.2.2-5', 'C', 'discards its own state if no session is present'],
    ['3.2.2-6', 'S', 'a refusal has Session Present 0'],
    ['3.2.2-7', 'S', 'a refusal ends the connection'],
    ['3.2.2-8', 'S', 'reason codes are those of the table for CONNACK'],
    ['3.2.2-9', 'S', 'a Maximum QoS below 2 is announced'],
    ['3.2.2-10', 'S', 'a subscription may request any QoS, whatever Maximum QoS is'],
    ['3.2.2-11', 'C', 'does not publish above Maximum QoS'],
    ['3.2.2-12', 'S', 'a will above Maximum QoS is refused'],
    ['3.2.2-13', 'S', 'a retained will is refused if retain is off'],
    ['3.2.2-14', 'C', 'does not publish retained messages if retain is off'],
    ['3.2.2-15', 'C', 'does not exceed the Maximum Packet Size of the server'],
    ['3.2.2-16', 'S', 'an assigned client id belongs to no other session'],
    ['3.2.2-17', 'C', 'does not exceed Topic Alias Maximum'],
    ['3.2.2-18', 'C', 'sends no alias if no maximum is announced'],
    ['3.2.2-19', 'S', 'Reason String is omitted if the packet would be too large'],
    ['3.2.2-20', 'S', 'user properties are omitted if the packet would be too large'],
    ['3.2.2-21', 'C', 'uses Server Keep Alive'],
    ['3.2.2-22', 'S', 'without Server Keep Alive the value of the client is used']
  ]),
  chapter('MQTT 5.0, 3.3 PUBLISH', 'MQTT', [
    ['3.3.1-1', 'B', 'a message that is sent again has DUP 1'],
    ['3.3.1-2', 'B', 'a QoS 0 message has DUP 0'],
    ['3.3.1-3', 'S', 'DUP is set for each receiver, not copied from the sender'],
    ['3.3.1-4', 'B', 'QoS is not 3'],
    ['3.3.1-5', 'S', 'a retained message replaces the previous one'],
    ['3.3.1-6', 'S', 'an empty retained message removes the stored one and is delivered'],
    ['3.3.1-7', 'S', 'an empty retained message is not stored'],
    ['3.3.1-8', 'S', 'messages without RETAIN do not change the stored one'],
    ['3.3.1-9', 'S', 'Retain Handling 0 sends retained messages'],
    ['3.3.1-10', 'S', 'Retain Handling 1 sends retained messages to a new subscription only'],
    ['3.3.1-11', 'S', 'Retain Handling 2 sends no retained messages'],
    ['3.3.1-12', 'S', 'RETAIN is cleared when a message is forwarded'],
    ['3.3.1-13', 'S', 'RETAIN is unchanged with Retain As Published'],
    ['3.3.2-1', 'B', 'the topic name is the first field and is UTF-8'],
    ['3.3.2-2', 'B', 'a topic name has no wildcard'],
    ['3.3.2-3', 'S', 'the topic name delivered matches the filter'],
    ['3.3.2-4', 'S', 'Payload Format Indicator is forwarded unchanged'],
    ['3.3.2-5', 'S', 'an expired message is not delivered'],
    ['3.3.2-6', 'S', 'the expiry interval forwarded is the remaining one'],
    ['3.3.2-7', 'B', 'alias mappings end with the connection'],
    ['3.3.2-8', 'B', 'an alias is not 0'],
    ['3.3.2-9', 'C', 'aliases do not exceed the maximum of the server'],
    ['3.3.2-10', 'C', 'accepts every alias up to its own maximum'],
    ['3.3.2-11', 'S', 'aliases do not exceed the maximum of the client'],
    ['3.3.2-12', 'S', 'every alias up to the announced maximum is accepted'],
    ['3.3.2-13', 'B', 'Response Topic is UTF-8'],
    ['3.3.2-14', 'B', 'Response Topic has no wildcard'],
    ['3.3.2-15', 'S', 'Response Topic is forwarded unchanged'],
    ['3.3.2-16', 'S', 'Correlation Data is forwarded unchanged'],
    ['3.3.2-17', 'S', 'user properties are forwarded unchanged'],
    ['3.3.2-18', 'S', 'user properties stay in order'],
    ['3.3.2-19', 'B', 'Content Type is UTF-8'],
    ['3.3.2-20', 'S', 'Content Type is forwarded unchanged'],
    ['3.3.4-1', 'B', 'the acknowledgement is that of the QoS'],
    ['3.3.4-2', 'S', 'overlapping filters deliver at the highest QoS among them'],
    ['3.3.4-3', 'S', 'the subscription identifier is sent with the message'],
    ['3.3.4-4', 'S', 'a single copy carries all matching identifiers'],
    ['3.3.4-5', 'S', 'each of several copies carries its own identifier'],
    ['3.3.4-6', 'C', 'sends no subscription identifier'],
    ['3.3.4-7', 'C', 'does not exceed the Receive Maximum of the server'],
    ['3.3.4-8', 'C', 'does not delay other packets'],
    ['3.3.4-9', 'S', 'the Receive Maximum of the client is not exceeded'],
    ['3.3.4-10', 'S', 'Receive Maximum delays QoS 1 and 2 only']
  ]),
  chapter('MQTT 5.0, 3.4 to 3.7 Acknowledgements', 'MQTT', [
    ['3.4.2-1', 'B', 'PUBACK: reason codes of its table'],
    ['3.4.2-2', 'B', 'PUBACK: no Reason String that would make it too large'],
    ['3.4.2-3', 'B', 'PUBACK: no user properties that would make it too large'],
    ['3.5.2-1', 'B', 'PUBREC: reason codes of its table'],
    ['3.5.2-2', 'B', 'PUBREC: no Reason String that would make it too large'],
    ['3.5.2-3', 'B', 'PUBREC: no user properties that would make it too large'],
    ['3.6.1-1', 'B', 'PUBREL has flags 0010'],
    ['3.6.2-1', 'B', 'PUBREL: reason codes of its table'],
    ['3.6.2-2', 'B', 'PUBREL: no Reason String that would make it too large'],
    ['3.6.2-3', 'B', 'PUBREL: no user properties that would make it too large'],
    ['3.7.2-1', 'B', 'PUBCOMP: reason codes of its table'],
    ['3.7.2-2', 'B', 'PUBCOMP: no Reason String that would make it too large'],
    ['3.7.2-3', 'B', 'PUBCOMP: no user properties that would make it too large']
  ]),
  chapter('MQTT 5.0, 3.8 and 3.9 SUBSCRIBE, SUBACK', 'MQTT', [
    ['3.8.1-1', 'B', 'SUBSCRIBE has flags 0010'],
    ['3.8.3-1', 'B', 'filters are UTF-8'],
    ['3.8.3-2', 'B', 'SUBSCRIBE has at least one filter'],
    ['3.8.3-3', 'S', 'No Local excludes messages of the client itself'],
    ['3.8.3-4', 'B', 'No Local and a shared subscription exclude each other'],
    ['3.8.3-5', 'B', 'reserved option bits are 0'],
    ['3.8.4-1', 'S', 'SUBSCRIBE is answered with SUBACK'],
    ['3.8.4-2', 'S', 'SUBACK has the packet id of SUBSCRIBE'],
    ['3.8.4-3', 'S', 'a SUBSCRIBE with the same filter replaces the subscription'],
    ['3.8.4-4', 'S', 'a replacement sends retained messages again and loses no message'],
    ['3.8.4-5', 'S', 'several filters are processed in order'],
    ['3.8.4-6', 'S', 'SUBACK has a reason code for each filter'],
    ['3.8.4-7', 'S', 'the reason code is the granted QoS or a failure'],
    ['3.8.4-8', 'S', 'messages are delivered at the lower of the published and the granted QoS'],
    ['3.9.2-1', 'S', 'SUBACK: no Reason String that would make it too large'],
    ['3.9.2-2', 'S', 'SUBACK: no user properties that would make it too large'],
    ['3.9.3-1', 'S', 'reason codes are in the order of the filters'],
    ['3.9.3-2', 'S', 'SUBACK: reason codes of its table']
  ]),
  chapter('MQTT 5.0, 3.10 and 3.11 UNSUBSCRIBE, UNSUBACK', 'MQTT', [
    ['3.10.1-1', 'B', 'UNSUBSCRIBE has flags 0010'],
    ['3.10.3-1', 'B', 'filters are UTF-8'],
    ['3.10.3-2', 'B', 'UNSUBSCRIBE has at least one filter'],
    ['3.10.4-1', 'S', 'filters are compared character by character'],
    ['3.10.4-2', 'S', 'no further messages are delivered for the filter'],
    ['3.10.4-3', 'S', 'deliveries in progress are completed'],
    ['3.10.4-4', 'S', 'UNSUBSCRIBE is answered with UNSUBACK'],
    ['3.10.4-5', 'S', 'UNSUBACK has the packet id of UNSUBSCRIBE, even if nothing was deleted'],
    ['3.10.4-6', 'S', 'several filters are processed in order'],
    ['3.11.2-1', 'S', 'UNSUBACK: no Reason String that would make it too large'],
    ['3.11.2-2', 'S', 'UNSUBACK: no user properties that would make it too large'],
    ['3.11.3-1', 'S', 'reason codes are in the order of the filters'],
    ['3.11.3-2', 'S', 'UNSUBACK: reason codes of its table']
  ]),
  chapter('MQTT 5.0, 3.12 to 3.15 PING, DISCONNECT, AUTH', 'MQTT', [
    ['3.12.4-1', 'S', 'PINGREQ is answered with PINGRESP'],
    ['3.14.0-1', 'S', 'no DISCONNECT is sent before a successful CONNACK'],
    ['3.14.1-1', 'B', 'DISCONNECT: reserved flags are 0'],
    ['3.14.2-1', 'B', 'DISCONNECT: reason codes of its table'],
    ['3.14.2-2', 'S', 'DISCONNECT of the server has no Session Expiry Interval'],
    ['3.14.2-3', 'B', 'DISCONNECT: no Reason String that would make it too large'],
    ['3.14.2-4', 'B', 'DISCONNECT: no user properties that would make it too large'],
    ['3.14.4-1', 'B', 'nothing is sent after DISCONNECT'],
    ['3.14.4-2', 'B', 'DISCONNECT is followed by the close'],
    ['3.14.4-3', 'S', 'DISCONNECT 0x00 deletes the will, other codes publish it'],
    ['3.15.1-1', 'B', 'AUTH: reserved flags are 0'],
    ['3.15.2-1', 'B', 'AUTH: reason codes of its table'],
    ['3.15.2-2', 'B', 'AUTH: no Reason String that would make it too large'],
    ['3.15.2-3', 'B', 'AUTH: no user properties that would make it too large']
  ]),
  chapter('MQTT 5.0, 4 Operational behaviour', 'MQTT', [
    ['4.1.0-1', 'B', 'a session exists at least as long as its connection'],
    ['4.1.0-2', 'S', 'an expired session is dropped'],
    ['4.2.0-1', 'S', 'a transport is ordered and lossless'],
    ['4.3.1-1', 'S', 'QoS 0 outbound: DUP is 0'],
    ['4.3.2-1', 'S', 'QoS 1 outbound: an unused packet id'],
    ['4.3.2-2', 'S', 'QoS 1 outbound: DUP is 0 at first'],
    ['4.3.2-3', 'S', 'QoS 1 outbound: unacknowledged until PUBACK'],
    ['4.3.2-4', 'S', 'QoS 1 inbound: PUBACK with the packet id'],
    ['4.3.2-5', 'S', 'QoS 1 inbound: after PUBACK the packet id stands for a new message'],
    ['4.3.3-1', 'S', 'QoS 2 outbound: an unused packet id'],
    ['4.3.3-2', 'S', 'QoS 2 outbound: DUP is 0 at first'],
    ['4.3.3-3', 'S', 'QoS 2 outbound: unacknowledged until PUBREC'],
    ['4.3.3-4', 'S', 'PUBREC is answered with PUBREL'],
    ['4.3.3-5', 'S', 'PUBREL is unacknowledged until PUBCOMP'],
    ['4.3.3-6', 'S', 'PUBLISH is not sent again after PUBREL'],
    ['4.3.3-7', 'S', 'a message does not expire after its first PUBLISH'],
    ['4.3.3-8', 'S', 'QoS 2 inbound: PUBREC with the packet id'],
    ['4.3.3-9', 'S', 'a refusing PUBREC frees the packet id'],
    ['4.3.3-10', 'S', 'a message is not delivered twice for the same packet id before PUBREL'],
    ['4.3.3-11', 'S', 'PUBREL is answered with PUBCOMP'],
    ['4.3.3-12', 'S', 'after PUBCOMP the packet id stands for a new message'],
    ['4.3.3-13', 'S', 'the handshake continues after the message has expired'],
    ['4.4.0-1', 'S', 'messages are sent again on reconnect, and at no other time'],
    ['4.4.0-2', 'S', 'a refusing PUBACK or PUBREC completes the message'],
    ['4.5.0-1', 'S', 'a message is delivered to every matching session'],
    ['4.5.0-2', 'C', 'acknowledges the messages it receives'],
    ['4.6.0-1', 'S', 'messages are sent again in the original order'],
    ['4.6.0-2', 'S', 'PUBACK packets are in the order of the messages'],
    ['4.6.0-3', 'S', 'PUBREC packets are in the order of the messages'],
    ['4.6.0-4', 'S', 'PUBREL packets are in the order of the PUBREC packets'],
    ['4.6.0-5', 'S', 'the order of messages of one publisher is kept'],
    ['4.6.0-6', 'S', 'topics are ordered for subscriptions that are not shared'],
    ['4.7.0-1', 'B', 'wildcards occur in filters only'],
    ['4.7.1-1', 'B', '# is the last level and fills it'],
    ['4.7.1-2', 'B', '+ fills a level'],
    ['4.7.2-1', 'S', 'a leading wildcard does not match $ topics'],
    ['4.7.3-1', 'B', 'topic names and filters have at least one character'],
    ['4.7.3-2', 'B', 'topic names and filters do not contain U+0000'],
    ['4.7.3-3', 'B', 'topic names and filters have at most 65,535 bytes'],
    ['4.7.3-4', 'S', 'topic names are not normalized'],
    ['4.8.2-1', 'B', 'a share name has at least one character'],
    ['4.8.2-2', 'B', 'a share name has no wildcard or slash, and a filter follows'],
    ['4.8.2-3', 'S', 'the chosen member receives the message at its granted QoS'],
    ['4.8.2-4', 'S', 'a QoS 2 message is completed with the member it was sent to'],
    ['4.8.2-5', 'S', 'if that session ends, no other member receives the QoS 2 message'],
    ['4.8.2-6', 'S', 'if that member refuses the message, no other member receives it'],
    ['4.9.0-1', 'B', 'the initial send quota does not exceed Receive Maximum'],
    ['4.9.0-2', 'B', 'no QoS 1 or 2 message is sent without quota'],
    ['4.9.0-3', 'B', 'all other packets are sent without quota'],
    ['4.12.0-1', 'S', 'an unknown authentication method ends the connection'],
    ['4.12.0-2', 'S', 'AUTH 0x18 requests more data'],
    ['4.12.0-3', 'C', 'AUTH 0x18 answers a challenge'],
    ['4.12.0-4', 'S', 'a failed authentication ends the connection'],
    ['4.12.0-5', 'B', 'every AUTH and CONNACK name the method'],
    ['4.12.0-6', 'S', 'without a method in CONNECT, the server sends none'],
    ['4.12.0-7', 'C', 'without a method in CONNECT, the client sends no AUTH'],
    ['4.12.1-1', 'C', 're-authenticates with the same method'],
    ['4.12.1-2', 'S', 'a failed re-authentication ends the connection'],
    ['4.13.1-1', 'S', 'a protocol error ends the connection, and no other'],
    ['4.13.2-1', 'B', 'a code of 0x80 or above in CONNACK or DISCONNECT ends the connection']
  ]),
  chapter('MQTT 5.0, 6 WebSocket', 'MQTT', [
    ['6.0.0-1', 'B', 'frames are binary'],
    ['6.0.0-2', 'B', 'packets need not align with frames'],
    ['6.0.0-3', 'C', 'offers the subprotocol'],
    ['6.0.0-4', 'S', 'the server selects the subprotocol']
  ]),
  chapter('MQTT 3.1.1', 'MQTT3', [
    ['1.5.3-1', 'B', 'ill-formed UTF-8 closes the connection without an answer'],
    ['1.5.3-2', 'B', 'U+0000 closes the connection as well'],
    ['2.2.2-2', 'S', 'wrong fixed header flags close the connection'],
    ['2.3.1-1', 'B', 'packet id 0 closes the connection'],
    ['3.1.0-2', 'S', 'a second CONNECT closes the connection'],
    ['3.1.2-1', 'S', 'another protocol name may be refused'],
    ['3.1.2-2', 'S', 'an unknown protocol level is answered with return code 1 and the close'],
    ['3.1.2-4', 'S', 'CleanSession 0 resumes or creates a session, which queues QoS 1 and 2'],
    ['3.1.2-6', 'S', 'CleanSession 1 creates a session that ends with the connection'],
    ['3.1.2-7', 'S', 'retained messages outlive the session'],
    ['3.1.2-8', 'S', 'the will is published at once when the connection is lost'],
    ['3.1.2-10', 'S', 'a will is deleted once it is published, and at DISCONNECT'],
    ['3.1.2-22', 'B', 'without a user name there is no password'],
    ['3.1.2-24', 'S', 'one and a half times the keep alive without a packet closes the connection'],
    ['3.1.3-7', 'S', 'a client without a client id is accepted only with CleanSession 1'],
    ['3.1.3-8', 'S', 'otherwise it is answered with return code 2 and the close'],
    ['3.1.3-9', 'S', 'a refused client id is answered with return code 2 and the close'],
    ['3.1.4-2', 'S', 'a connected client of the same client id is closed without an answer'],
    ['3.1.4-5', 'S', 'packets after a refused CONNECT are not processed'],
    ['3.2.2-1', 'S', 'CleanSession 1 is answered with Session Present 0'],
    ['3.2.2-2', 'S', 'CleanSession 0 is answered with Session Present 1 if a session is stored'],
    ['3.2.2-3', 'S', 'CleanSession 0 is answered with Session Present 0 if none is stored'],
    ['3.2.2-4', 'S', 'a refusal has Session Present 0'],
    ['3.2.2-5', 'S', 'a refusal closes the connection'],
    ['3.2.2-6', 'S', 'if no return code fits, the connection is closed without CONNACK'],
    ['connack-codes', 'S', 'reasons are mapped to return codes 1 to 5'],
    ['suback-codes', 'S', 'SUBACK has the return codes 0, 1, 2 and 0x80'],
    ['3.3.1-7', 'S', 'a retained message of QoS 0 replaces the previous one'],
    ['3.3.1-8', 'S', 'RETAIN is 1 for a new subscription'],
    ['3.3.1-9', 'S', 'RETAIN is 0 for an existing subscription'],
    ['3.3.5-1', 'S', 'overlapping filters deliver at the highest QoS among them'],
    ['3.3.5-2', 'S', 'a PUBLISH that is not authorized is acknowledged, or closes the connection'],
    ['3.8.3-3', 'S', 'filters with wildcards are refused if wildcards are not supported'],
    ['3.8.3-4', 'B', 'the upper six bits of the QoS byte are 0, and QoS is not 3'],
    ['3.8.4-3', 'S', 'a SUBSCRIBE with the same filter replaces the subscription and sends retained messages'],
    ['3.10.4-5', 'S', 'UNSUBACK consists of the packet id only'],
    ['3.14.4-3', 'S', 'DISCONNECT deletes the will'],
    ['4.3.1-1', 'S', 'QoS 0 outbound: DUP is 0'],
    ['4.3.2-1', 'S', 'QoS 1 outbound: an unused packet id, DUP 0, unacknowledged until PUBACK'],
    ['4.3.2-2', 'S', 'QoS 1 inbound: after PUBACK the packet id stands for a new message'],
    ['4.3.3-1', 'S', 'QoS 2 outbound: an unused packet id, PUBREL after PUBREC, complete at PUBCOMP'],
    ['4.3.3-2', 'S', 'QoS 2 inbound: PUBREC, PUBCOMP, delivered once'],
    ['4.4.0-1', 'S', 'messages are sent again on reconnect with CleanSession 0'],
    ['4.7.1-2', 'B', '# is the last level and fills it'],
    ['4.7.1-3', 'B', '+ fills a level'],
    ['4.8.0-1', 'B', 'a protocol violation closes the connection'],
    ['4.8.0-2', 'B', 'a transient error of a connection closes that connection'],
    ['6.0.0-1', 'B', 'WebSocket: frames are binary'],
    ['6.0.0-2', 'B', 'WebSocket: packets need not align with frames'],
    ['6.0.0-3', 'C', 'WebSocket: offers the subprotocol'],
    ['6.0.0-4', 'S', 'WebSocket: the server selects the subprotocol'],
    [
      'no-v5',
      'S',
      '3.x clients receive no DISCONNECT, no AUTH and no properties; their messages have no properties for 5.0'
    ]
  ]),
  chapter('MQTT 3.1', 'MQTT31', [
    ['client-id', 'S', 'client ids of 1 to 23 characters are accepted'],
    ['no-empty-id', 'S', 'an empty client id is answered with return code 2'],
    ['no-session-present', 'S', 'the first byte of CONNACK is 0'],
    ['suback', 'S', 'SUBACK has no 0x80'],
    ['qos-3', 'S', 'QoS 3 closes the connection'],
    ['dup', 'S', 'PUBREL, SUBSCRIBE and UNSUBSCRIBE may have DUP (section 2.1)'],
    ['unused', 'S', 'bits that CONNECT does not use are ignored (section 3.1)'],
    ['bridge', 'S', 'bit 7 of the level marks a bridge']
  ])
];

/** All statements by id. */
export const STATEMENTS: ReadonlyMap<string, Statement> = new Map(
  CHAPTERS.flatMap(({ statements }) => statements).map((statement) => [statement.id, statement])
);

/**
 * Returns the ids at the beginning of a test name: `[MQTT-3.1.2-16, -17] ...`, `[MQTT-3.4.2-1] [MQTT-3.5.2-1] ...`, `[MQTT-4.3.3-1 .. -3]
 * ...`. A part that is only a number continues the id before it.
 */
export function idsOf(name: string): string[] {
  const [head] = /^(\s*\[[^\]]*\])*/.exec(name) ?? [''];
  const ids: string[] = [];
  for (const [, group] of head.matchAll(/\[([^\]]*)\]/g)) {
    let isRange = false;
    for (const part of group.split(/[\s,]+/)) {
      if (part === '..' || part === 'to') {
        isRange = true;
        continue;
      }
      const id = completed(part, ids.at(-1));
      if (id === undefined) continue;
      if (isRange) ids.push(...between(ids.at(-1) as string, id));
      ids.push(id);
      isRange = false;
    }
  }
  return ids;
}

function completed(part: string, before: string | undefined): string | undefined {
  if (part.startsWith('MQTT')) return part;
  if (before === undefined) return undefined;
  if (/^-\d+$/.test(part)) return before.replace(/-\d+$/, part);
  if (/^\d+\.\d+\.\d+-\d+$/.test(part)) return before.replace(/-.*$/, `-${part}`);
  return undefined;
}

function between(first: string, last: string): string[] {
  const stem = first.replace(/\d+$/, '');
  const from = Number(first.slice(stem.length));
  const to = Number(last.slice(stem.length));
  return Array.from({ length: Math.max(0, to - from - 1) }, (_, at) => `${stem}${from + 1 + at}`);
}
