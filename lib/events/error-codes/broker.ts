// The codes in alphabetical order, for everything that an app does with a broker and with the clients in its process.

import type { ErrorCodeEntry } from './row.ts';

/** Codes of the broker and of the clients in this process. */
export const BROKER_CODES = {
  ACTOR_CLOSED: {
    about: 'An actor got an event, or was to be stopped, from outside of the broker.',
    remedy: 'Call the methods that the message names.'
  },
  ALARM_INVALID: {
    about: 'An alarm has an invalid field.',
    remedy: 'Give an `id` of 1 to 256 characters, a known `severity`, and strings.'
  },
  AUTO_SUBSCRIPTION_FAILED: {
    about: 'A subscription of the option `autoSubscriptions` was not made for a client.',
    remedy: 'The message says which limit or setting of the zone forbids it.'
  },
  BACKUP_RUNNING: { about: 'Another backup of the store is being made.', remedy: 'Wait until it has ended.' },
  BACKUP_STALLED: {
    about: 'The store ended the snapshot of a backup, so the backup is incomplete.',
    remedy: 'Delete the file and make the backup again.'
  },
  BACKUP_UNSUPPORTED: {
    about: 'The store cannot be backed up while the broker runs.',
    remedy:
      'Use a store with `snapshot`, such as that of `embermq/level`, or export the store while the broker is stopped.'
  },
  BROKER_NOT_STARTED: { about: 'The broker is not started, or is stopping.', remedy: 'Await `broker.start()` first.' },
  CLIENT_ID_INVALID: { about: 'A client id is not a string.', remedy: 'Pass a string.' },
  CONNECTION_CLOSED: {
    about: 'The connection closed before the operation was complete; `cause` says why.',
    remedy: 'Connect again, and repeat the operation if it may be repeated.'
  },
  CONNECTION_REFUSED: {
    about: 'A listener has closed a connection before the broker got it; `reason` and the message say why.',
    remedy: 'Correct the client, or the options of the listener. What scans ports or checks health may be ignored.'
  },
  CONNECTOR_OF_APP: {
    about: 'The webhook or bridge belongs to the app, or to the configuration of the process.',
    remedy: 'Change it there.'
  },
  CONNECTOR_UNTESTABLE: {
    about: 'The connector has no target to which a test can be sent.',
    remedy: 'Test webhooks with a URL; correct the options of one that could not be created.'
  },
  CONNECT_REFUSED: {
    about: 'The server refused the CONNECT; `reasonCode` says why.',
    remedy: 'Check credentials and rights, or the limits of the broker.'
  },
  CONNECT_TIMEOUT: { about: 'The server did not answer in time.', remedy: 'Check the address and the network.' },
  CURSOR_INVALID: {
    about: 'A cursor does not belong to this list.',
    remedy: 'Pass the `cursor` of the previous page with the same conditions.'
  },
  DELAYED_OFF: {
    about: 'Delayed messages are disabled.',
    remedy: 'Start the feature `delayed`, or set `delayedPublish`.'
  },
  DISCONNECTED: { about: 'The server sent DISCONNECT; `reasonCode` says why.', remedy: 'Act on the reason code.' },
  DURATION_INVALID: {
    about: 'A duration cannot be read.',
    remedy: 'Write a number, or a string such as `250ms`, `90s` or `2h`.'
  },
  EVENT_UNKNOWN: { about: 'There is no event of this name.', remedy: 'Use the name that the message suggests.' },
  FEATURE_NOT_FOUND: { about: 'There is no feature of this name.', remedy: 'See `broker.features.list()`.' },
  HANDLER_INVALID: { about: 'A handler, listener or observer is not a function.', remedy: 'Pass a function.' },
  HOOK_ANSWER_INVALID: {
    about: 'A hook returned an unknown key or a value of the wrong type; its operation was refused.',
    remedy: 'Return what the table of hooks allows.'
  },
  HOOK_INVALID: {
    about: 'A hook is not a function, or `deliver` returned a promise.',
    remedy: 'Pass a function; `deliver` must answer at once.'
  },
  HOOK_TIMEOUT: {
    about: 'A hook did not answer in time; its operation was refused.',
    remedy: 'Make the hook faster, or raise `hookTimeout`.'
  },
  HOOK_UNKNOWN: { about: 'There is no hook of this name.', remedy: 'Use the name that the message suggests.' },
  IMPORT_INVALID: {
    about: 'A document of settings cannot be imported.',
    remedy: 'Import what `exportConfiguration` has returned, unchanged.'
  },
  KEEPALIVE_TIMEOUT: { about: 'The server did not answer a PINGREQ.', remedy: 'Connect again.' },
  LISTENER_INVALID: { about: 'The value is not a listener.', remedy: 'Use `listen` of `embermq/net`.' },
  LISTENER_NAME_IN_USE: { about: 'Another listener has this name.', remedy: 'Set the option `name` of one of them.' },
  LOGGER_FAILED: {
    about: 'The logger of the app threw an error; this is reported once.',
    remedy: 'Correct the logger.'
  },
  MEMORY_SHORT: {
    about: 'The process uses more memory than `memoryHighWatermark`.',
    remedy: 'Lower the limits of queues, or give Node more memory (`--max-old-space-size`).'
  },
  MESSAGE_INVALID: { about: 'A message has an invalid field.', remedy: 'See `expected` of the error.' },
  METRIC_UNKNOWN: {
    about: 'There is no counter or gauge of this name.',
    remedy: 'Use the name that the message suggests.'
  },
  MOUNTPOINT_INVALID: { about: 'A mount point is not a prefix of topic names.', remedy: 'Write it without wildcards.' },
  MQTT_5_REQUIRED: {
    about: 'Requests and responses need MQTT 5.0.',
    remedy: 'Connect with `protocolVersion: 5`, the default.'
  },
  NOT_AUTHORIZED: {
    about: 'A hook or an access rule refused the operation.',
    remedy: 'Change the rules, or do not attempt it.'
  },
  NOT_CONNECTED: { about: 'The client is not connected.', remedy: 'Connect first.' },
  NO_SUBSCRIBERS: {
    about: 'The topic of a request has no subscribers.',
    remedy: 'Start the responder, or correct the topic.'
  },
  OPTION_FIXED: {
    about: 'The option cannot be changed at run time.',
    remedy: 'Change it in the options of `createBroker`, and start again.'
  },
  OPTION_INVALID: {
    about: 'An option or argument has an invalid value.',
    remedy: 'See `field` and `expected` of the error.'
  },
  OPTION_MISSING: { about: 'A required option is missing.', remedy: 'Give the option that `field` names.' },
  OPTION_UNKNOWN: { about: 'There is no option of this name.', remedy: 'Use the name that the message suggests.' },
  PACKET_IDS_EXHAUSTED: {
    about: 'All 65,535 packet ids of the client are in use.',
    remedy: 'Wait for acknowledgements.'
  },
  PACKET_INVALID: {
    about: 'The bytes are not exactly one MQTT packet.',
    remedy: 'Pass one whole packet, with the protocol version of its connection.'
  },
  PACKET_TOO_LARGE: {
    about: 'The packet is larger than the server accepts.',
    remedy: 'Send less, or raise `maxPacketSize` of the server.'
  },
  PROTOCOL_ERROR: {
    about: 'A peer violates the MQTT specification; its connection is closed.',
    remedy: 'Correct the client; `reasonCode` says which kind of fault it is.'
  },
  PUBLISH_REFUSED: {
    about: 'The server refused a PUBLISH; `reasonCode` says why.',
    remedy: 'Check the rights of the client, or the limits of the broker.'
  },
  QUOTA_EXCEEDED: {
    about: 'There is no room to queue the message, or too many messages are delayed or requests are pending.',
    remedy: 'Try again later, or raise the limits.'
  },
  REAUTHENTICATION_UNDER_WAY: {
    about: 'A re-authentication of the client is already in progress.',
    remedy: 'Wait until that has ended.'
  },
  REQUEST_TIMEOUT: {
    about: 'There was no response to a request within its time.',
    remedy: 'Check the responder and its right to publish to the response topic, or raise `timeout`.'
  },
  RESPONDER_FAILED: {
    about: 'The handler of a responder has failed; the message names the code of its error.',
    remedy: 'Look at the log of the responder.'
  },
  REWRITE_INVALID: { about: 'A rule of the option `rewrite` is invalid.', remedy: 'See `expected` of the error.' },
  REWRITE_SKIPPED: {
    about:
      'A topic is not rewritten: a `RegExp` is applied to at most 512 bytes, and a string of many parts to fewer characters. Reported once for each rule.',
    remedy: 'Use a string as the pattern, and a short one.'
  },
  SCHEMA_FAILED: {
    about: 'A schema has thrown an error, or gave no answer in time; the message was refused.',
    remedy: 'Look at the error in the event `error`.'
  },
  SCHEMA_MISMATCH: {
    about: 'The payload of a message does not match a schema of its topic.',
    remedy: 'Correct the payload, or the schema in the option `schemas`.'
  },
  SESSION_ENDED: {
    about: 'The session has ended, or its client has no CONNACK yet.',
    remedy: 'Look it up again with `broker.sessions.get`.'
  },
  SESSION_NOT_FOUND: { about: 'There is no session with this client id.', remedy: 'Ask `broker.sessions.has` first.' },
  SESSION_RUNNING: { about: 'The client is connected, so its session cannot be discarded.', remedy: 'Use `kick`.' },
  STREAM_IN_USE: { about: 'The stream is served already.', remedy: 'Pass a separate stream for each connection.' },
  SUBSCRIBE_REFUSED: {
    about: 'A subscription was refused.',
    remedy: 'The message says which right, limit or setting forbids it.'
  },
  TABLE_KEY_INVALID: {
    about: 'The key of a table is not a string that UTF-8 can represent.',
    remedy: 'Use another key.'
  },
  TABLE_NAME_INVALID: {
    about: 'The name of a table is invalid.',
    remedy: 'Use 1 to 64 letters, digits, `.`, `-` and `_`.'
  },
  TABLE_VALUE_INVALID: {
    about: 'The value cannot be represented as JSON.',
    remedy: 'Store plain objects, arrays, strings, numbers, booleans or null.'
  },
  TOO_MANY_TAILS: { about: 'Too many tails are open.', remedy: 'Close one of them.' },
  TOO_MANY_TOPICS: {
    about: 'The messages of too many topic filters are counted.',
    remedy: 'Remove one before you add another.'
  },
  TOO_MANY_TRACES: { about: 'Too many traces are active.', remedy: 'Stop one of them.' },
  TOPIC_FILTER_INVALID: { about: 'A topic filter is not well-formed.', remedy: 'The message names the fault.' },
  TOPIC_NAME_INVALID: {
    about: 'A topic name is empty, too long, or has wildcards.',
    remedy: 'Correct the topic name.'
  },
  TRACE_FILE_FAILED: {
    about: 'A trace file cannot be opened or written.',
    remedy: 'The message names the file and the cause.'
  },
  UNHEARD: {
    about: 'An error without a listener, reported as a process warning.',
    remedy: 'Add a listener of `error`, or the option `logger`.'
  },
  VALUE_INVALID: { about: 'A subscription identifier is out of range.', remedy: 'Use 1 to 268,435,455.' },
  VALUE_TOO_LONG: {
    about: 'A field of a packet is longer than MQTT allows.',
    remedy: 'Shorten it: strings have at most 65,535 bytes.'
  },
  ZONE_UNKNOWN: { about: 'There is no zone of this name.', remedy: 'Define it in the option `zones`.' }
} as const satisfies Readonly<Record<string, ErrorCodeEntry>>;
