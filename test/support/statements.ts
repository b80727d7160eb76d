/** Whom a statement binds: the server, the client, or both. */
export type Side = 'S' | 'B' | 'C';

/** One normative statement. */
export interface Statement {
  /** `MQTT-...` for 5.0, `MQTT3-...` for 3.1.1, `MQTT31-...` for 3.1, which numbers nothing itself. */
  readonly id: string;
  readonly side: Side;
  /** What it asks of a server, in short. */
  readonly meaning: string;
}

/** Statements of a section. */
export interface Chapter {
  readonly title: string;
  readonly statements: readonly Statement[];
}

type Row = readonly [id: string, side: Side, meaning: string];

function chapter(title: string, prefix: string, rows: readonly Row[]): Chapter {
  return { title, statements: rows.map(([id, side, meaning]) => ({ id: `${prefix}-${id}`, side, meaning })) };
}

/** Every numbered statement of MQTT 5.0 and 3.1.1 that a server meets, and the rules of MQTT 3.1 that differ. */
export const CHAPTERS: readonly Chapter[] = [
  chapter('MQTT 5.0, 1 Data representation', 'MQTT', [
    ['1.5.4-1', 'B', 'ill-formed UTF-8 in a string ends the connection'],
    ['1.5.4-2', 'B', 'U+0000 in a string ends the connection'],
    ['1.5.4-3', 'B', 'a byte order mark is part of the string'],
    ['1.5.5-1', 'B', 'variable byte integers are as short as they can be'],
    ['1.5.7-1', 'B', 'both halves of a user property are strings']
  ]),
  chapter('MQTT 5.0, 2 Packet format', 'MQTT', [
    ['2.1.3-1', 'B', 'reserved bits of the fixed header have their value'],
    ['2.2.1-2', 'B', 'no packet id at QoS 0'],
    ['2.2.1-3', 'C', 'packet ids of requests are not zero'],
    ['2.2.1-4', 'S', 'packet ids sent are not zero and not in use'],
    ['2.2.1-5', 'B', 'an acknowledgement has the id of its PUBLISH'],
    ['2.2.1-6', 'S', 'SUBACK and UNSUBACK have the id of the request'],
    ['2.2.2-1', 'B', 'no properties: their length is written as zero']
  ]),
  chapter('MQTT 5.0, 3.1 CONNECT', 'MQTT', [
    ['3.1.0-1', 'C', 'CONNECT comes first'],
    ['3.1.0-2', 'S', 'a second CONNECT ends the connection'],
    ['3.1.2-1', 'S', 'a foreign protocol name is not served'],
    ['3.1.2-2', 'S', 'an unknown version is not served'],
    ['3.1.2-3', 'S', 'the reserved connect flag is 0'],
    ['3.1.2-4', 'S', 'Clean Start 1 discards the stored session'],
    ['3.1.2-5', 'S', 'Clean Start 0 resumes the stored session'],
    ['3.1.2-6', 'S', 'Clean Start 0 makes a session where none is stored'],
    ['3.1.2-7', 'S', 'the will is kept with the session'],
    ['3.1.2-8', 'S', 'the will is published when the connection is lost, after its delay'],
    ['3.1.2-9', 'B', 'Will Flag 1: properties, topic and payload are there'],
    ['3.1.2-10', 'S', 'a will is gone once published or deleted'],
    ['3.1.2-11', 'B', 'no will, no will QoS'],
    ['3.1.2-12', 'B', 'there is no will QoS 3'],
    ['3.1.2-13', 'B', 'no will, no will retain'],
    ['3.1.2-14', 'S', 'Will Retain 0 publishes without retaining'],
    ['3.1.2-15', 'S', 'Will Retain 1 publishes a retained message'],
    ['3.1.2-16', 'B', 'no user name flag, no user name'],
    ['3.1.2-17', 'B', 'user name flag, user name'],
    ['3.1.2-18', 'B', 'no password flag, no password'],
    ['3.1.2-19', 'B', 'password flag, password'],
    ['3.1.2-20', 'C', 'something is sent within each keep alive interval'],
    ['3.1.2-21', 'C', 'Server Keep Alive takes the place of the own value'],
    ['3.1.2-22', 'S', 'silence for one and a half times keep alive ends the connection'],
    ['3.1.2-23', 'S', 'a session outlives its connection for the expiry interval'],
    ['3.1.2-24', 'S', 'nothing larger than the Maximum Packet Size is sent'],
    ['3.1.2-25', 'S', 'a message that is too large is dropped for that client as if delivered'],
    ['3.1.2-26', 'S', 'aliases sent are within Topic Alias Maximum'],
    ['3.1.2-27', 'S', 'no Topic Alias Maximum, no alias'],
    ['3.1.2-28', 'S', 'no Response Information unless asked for'],
    ['3.1.2-29', 'S', 'Request Problem Information 0 silences reasons outside PUBLISH, CONNACK, DISCONNECT'],
    ['3.1.2-30', 'C', 'during authentication only AUTH and DISCONNECT are sent'],
    ['3.1.3-1', 'B', 'fields of the payload come in their order'],
    ['3.1.3-2', 'S', 'the client id names the session'],
    ['3.1.3-3', 'B', 'the client id comes first in the payload'],
    ['3.1.3-4', 'B', 'the client id is a UTF-8 string'],
    ['3.1.3-5', 'S', 'ids of 1 to 23 letters and digits are taken'],
    ['3.1.3-6', 'S', 'a client without id gets one that is unique'],
    ['3.1.3-7', 'S', 'the id given is told in CONNACK'],
    ['3.1.3-8', 'S', 'an id that is refused ends the connection'],
    ['3.1.3-9', 'S', 'a reconnect before the delay has passed withholds the will'],
    ['3.1.3-10', 'S', "the will's user properties stay in order"],
    ['3.1.3-11', 'B', 'the will topic is a UTF-8 string'],
    ['3.1.3-12', 'B', 'the user name is a UTF-8 string'],
    ['3.1.4-1', 'S', 'a CONNECT that breaks a rule ends the connection'],
    ['3.1.4-2', 'S', 'checks of identity and rights come before any effect'],
    ['3.1.4-3', 'S', 'a client of the same id is told of the takeover and closed'],
    ['3.1.4-4', 'S', 'Clean Start is dealt with after the takeover'],
    ['3.1.4-5', 'S', 'a good CONNECT is answered with CONNACK 0x00'],
    ['3.1.4-6', 'S', 'what follows a refused CONNECT is not looked at']
  ]),
  chapter('MQTT 5.0, 3.2 CONNACK', 'MQTT', [
    ['3.2.0-1', 'S', 'CONNACK goes out before all else but AUTH'],
    ['3.2.0-2', 'S', 'one CONNACK a connection'],
    ['3.2.2-1', 'S', 'seven reserved bits are 0'],
    ['3.2.2-2', 'S', 'Clean Start 1 is answered with Session Present 0'],
    ['3.2.2-3', 'S', 'Session Present tells whether a session was stored'],
    ['3.2.2-4', 'C', 'closes if a session is present that it does not know'],
    ['3.2.2-5', 'C', 'drops its own state if no session is present'],
    ['3.2.2-6', 'S', 'a refusal has Session Present 0'],
    ['3.2.2-7', 'S', 'a refusal ends the connection'],
    ['3.2.2-8', 'S', "codes are those of CONNACK's table"],
    ['3.2.2-9', 'S', 'a lower Maximum QoS is announced'],
    ['3.2.2-10', 'S', 'a subscription may ask any QoS whatever Maximum QoS is'],
    ['3.2.2-11', 'C', 'does not publish above Maximum QoS'],
    ['3.2.2-12', 'S', 'a will above Maximum QoS is refused'],
    ['3.2.2-13', 'S', 'a retained will is refused where retain is off'],
    ['3.2.2-14', 'C', 'does not publish retained where retain is off'],
    ['3.2.2-15', 'C', "keeps to the server's Maximum Packet Size"],
    ['3.2.2-16', 'S', 'a client id given belongs to no other session'],
    ['3.2.2-17', 'C', 'keeps to Topic Alias Maximum'],
    ['3.2.2-18', 'C', 'sends no alias where none is announced'],
    ['3.2.2-19', 'S', 'Reason String goes where the packet would be too large'],
    ['3.2.2-20', 'S', 'user properties go where the packet would be too large'],
    ['3.2.2-21', 'C', 'obeys Server Keep Alive'],
    ['3.2.2-22', 'S', "without Server Keep Alive the client's value holds"]
  ]),
  chapter('MQTT 5.0, 3.3 PUBLISH', 'MQTT', [
    ['3.3.1-1', 'B', 'DUP on a redelivery'],
    ['3.3.1-2', 'B', 'no DUP at QoS 0'],
    ['3.3.1-3', 'S', 'DUP is set for the receiver, not copied from the sender'],
    ['3.3.1-4', 'B', 'there is no QoS 3'],
    ['3.3.1-5', 'S', 'a retained message takes the place of the one before'],
    ['3.3.1-6', 'S', 'an empty one removes it and is delivered'],
    ['3.3.1-7', 'S', 'the empty one is not stored'],
    ['3.3.1-8', 'S', 'messages without RETAIN leave the stored one alone'],
    ['3.3.1-9', 'S', 'Retain Handling 0 sends retained messages'],
    ['3.3.1-10', 'S', 'Retain Handling 1 sends them to a new subscription only'],
    ['3.3.1-11', 'S', 'Retain Handling 2 sends none'],
    ['3.3.1-12', 'S', 'RETAIN is cleared on forwarding'],
    ['3.3.1-13', 'S', 'RETAIN stays with Retain As Published'],
    ['3.3.2-1', 'B', 'the topic name comes first and is UTF-8'],
    ['3.3.2-2', 'B', 'no wildcard in a topic name'],
    ['3.3.2-3', 'S', 'the topic delivered matches the filter'],
    ['3.3.2-4', 'S', 'Payload Format Indicator passes unchanged'],
    ['3.3.2-5', 'S', 'an expired message is not delivered any more'],
    ['3.3.2-6', 'S', 'the expiry forwarded is what is left'],
    ['3.3.2-7', 'B', 'alias mappings end with the connection'],
    ['3.3.2-8', 'B', 'there is no alias 0'],
    ['3.3.2-9', 'C', 'aliases within what the server announced'],
    ['3.3.2-10', 'C', 'takes every alias up to its own maximum'],
    ['3.3.2-11', 'S', "aliases within the client's maximum"],
    ['3.3.2-12', 'S', 'every alias up to the announced maximum is taken'],
    ['3.3.2-13', 'B', 'Response Topic is UTF-8'],
    ['3.3.2-14', 'B', 'no wildcard in Response Topic'],
    ['3.3.2-15', 'S', 'Response Topic passes unchanged'],
    ['3.3.2-16', 'S', 'Correlation Data passes unchanged'],
    ['3.3.2-17', 'S', 'user properties pass unchanged'],
    ['3.3.2-18', 'S', 'user properties stay in order'],
    ['3.3.2-19', 'B', 'Content Type is UTF-8'],
    ['3.3.2-20', 'S', 'Content Type passes unchanged'],
    ['3.3.4-1', 'B', 'the answer is that of the QoS'],
    ['3.3.4-2', 'S', 'overlapping filters deliver at the highest QoS among them'],
    ['3.3.4-3', 'S', 'the subscription identifier goes along'],
    ['3.3.4-4', 'S', 'one copy carries all identifiers that match'],
    ['3.3.4-5', 'S', 'several copies carry the own identifier each'],
    ['3.3.4-6', 'C', 'sends no subscription identifier'],
    ['3.3.4-7', 'C', "keeps to the server's Receive Maximum"],
    ['3.3.4-8', 'C', 'holds back nothing else'],
    ['3.3.4-9', 'S', "the client's Receive Maximum holds"],
    ['3.3.4-10', 'S', 'it holds back nothing but QoS 1 and 2']
  ]),
  chapter('MQTT 5.0, 3.4 to 3.7 Acknowledgements', 'MQTT', [
    ['3.4.2-1', 'B', 'PUBACK: codes of its table'],
    ['3.4.2-2', 'B', 'PUBACK: no Reason String that makes it too large'],
    ['3.4.2-3', 'B', 'PUBACK: no user properties that make it too large'],
    ['3.5.2-1', 'B', 'PUBREC: codes of its table'],
    ['3.5.2-2', 'B', 'PUBREC: no Reason String that makes it too large'],
    ['3.5.2-3', 'B', 'PUBREC: no user properties that make it too large'],
    ['3.6.1-1', 'B', 'PUBREL has flags 0010'],
    ['3.6.2-1', 'B', 'PUBREL: codes of its table'],
    ['3.6.2-2', 'B', 'PUBREL: no Reason String that makes it too large'],
    ['3.6.2-3', 'B', 'PUBREL: no user properties that make it too large'],
    ['3.7.2-1', 'B', 'PUBCOMP: codes of its table'],
    ['3.7.2-2', 'B', 'PUBCOMP: no Reason String that makes it too large'],
    ['3.7.2-3', 'B', 'PUBCOMP: no user properties that make it too large']
  ]),
  chapter('MQTT 5.0, 3.8 and 3.9 SUBSCRIBE, SUBACK', 'MQTT', [
    ['3.8.1-1', 'B', 'SUBSCRIBE has flags 0010'],
    ['3.8.3-1', 'B', 'filters are UTF-8'],
    ['3.8.3-2', 'B', 'at least one filter'],
    ['3.8.3-3', 'S', 'No Local keeps own messages away'],
    ['3.8.3-4', 'B', 'No Local and a shared subscription exclude each other'],
    ['3.8.3-5', 'B', 'reserved option bits are 0'],
    ['3.8.4-1', 'S', 'SUBSCRIBE is answered with SUBACK'],
    ['3.8.4-2', 'S', '... of the same packet id'],
    ['3.8.4-3', 'S', 'the same filter again replaces the subscription'],
    ['3.8.4-4', 'S', 'replacing sends retained messages again and loses none'],
    ['3.8.4-5', 'S', 'several filters act one after the other'],
    ['3.8.4-6', 'S', 'a code for each filter'],
    ['3.8.4-7', 'S', 'the code is the QoS granted, or a failure'],
    ['3.8.4-8', 'S', 'delivered at the lower of published and granted QoS'],
    ['3.9.2-1', 'S', 'SUBACK: no Reason String that makes it too large'],
    ['3.9.2-2', 'S', 'SUBACK: no user properties that make it too large'],
    ['3.9.3-1', 'S', 'codes stand in the order of the filters'],
    ['3.9.3-2', 'S', 'SUBACK: codes of its table']
  ]),
  chapter('MQTT 5.0, 3.10 and 3.11 UNSUBSCRIBE, UNSUBACK', 'MQTT', [
    ['3.10.1-1', 'B', 'UNSUBSCRIBE has flags 0010'],
    ['3.10.3-1', 'B', 'filters are UTF-8'],
    ['3.10.3-2', 'B', 'at least one filter'],
    ['3.10.4-1', 'S', 'filters are compared character by character'],
    ['3.10.4-2', 'S', 'nothing new is delivered for the filter'],
    ['3.10.4-3', 'S', 'deliveries that have begun are completed'],
    ['3.10.4-4', 'S', 'UNSUBSCRIBE is answered with UNSUBACK'],
    ['3.10.4-5', 'S', '... of the same packet id, even where nothing was deleted'],
    ['3.10.4-6', 'S', 'several filters act one after the other'],
    ['3.11.2-1', 'S', 'UNSUBACK: no Reason String that makes it too large'],
    ['3.11.2-2', 'S', 'UNSUBACK: no user properties that make it too large'],
    ['3.11.3-1', 'S', 'codes stand in the order of the filters'],
    ['3.11.3-2', 'S', 'UNSUBACK: codes of its table']
  ]),
  chapter('MQTT 5.0, 3.12 to 3.15 PING, DISCONNECT, AUTH', 'MQTT', [
    ['3.12.4-1', 'S', 'PINGREQ is answered with PINGRESP'],
    ['3.14.0-1', 'S', 'no DISCONNECT before a good CONNACK'],
    ['3.14.1-1', 'B', 'DISCONNECT: reserved flags are 0'],
    ['3.14.2-1', 'B', 'DISCONNECT: codes of its table'],
    ['3.14.2-2', 'S', "no Session Expiry Interval in the server's DISCONNECT"],
    ['3.14.2-3', 'B', 'DISCONNECT: no Reason String that makes it too large'],
    ['3.14.2-4', 'B', 'DISCONNECT: no user properties that make it too large'],
    ['3.14.4-1', 'B', 'nothing is sent after DISCONNECT'],
    ['3.14.4-2', 'B', 'DISCONNECT is followed by the close'],
    ['3.14.4-3', 'S', 'DISCONNECT 0x00 deletes the will, other codes publish it'],
    ['3.15.1-1', 'B', 'AUTH: reserved flags are 0'],
    ['3.15.2-1', 'B', 'AUTH: codes of its table'],
    ['3.15.2-2', 'B', 'AUTH: no Reason String that makes it too large'],
    ['3.15.2-3', 'B', 'AUTH: no user properties that make it too large']
  ]),
  chapter('MQTT 5.0, 4 Operational behaviour', 'MQTT', [
    ['4.1.0-1', 'B', 'a session lives as long as its connection'],
    ['4.1.0-2', 'S', 'an expired session is dropped'],
    ['4.2.0-1', 'S', 'a transport is ordered and loses nothing'],
    ['4.3.1-1', 'S', 'QoS 0 out: DUP 0'],
    ['4.3.2-1', 'S', 'QoS 1 out: an id of its own'],
    ['4.3.2-2', 'S', 'QoS 1 out: DUP 0 at first'],
    ['4.3.2-3', 'S', 'QoS 1 out: unacknowledged until PUBACK'],
    ['4.3.2-4', 'S', 'QoS 1 in: PUBACK with the id'],
    ['4.3.2-5', 'S', 'QoS 1 in: the id is new again after PUBACK'],
    ['4.3.3-1', 'S', 'QoS 2 out: an id of its own'],
    ['4.3.3-2', 'S', 'QoS 2 out: DUP 0 at first'],
    ['4.3.3-3', 'S', 'QoS 2 out: unacknowledged until PUBREC'],
    ['4.3.3-4', 'S', 'PUBREC is answered with PUBREL'],
    ['4.3.3-5', 'S', 'PUBREL is unacknowledged until PUBCOMP'],
    ['4.3.3-6', 'S', 'no PUBLISH again after PUBREL'],
    ['4.3.3-7', 'S', 'no expiry after the first PUBLISH'],
    ['4.3.3-8', 'S', 'QoS 2 in: PUBREC with the id'],
    ['4.3.3-9', 'S', 'a refusing PUBREC frees the id'],
    ['4.3.3-10', 'S', 'the same id before PUBREL is not delivered twice'],
    ['4.3.3-11', 'S', 'PUBREL is answered with PUBCOMP'],
    ['4.3.3-12', 'S', 'the id is new again after PUBCOMP'],
    ['4.3.3-13', 'S', 'the handshake outlives the expiry of the message'],
    ['4.4.0-1', 'S', 'resent on reconnect, and at no other time'],
    ['4.4.0-2', 'S', 'a refusing PUBACK or PUBREC ends the message'],
    ['4.5.0-1', 'S', 'a message reaches every session that matches'],
    ['4.5.0-2', 'C', 'acknowledges what it takes'],
    ['4.6.0-1', 'S', 'resent in the order sent'],
    ['4.6.0-2', 'S', 'PUBACKs in the order of the messages'],
    ['4.6.0-3', 'S', 'PUBRECs in the order of the messages'],
    ['4.6.0-4', 'S', 'PUBRELs in the order of the PUBRECs'],
    ['4.6.0-5', 'S', "order of a publisher's messages is kept"],
    ['4.6.0-6', 'S', 'topics are ordered for subscriptions that are not shared'],
    ['4.7.0-1', 'B', 'wildcards stand in filters alone'],
    ['4.7.1-1', 'B', '# is the last level and fills it'],
    ['4.7.1-2', 'B', '+ fills a level'],
    ['4.7.2-1', 'S', 'a leading wildcard does not match $ topics'],
    ['4.7.3-1', 'B', 'names and filters have a character'],
    ['4.7.3-2', 'B', 'U+0000 is not one of them'],
    ['4.7.3-3', 'B', 'up to 65,535 bytes'],
    ['4.7.3-4', 'S', 'names are not normalized'],
    ['4.8.2-1', 'B', 'a share name has a character'],
    ['4.8.2-2', 'B', 'it has no wildcard or slash and a filter follows'],
    ['4.8.2-3', 'S', 'the member picked gets its granted QoS'],
    ['4.8.2-4', 'S', 'QoS 2 is completed with the member it began with'],
    ['4.8.2-5', 'S', 'if that session ends, nobody else gets the message'],
    ['4.8.2-6', 'S', 'if that member refuses, nobody else gets the message'],
    ['4.9.0-1', 'B', 'the send quota begins at most at Receive Maximum'],
    ['4.9.0-2', 'B', 'no quota, no QoS 1 or 2'],
    ['4.9.0-3', 'B', 'all other packets go on'],
    ['4.12.0-1', 'S', 'an unknown authentication method ends the connection'],
    ['4.12.0-2', 'S', 'AUTH 0x18 asks for more'],
    ['4.12.0-3', 'C', 'AUTH 0x18 answers'],
    ['4.12.0-4', 'S', 'a failed authentication ends the connection'],
    ['4.12.0-5', 'B', 'the method is named in every AUTH and in CONNACK'],
    ['4.12.0-6', 'S', 'no method in CONNECT, none from the server'],
    ['4.12.0-7', 'C', 'no method in CONNECT, no AUTH'],
    ['4.12.1-1', 'C', 're-authenticates by the same method'],
    ['4.12.1-2', 'S', 'a failed re-authentication ends the connection'],
    ['4.13.1-1', 'S', 'a broken rule ends the connection, and that alone'],
    ['4.13.2-1', 'B', 'a code of 0x80 or above in CONNACK or DISCONNECT ends it']
  ]),
  chapter('MQTT 5.0, 6 WebSocket', 'MQTT', [
    ['6.0.0-1', 'B', 'binary frames'],
    ['6.0.0-2', 'B', 'packets need not begin or end with frames'],
    ['6.0.0-3', 'C', 'offers the subprotocol'],
    ['6.0.0-4', 'S', 'the subprotocol is selected']
  ]),
  chapter('MQTT 3.1.1', 'MQTT3', [
    ['1.5.3-1', 'B', 'ill-formed UTF-8 closes the connection without a word'],
    ['1.5.3-2', 'B', 'U+0000 closes it as well'],
    ['2.2.2-2', 'S', 'wrong fixed header flags close the connection'],
    ['2.3.1-1', 'B', 'packet id 0 closes the connection'],
    ['3.1.0-2', 'S', 'a second CONNECT closes the connection'],
    ['3.1.2-1', 'S', 'a foreign protocol name may be refused'],
    ['3.1.2-2', 'S', 'an unknown level: return code 1 and the close'],
    ['3.1.2-4', 'S', 'CleanSession 0 resumes or makes a session, which stores QoS 1 and 2'],
    ['3.1.2-6', 'S', 'CleanSession 1: the session is new and ends with the connection'],
    ['3.1.2-7', 'S', 'retained messages outlive the session'],
    ['3.1.2-8', 'S', 'the will is published at once when the connection is lost'],
    ['3.1.2-10', 'S', 'a will is gone once published or after DISCONNECT'],
    ['3.1.2-22', 'B', 'no password without user name'],
    ['3.1.2-24', 'S', 'silence for one and a half times keep alive closes the connection'],
    ['3.1.3-7', 'S', 'no client id: only with CleanSession 1'],
    ['3.1.3-8', 'S', '... else return code 2 and the close'],
    ['3.1.3-9', 'S', 'a refused client id: return code 2 and the close'],
    ['3.1.4-2', 'S', 'a client of the same id is closed without a word'],
    ['3.1.4-5', 'S', 'what follows a refused CONNECT is not looked at'],
    ['3.2.2-1', 'S', 'CleanSession 1 is answered with Session Present 0'],
    ['3.2.2-2', 'S', 'CleanSession 0 with a session: Session Present 1'],
    ['3.2.2-3', 'S', '... without one: 0'],
    ['3.2.2-4', 'S', 'a refusal has Session Present 0'],
    ['3.2.2-5', 'S', 'a refusal closes the connection'],
    ['3.2.2-6', 'S', 'no return code fits: closed without CONNACK'],
    ['connack-codes', 'S', 'reasons become return codes 1 to 5'],
    ['suback-codes', 'S', 'SUBACK has 0, 1, 2 and 0x80'],
    ['3.3.1-7', 'S', 'a retained message of QoS 0 takes the place of the one before'],
    ['3.3.1-8', 'S', 'RETAIN 1 towards a new subscription'],
    ['3.3.1-9', 'S', 'RETAIN 0 towards an established one'],
    ['3.3.5-1', 'S', 'overlapping filters deliver at the highest QoS among them'],
    ['3.3.5-2', 'S', 'a PUBLISH without rights is acknowledged, or the connection closed'],
    ['3.8.3-3', 'S', 'filters with wildcards are refused where there are none'],
    ['3.8.3-4', 'B', 'the upper six bits of the QoS byte are 0, QoS is not 3'],
    ['3.8.4-3', 'S', 'the same filter again replaces the subscription and sends retained messages'],
    ['3.10.4-5', 'S', 'UNSUBACK has nothing but the packet id'],
    ['3.14.4-3', 'S', 'DISCONNECT deletes the will'],
    ['4.3.1-1', 'S', 'QoS 0 out: DUP 0'],
    ['4.3.2-1', 'S', 'QoS 1 out: fresh id, DUP 0, kept until PUBACK'],
    ['4.3.2-2', 'S', 'QoS 1 in: PUBACK; then the id is new again'],
    ['4.3.3-1', 'S', 'QoS 2 out: fresh id, PUBREL after PUBREC, done at PUBCOMP'],
    ['4.3.3-2', 'S', 'QoS 2 in: PUBREC, PUBCOMP, delivered once'],
    ['4.4.0-1', 'S', 'resent on reconnect with CleanSession 0'],
    ['4.7.1-2', 'B', '# is the last level and fills it'],
    ['4.7.1-3', 'B', '+ fills a level'],
    ['4.8.0-1', 'B', 'a broken rule closes the connection'],
    ['4.8.0-2', 'B', 'a transient error in an own matter closes that connection'],
    ['6.0.0-1', 'B', 'WebSocket: binary frames'],
    ['6.0.0-2', 'B', 'WebSocket: packets need not begin or end with frames'],
    ['6.0.0-3', 'C', 'WebSocket: offers the subprotocol'],
    ['6.0.0-4', 'S', 'WebSocket: the subprotocol is selected'],
    ['no-v5', 'S', 'no DISCONNECT, no AUTH, no properties towards 3.x; an empty set from it to 5.0']
  ]),
  chapter('MQTT 3.1', 'MQTT31', [
    ['client-id', 'S', 'client ids of 1 to 23 characters are taken'],
    ['no-empty-id', 'S', 'an empty client id: return code 2'],
    ['no-session-present', 'S', 'the first byte of CONNACK is 0'],
    ['suback', 'S', 'SUBACK has no 0x80'],
    ['qos-3', 'S', 'QoS 3 closes the connection'],
    ['dup', 'S', 'PUBREL, SUBSCRIBE and UNSUBSCRIBE may have DUP (section 2.1)'],
    ['bridge', 'S', 'bit 7 of the level marks a bridge']
  ])
];

/** All statements by id. */
export const STATEMENTS: ReadonlyMap<string, Statement> = new Map(
  CHAPTERS.flatMap(({ statements }) => statements).map((statement) => [statement.id, statement])
);

/**
 * The ids that a test name begins with: `[MQTT-3.1.2-16, -17] ...`, `[MQTT-3.4.2-1] [MQTT-3.5.2-1] ...`, `[MQTT-4.3.3-1 .. -3] ...`.
 * A part that is only a number goes with the id before it.
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
